"""The recorded input of a run, for `joinery verify`: every row as the log has it, written beside the log.

A folder holds an Arrow IPC stream for each stream of the query (`stream-0.arrows` ...): of each row its time, late
flag, record, producer and sequence, and the row itself. `end.json` says that every stream has ended; without it the
recording is of a run that did not come to its end.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from joinery.flow import ingest
from joinery.join.plan import JoinPlan
from joinery.machine.log import Head, LoggedBatch, Record, SpecChange, StreamEnded
from joinery.machine.ports import Log
from joinery.model.errors import UserMustAct
from joinery.model.ids import RecordNo, Term
from joinery.model.tuples import I64Array
from joinery.partition.format import StreamFormat
from joinery.partition.map import StoredMap

_END: Final = "end.json"
RESULTS: Final = "results.parquet"
"""Results of a query that has no file of its own to hold them."""


class RecordingLog:
    """A log that also keeps what it was given, whatever is trimmed later (`ports.Log`)."""

    def __init__(self, log: Log, plan: JoinPlan, folder: Path) -> None:
        self._log, self._plan, self._folder = log, plan, folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _END).unlink(missing_ok=True)
        self._writers = [_Writer(_path(folder, form.index), form) for form in plan.formats]
        self._last = RecordNo(-1)
        self._ended: set[int] = set()
        self._changes = 0

    def open(self, first: Head, instance: str) -> Term:
        return self._log.open(first, instance)

    def append(self, term: Term, number: RecordNo, record: Record) -> None:
        self._log.append(term, number, record)
        if number > self._last:  # again after a lost answer: it is here
            self._keep(number, record)
            self._last = number

    def read(self) -> tuple[Head, list[tuple[RecordNo, Record]]]:
        return self._log.read()

    def trim(self, term: Term, head: Head, keep_from: RecordNo) -> None:
        self._log.trim(term, head, keep_from)

    def write_map(self, term: Term, stored: StoredMap) -> None:
        self._log.write_map(term, stored)

    def read_map(self) -> StoredMap | None:
        return self._log.read_map()

    def _keep(self, number: RecordNo, record: Record) -> None:
        for batch in record.batches:
            self._writers[batch.stream].write(number, batch)
        self._changes += sum(isinstance(entry, SpecChange) for entry in record.entries)
        self._ended |= {entry.stream for entry in record.entries if isinstance(entry, StreamEnded)}
        if len(self._ended) == self._plan.streams:
            for writer in self._writers:
                writer.close()
            (self._folder / _END).write_text(json.dumps({"records": number + 1, "changes": self._changes}))


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


def _path(folder: Path, stream: int) -> Path:
    return folder / f"stream-{stream}.arrows"


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """The recorded rows of one stream."""

    rows: pa.Table
    times: I64Array
    late: NDArray[np.bool_]
    producers: pa.ChunkedArray
    sequences: I64Array

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
    if json.loads(end.read_text())["changes"]:
        raise UserMustAct("found a change of the windows in the recording, wanted none; that cannot be verified yet")
    return [_read(_path(folder, form.index), form) for form in plan.formats]


def _read(path: Path, form: StreamFormat) -> Recording:
    try:
        with pa.memory_map(str(path)) as file:
            table = pa.ipc.open_stream(file).read_all()
    except (OSError, pa.ArrowException) as error:
        raise UserMustAct(f"found {path} unreadable ({error}), wanted a recording; record again") from error
    if table.schema != _schema(form):
        raise UserMustAct(f"found {path} with other columns, wanted those of stream {form.name}; record again")
    structs = table["row"].chunks
    columns = [pa.chunked_array([one.field(n) for one in structs], field.type) for n, field in enumerate(form.schema)]
    return Recording(
        pa.Table.from_arrays(columns, schema=form.schema),
        table["time"].to_numpy(),
        table["late"].to_numpy(),
        table["producer"],
        table["sequence"].to_numpy(),
    )
