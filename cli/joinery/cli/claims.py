"""Which run writes which file: two at the same time would replace each other's output, and neither would know.

A run holds a lock (`locks`) for each of its outputs, in the user's runtime folder. What the file says is only for the
message.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from joinery.cli import locks
from joinery.cli.running import made_folder
from joinery.model.errors import UserMustAct


@contextmanager
def claimed(outputs: Sequence[Path], name: str) -> Iterator[None]:
    """Nobody else of this user writes these files meanwhile; refused if somebody does."""
    with ExitStack() as held:
        for path in outputs:
            _claim(path.resolve(), name, held)
        yield


def _claim(path: Path, name: str, held: ExitStack) -> None:
    """Until the stack is closed; where there is no place for locks nothing can be said."""
    with suppress(OSError):
        place = made_folder() / f"{sha256(os.fsencode(path)).hexdigest()[:24]}.lock"
        lock = locks.lock(place)
        if lock is None:
            raise UserMustAct(
                f"found {_holder(place)}, which writes {path}, wanted one run at a time for each file; "
                "wait for it or stop it, or name another file in this query"
            )
        held.callback(locks.unlock, place, lock)
        locks.write(lock, json.dumps({"name": name, "pid": os.getpid()}))


def _holder(place: Path) -> str:
    try:
        said = json.loads(place.read_text())
        return f"a run of {said['name']} (process {said['pid']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another run"
