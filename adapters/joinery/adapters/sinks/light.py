"""Station 8 of 8, sink: two that keep nothing, the standard output and the counter.

The standard output gets a JSON object per row (`texts`) when a commit is staged: a row is seen as soon as it can be. A
collector that dies before the commit is written has shown rows that the next one shows again: at least once.
"""

from collections.abc import Sequence
from typing import BinaryIO

from joinery.adapters.sinks.chosen import Chosen
from joinery.adapters.sinks.formats import NdjsonFormat
from joinery.join.results import ResultPart
from joinery.machine.ports import Receipt
from joinery.model.errors import UserMustAct, require
from joinery.model.ids import Term


class CountSink:
    """Counts rows (`ports.Sink`); a receipt is the count."""

    def __init__(self, name: str, chosen: Chosen) -> None:
        self.name, self._chosen = name, chosen
        self._is_ready = False
        self._number = self._before = self._rows = 0

    @property
    def rows(self) -> int:
        """How many were staged; after `finish` how many there are."""
        return self._rows

    def recover(self, term: Term, valid: Receipt | None) -> None:  # noqa: ARG002 - every term counts alike
        self._is_ready = True
        self._number, self._before = 0, 0 if valid is None else valid.valid
        self._rows = self._before

    def stage(self, number: int, parts: Sequence[ResultPart]) -> Receipt:
        require(self._is_ready, f"sink {self.name} was used before recover told it the term")
        if number > self._number:
            self._number, self._before = number, self._rows
        self._rows = self._before + sum(rows.num_rows for rows in self._chosen.rows(parts))
        return Receipt(self.name, self._rows)

    def finish(self, valid: Receipt | None) -> None:
        self._rows = 0 if valid is None else valid.valid


class StdoutSink:
    """Writes rows to a stream of bytes (`ports.Sink`); a receipt is the number of rows."""

    def __init__(self, name: str, output: BinaryIO, chosen: Chosen) -> None:
        self.name, self._output, self._chosen = name, output, chosen
        self._count = CountSink(name, chosen)
        self._format, self._shown = NdjsonFormat(), 0

    def recover(self, term: Term, valid: Receipt | None) -> None:
        self._count.recover(term, valid)
        self._shown = 0

    def stage(self, number: int, parts: Sequence[ResultPart]) -> Receipt:
        receipt = self._count.stage(number, parts)
        if number > self._shown:  # staged again after a lost answer: it was shown
            self._show(parts)
            self._shown = number
        return receipt

    def _show(self, parts: Sequence[ResultPart]) -> None:
        try:
            for rows in self._chosen.rows(parts):
                for piece in self._format.encode(rows):
                    self._output.write(piece)
            self._output.flush()
        except OSError as error:
            raise UserMustAct(
                f"found the standard output closed ({error}), wanted a reader; take another sink, or let it read"
            ) from error

    def finish(self, valid: Receipt | None) -> None:
        self._count.finish(valid)
