"""The recorded input of a run, for `joinery verify`: every row as the log has it, written beside the log.

A folder holds Arrow IPC streams, one for each stream of the query and each gateway that wrote it, by its term
(`stream-0.1.arrows` ...): of each row its time, late flag, record, producer and sequence, and the row itself.
`tables.json` says with which record a version of the stored table came, `table-N` is that version as it was read.
`end.json` says that every stream has ended; without it the recording is of a run that did not come to its end.

Rule: a gateway may die between the log and the recording, or half-way through a record. The next one writes again what
the log still holds from the last recorded record on; the newer file counts. What the log has trimmed was recorded.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from joinery.adapters.record_bytes import change_of, change_story, window_of, window_story
from joinery.flow import ingest
from joinery.join.plan import JoinPlan
from joinery.machine.log import Head, LoggedBatch, Record, SpecChange, StreamEnded, TableVersion
from joinery.machine.ports import Log
from joinery.model.errors import UserMustAct
from joinery.model.ids import RecordNo, Term
from joinery.model.quantities import CountWindow, Window
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import KeptSpec
from joinery.model.tuples import I64Array
from joinery.partition.format import StreamFormat
from joinery.partition.map import StoredMap

_END: Final = "end.json"
_TABLES: Final = "tables.json"
RESULTS: Final = "results.parquet"
"""Results of a query that has no file of its own to hold them."""


class RecordingLog:
    """A log that also keeps what it was given, whatever is trimmed later (`ports.Log`)."""

    def __init__(self, log: Log, plan: JoinPlan, folder: Path) -> None:
        self._log, self._plan, self._folder = log, plan, folder
        folder.mkdir(parents=True, exist_ok=True)
        self._writers: list[_Writer] = []
        self._next = [RecordNo(0)] * plan.streams
        """Per stream: the record that is written next."""
        self._ended: set[int] = set()
        self._changes: tuple[SpecChange, ...] = ()
        self._tables: dict[int, int] = {}
        """Version of the stored table by the record that tells it."""

    def open(self, first: Head, instance: str, spec: JoinQuerySpec | None = None) -> Term:
        term = self._log.open(first, instance, spec)
        if not self._writers:
            self._next = [_last_recorded(self._folder, form) for form in self._plan.formats]
            self._writers = [_Writer(self._folder / _name(form.index, term), form) for form in self._plan.formats]
        return term

    def append(self, term: Term, number: RecordNo, record: Record) -> None:
        self._log.append(term, number, record)
        self._keep(number, record)

    def read(self) -> tuple[Head, list[tuple[RecordNo, Record]]]:
        head, records = self._log.read()
        self._ended |= {stream for stream, clock in enumerate(head.clocks) if clock.ended}
        self._changes = head.changes
        self._tables |= read_tables(self._folder)
        self._tables.update((int(one.record), one.version) for one in head.tables)
        for number, record in records:
            self._keep(number, record, is_new=number >= head.next_record)
        return head, records

    def trim(self, term: Term, head: Head, keep_from: RecordNo) -> None:
        self._log.trim(term, head, keep_from)

    def tidy(self) -> int | None:
        return self._log.tidy()

    def write_map(self, term: Term, stored: StoredMap) -> None:
        self._log.write_map(term, stored)

    def read_map(self) -> StoredMap | None:
        return self._log.read_map()

    def write_spec(self, term: Term, kept: KeptSpec) -> None:
        self._log.write_spec(term, kept)

    def read_spec(self) -> KeptSpec | None:
        return self._log.read_spec()

    def _keep(self, number: RecordNo, record: Record, *, is_new: bool = True) -> None:
        """Once each, however often it is given after a lost answer."""
        for stream, writer in enumerate(self._writers):
            if number >= self._next[stream]:
                for batch in record.batches:
                    if batch.stream == stream:
                        writer.write(number, batch)
                self._next[stream] = RecordNo(number + 1)
        if is_new:
            self._changes += record.changes()
        if tables := [entry for entry in record.entries if isinstance(entry, TableVersion)]:
            self._tables.update((int(one.record), one.version) for one in tables)
            (self._folder / _TABLES).write_text(json.dumps(sorted(self._tables.items())))
        self._ended |= {entry.stream for entry in record.entries if isinstance(entry, StreamEnded)}
        if len(self._ended) == self._plan.streams:
            for writer in self._writers:
                writer.close()
            windows = [window_story(window) for window in self._plan.windows]
            told = {"windows": windows, "changes": [change_story(change) for change in self._changes]}
            (self._folder / _END).write_text(json.dumps(told))


def forget_recording(folder: Path) -> None:
    """What an earlier run has left in a folder."""
    for path in (*folder.glob("stream-*.arrows"), folder / _END, folder / _TABLES):
        path.unlink(missing_ok=True)
    for path in folder.glob("table-*"):
        shutil.rmtree(path, ignore_errors=True)


def read_tables(folder: Path) -> dict[int, int]:
    """Version of the stored table by the record that tells it; empty: there is no table."""
    path = folder / _TABLES
    return dict(json.loads(path.read_text())) if path.is_file() else {}


def _last_recorded(folder: Path, form: StreamFormat) -> RecordNo:
    """The last record of a stream that is here, perhaps not wholly; 0: none is."""
    numbers = [int(pc.max(table["record"]).as_py()) for _, table in _tables(folder, form) if table.num_rows]
    return RecordNo(max(numbers, default=0))


class _Writer:
    def __init__(self, path: Path, form: StreamFormat) -> None:
        self._form, self._is_closed = form, False
        self._schema = _schema(form)
        self._writer = pa.ipc.new_stream(path, self._schema)

    def write(self, number: RecordNo, batch: LoggedBatch) -> None:
        rows, size = batch.rows, batch.rows.num_rows
        if size == 0:
            return
        columns = [
            pa.array(ingest.times(self._form, rows, batch.stamp_ns)),
            pa.array(np.zeros(size, np.bool_) if batch.late is None else batch.late),
            pa.repeat(pa.scalar(number, pa.int64()), size),
            pa.repeat(pa.scalar(str(batch.producer)), size),
            pa.repeat(pa.scalar(batch.sequence, pa.int64()), size),
            pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema)),
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._writer.close()


def _schema(form: StreamFormat) -> pa.Schema:
    facts = [("time", pa.int64()), ("late", pa.bool_()), ("record", pa.int64()), ("producer", pa.string())]
    return pa.schema([*facts, ("sequence", pa.int64()), ("row", pa.struct(list(form.schema)))])


def _name(stream: int, term: Term) -> str:
    return f"stream-{stream}.{term}.arrows"


def _tables(folder: Path, form: StreamFormat) -> list[tuple[int, pa.Table]]:
    """What each gateway recorded of a stream, by its term; the end of a file may be missing."""
    paths = folder.glob(f"stream-{form.index}.*.arrows")
    return sorted(((int(path.name.split(".")[1]), _read(path, form)) for path in paths), key=lambda one: one[0])


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """The recorded rows of one stream."""

    rows: pa.Table
    times: I64Array
    late: NDArray[np.bool_]
    producers: pa.ChunkedArray
    sequences: I64Array
    records: I64Array | None = None
    """None: nothing was recorded, it is what the source gives."""

    def disorder(self) -> list[str]:
        """What cannot be: sequences of a producer that do not rise from batch to batch."""
        found = []
        for producer in pc.unique(self.producers).to_pylist():
            own = self.sequences[pc.equal(self.producers, producer).to_numpy()]
            if (np.diff(own) < 0).any():
                found.append(f"sequences of producer {producer} go back")
        return found


def read_recording(folder: Path, plan: JoinPlan) -> Sequence[Recording]:
    """What was recorded in a folder, of every stream; refused if the run did not come to its end."""
    end = folder / _END
    if not end.is_file():
        raise UserMustAct(
            f"found no {_END} in {folder}, wanted the recording of a run that ended; record one: joinery run --record"
        )
    return [_recording(_whole(_tables(folder, form)), form) for form in plan.formats]


def read_windows(folder: Path) -> tuple[tuple[Window, ...], tuple[SpecChange, ...]]:
    """The windows with which the run began, and how they were changed; refused if no oracle knows the truth of that."""
    told = json.loads((folder / _END).read_text())
    windows = tuple(window_of(*one) for one in told["windows"])
    found = tuple(change_of(one) for one in told["changes"])
    if found and any(isinstance(window, CountWindow) for window in windows):
        raise UserMustAct("found changed count windows in the recording, wanted time windows; that is not verified yet")
    return windows, found


def _whole(tables: Sequence[tuple[int, pa.Table]]) -> pa.Table:
    """The parts of all gateways, each up to where a later one begins."""
    kept: list[pa.Table] = []
    until = None
    for _, table in reversed(tables):
        part = table if until is None else table.filter(pc.less(table["record"], until))
        kept.append(part)
        until = pc.min(part["record"]).as_py() if part.num_rows else until
    return pa.concat_tables(reversed(kept))


def _read(path: Path, form: StreamFormat) -> pa.Table:
    """The batches of a file up to the first that is not whole."""
    schema, batches = _schema(form), []
    try:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            if stream.schema != schema:
                message = f"found {path} with other columns, wanted those of stream {form.name}; record again"
                raise UserMustAct(message)
            batches.extend(stream)
    except (OSError, pa.ArrowException):  # its gateway died while it wrote; what is missing is in the next file
        pass
    return pa.Table.from_batches(batches, schema)


def _recording(table: pa.Table, form: StreamFormat) -> Recording:
    structs = table["row"].chunks
    columns = [pa.chunked_array([one.field(n) for one in structs], field.type) for n, field in enumerate(form.schema)]
    return Recording(
        pa.Table.from_arrays(columns, schema=form.schema),
        table["time"].to_numpy(),
        table["late"].to_numpy(),
        table["producer"],
        table["sequence"].to_numpy(),
        table["record"].to_numpy(),
    )
