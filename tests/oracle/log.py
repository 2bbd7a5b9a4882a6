"""A log keeper: does what the gateway does with rows as they come, and hands out the history.

Rule 1: a row is late iff its time is below (greatest time among its producer's earlier rows in that stream) - lateness,
        or below its stream's watermark in the record before its own.
Rule 2: the watermark of a stream is the smallest over its live producers of (greatest time - lateness); it never goes
        back, stays when no producer lives, and is infinite once the stream has ended.
Rule 3: a change of the windows stands in the record that is cut, with floors from its watermarks and the old windows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tests.oracle.history import History, released_counts
from tests.oracle.recorded import BEGINNING, FOREVER, Question, Row, Window, WindowChange, floors


@dataclass(slots=True, kw_only=True)
class Log:
    """Records under way: `send` rows, `silence` producers, `end` streams, `cut` a record."""

    question: Question
    schemas: tuple[pa.Schema, ...]
    lateness: tuple[int, ...]
    _rows: list[Row] = field(default_factory=list)
    _records: list[tuple[int, ...]] = field(default_factory=list)
    _changes: list[WindowChange] = field(default_factory=list)
    _greatest: dict[tuple[int, int], int] = field(default_factory=dict)
    _live: set[tuple[int, int]] = field(default_factory=set)
    _ended: set[int] = field(default_factory=set)

    def send(
        self, stream: int, time: int, key: tuple[object, ...], values: Mapping[str, object], producer: int = 0
    ) -> None:
        """Take a row into the record under way; its producer lives from then on."""
        if stream in self._ended:
            raise ValueError(f"stream {stream} has ended")
        greatest = self._greatest.get((stream, producer), BEGINNING)
        late = time < greatest - self.lateness[stream] or time < self._watermarks[stream]
        position = self.sent(stream)
        self._rows.append(Row(stream, len(self._records), position, time, late, key, values, producer))
        self._greatest[stream, producer] = max(greatest, time)
        self._live.add((stream, producer))

    def sent(self, stream: int) -> int:
        """How many rows the stream has so far, which is the next one's position."""
        return sum(row.stream == stream for row in self._rows)

    def silence(self, stream: int, producer: int) -> None:
        """A producer that was idle for too long, or left, no longer counts."""
        self._live.discard((stream, producer))

    def end(self, stream: int) -> None:
        self._ended.add(stream)

    def cut(self, change: tuple[Window, ...] | None = None) -> None:
        """End a record with the watermarks, and the change if there is one."""
        self._records.append(
            tuple(FOREVER if stream in self._ended else self._risen(stream) for stream in range(len(self.lateness)))
        )
        if change is not None:
            record = len(self._records) - 1
            old = self._changes[-1].windows if self._changes else self.question.windows
            counts = released_counts(self.history(), record)
            self._changes.append(WindowChange(record, change, floors(old, self._records[record], counts)))

    def history(self) -> History:
        """What is recorded so far."""
        return History(
            question=self.question,
            schemas=self.schemas,
            rows=tuple(self._rows),
            records=tuple(self._records),
            changes=tuple(self._changes),
            lateness=self.lateness,
        )

    @property
    def _watermarks(self) -> Sequence[int]:
        return self._records[-1] if self._records else (BEGINNING,) * len(self.lateness)

    def _risen(self, stream: int) -> int:
        shown = [self._greatest[of, producer] for of, producer in self._live if of == stream]
        watermark = self._watermarks[stream]
        return max(watermark, min(shown) - self.lateness[stream]) if shown else watermark
