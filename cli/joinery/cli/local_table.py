"""The lookup application of a run on this machine, and the folder of its segments.

With a folder for the run's state the segments lie in it: versions that the log names must be there when it goes on.
"""

import os
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from joinery.adapters.extras import how_to_get
from joinery.adapters.settings import free_port
from joinery.cli.leftovers import keep, let_go
from joinery.model.errors import UserMustAct
from joinery.model.spec import JoinQuerySpec

LOOKUP: Final = "joinery.spark.lookup"
"""The lookup application."""


class LocalTable:
    """What a run needs for a stored table; of a query without one, nothing."""

    def __init__(self, spec: JoinQuerySpec, record: Path | None, state: Path | None) -> None:
        self._record, self._state = record, state
        self.is_needed = spec.table is not None
        self._address = f"127.0.0.1:{free_port()}" if self.is_needed else ""
        self._folder: Path | None = None

    @property
    def flags(self) -> list[str]:
        """What the other processes are told."""
        return ["--lookup", self._address] if self.is_needed else []

    def words(self, query: list[str], module: str = LOOKUP) -> list[str]:
        """The flags of the lookup application, with those for the query; refused if it has no Spark here."""
        if module == LOOKUP:
            _want_spark()
        if self._folder is None:
            made = tempfile.mkdtemp(prefix="joinery-segments-") if self._state is None else self._state / "segments"
            self._folder = Path(made)
            if self._state is None:
                keep(self._folder)
        recording = [] if self._record is None else ["--record", str(self._record)]
        return [*query, "--listen", self._address, "--segments", str(self._folder), *recording]

    def close(self, *, ended: bool) -> None:
        """The segments are of no use any more, unless the run is to go on."""
        if self._folder is not None and (ended or self._state is None):
            shutil.rmtree(self._folder, ignore_errors=True)
            let_go(self._folder)


def _want_spark() -> None:
    if find_spec("pyspark") is None:
        raise UserMustAct(f"found no PySpark, wanted it for a stored table; {how_to_get('spark')}")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise UserMustAct("found no Java, wanted 17 or newer for a stored table; install a JRE, or set JAVA_HOME")
