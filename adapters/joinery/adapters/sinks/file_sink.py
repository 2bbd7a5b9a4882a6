"""Station 8 of 8, sink: a file.

While the query runs, results are in parts beside the file (`part_files`). `finish` joins what is valid of them into the
file that was named, under another name first, then by one rename; then the parts are removed. Until that moment a file
of that name from an earlier run stays as it is; then it is replaced. A crash anywhere on this way is made good by the
next collector's `finish`.
"""

from collections.abc import Sequence
from pathlib import Path

from joinery.adapters.sinks.chosen import Chosen
from joinery.adapters.sinks.formats import Format
from joinery.adapters.sinks.part_files import PartFiles, writing
from joinery.join.results import ResultPart
from joinery.machine.ports import Receipt
from joinery.model.errors import require
from joinery.model.ids import Term


class FileSink:
    """A file as a sink (`ports.Sink`)."""

    def __init__(self, name: str, path: Path, form: Format, chosen: Chosen, run: str, *, durable: bool) -> None:
        self.name, self.path = name, path
        self._format, self._chosen = form, chosen
        self._parts = PartFiles(path, run, form.ending, durable=durable)
        self._is_ready = self._was_finished = False

    def recover(self, term: Term, valid: Receipt | None) -> None:
        self._was_finished = not self._parts.begin(term, self._length(valid))
        self._is_ready = True

    def stage(self, number: int, parts: Sequence[ResultPart]) -> Receipt:
        self._check()
        require(not self._was_finished, f"sink {self.name} got rows after it was finished")
        data = (piece for rows in self._chosen.rows(parts) for piece in self._format.encode(rows))
        return Receipt(self.name, self._parts.stage(number, self._format.beginning, data))

    def finish(self, valid: Receipt | None) -> None:
        self._check()
        if self._parts.is_there():
            made = self._parts.directory / f"whole{self.path.suffix}"
            try:
                self.write_valid(valid, made)
                with writing(self.path):
                    self._parts.replace(made)
            finally:
                made.unlink(missing_ok=True)

    def write_valid(self, valid: Receipt | None, to: Path) -> None:
        """A file of what is valid by a receipt."""
        with writing(to):
            self._format.join(self._parts.pieces(self._length(valid)), to)

    def discard(self) -> None:
        """The query was given up: remove the parts; a file from an earlier run stays."""
        self._parts.remove()

    def _check(self) -> None:
        require(self._is_ready, f"sink {self.name} was used before recover told it the term")

    def _length(self, valid: Receipt | None) -> int:
        named = self.name if valid is None else valid.sink
        require(named == self.name, f"sink {self.name} was given the receipt of {named}")
        return 0 if valid is None else valid.valid
