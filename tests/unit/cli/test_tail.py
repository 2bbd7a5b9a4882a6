"""`joinery tail` tells the token of what is printed, not of what has come."""

import io
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from joinery.cli.tail import FORMS, _Printer

BATCHES = {f"{number}:0": pa.RecordBatch.from_pydict({"k": [number, number]}) for number in (1, 2, 3)}


class Given:
    """Results as a client gives them: the token is that of the batch which was taken last."""

    def __init__(self) -> None:
        self.token: str | None = None
        self.schema = pa.schema([("k", pa.int64())])

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for self.token, rows in BATCHES.items():
            yield rows


class Out(io.BytesIO):
    """Something happens while the second batch is written."""

    def __init__(self, happens: Callable[[], None]) -> None:
        super().__init__()
        self._happens, self._writes = happens, 0

    def write(self, piece: Any) -> int:
        self._writes += 1
        if self._writes == 2:
            self._happens()
        return super().write(piece)


def gone() -> None:
    raise BrokenPipeError


def test_what_nobody_read_is_not_passed_over() -> None:
    printer = _Printer(FORMS["ndjson"](), out := Out(gone), None)
    with pytest.raises(BrokenPipeError):
        printer.print(Given())  # type: ignore[arg-type]
    assert ("1:0", 2) == (printer.token, out.getvalue().count(b"\n"))


def test_ctrl_c_in_the_middle_of_a_batch_prints_the_rest_of_it() -> None:
    printer = _Printer(FORMS["ndjson"](), out := Out(lambda: os.kill(os.getpid(), signal.SIGINT)), None)
    with pytest.raises(KeyboardInterrupt):
        printer.print(Given())  # type: ignore[arg-type]
    assert ("2:0", 4) == (printer.token, out.getvalue().count(b"\n"))


def test_all_that_was_printed_is_behind_the_last_token() -> None:
    printer = _Printer(FORMS["csv"](), out := Out(lambda: None), "0:7")
    printer.print(Given())  # type: ignore[arg-type]
    assert ("3:0", 7) == (printer.token, out.getvalue().count(b"\n"))
