"""Is the output exact? Two comparisons (docs/design.md §2).

First: what sources give is what was recorded. A file or a generator gives the same rows again; what was pushed, or came
from Redis, is there only once, so there only the sequences are looked at. Second: what the recorded input gives by the
rules (`joinery.oracle`) is what every file of the query holds, late rows too.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from joinery.adapters.recording import RESULTS, Recording, read_recording, read_tables, read_windows
from joinery.adapters.sources.files import FORMATS, FileReader
from joinery.adapters.sources.opening import reader_of
from joinery.adapters.sources.pieces import Piece
from joinery.cli.leftovers import scratch
from joinery.cli.words import counted
from joinery.flow import ingest
from joinery.join.plan import JoinPlan
from joinery.machine.hybrid_module import stored_schema
from joinery.machine.log import SpecChange
from joinery.model.errors import UserMustAct
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_sections import StreamSpec
from joinery.oracle.compare import Comparison, compare
from joinery.oracle.table_truth import table_truth
from joinery.oracle.truth import RecordedChange, RecordedStream, truth
from joinery.partition.format import StreamFormat
from joinery.partition.keys import KeyForm

_SHOWN: Final = 5
Say = Callable[[str], None]


def verify_output(query: Path, spec: JoinQuerySpec, recorded: Path | None, say: Say) -> int:
    """Both comparisons of the output that is there; 0: exact. Without a recording the sources are read."""
    plan, folder = JoinPlan.of(spec), query.resolve().parent
    changed: tuple[SpecChange, ...] = ()
    if recorded is None:
        streams = [_from_source(spec, plan, number, folder) for number in range(plan.streams)]
    else:
        streams = list(read_recording(recorded, plan))
        windows, changed = read_windows(recorded)
        plan = replace(plan, windows=windows)
        if not _check_sources(spec, plan, folder, streams, say):
            return 1
    changes = [RecordedChange(one.record, one.windows, one.floors) for one in changed]
    given = [RecordedStream(one.rows, one.times, one.late, one.records) for one in streams]
    right = truth(plan, given, changes) if plan.table is None else _of_table(plan, given[0], recorded)
    wanted = pa.concat_tables([plan.schema.empty_table(), *right])
    return 0 if _check_outputs(list(_outputs(spec, plan, folder, recorded)), plan, wanted, streams, say) else 1


def _of_table(plan: JoinPlan, stream: RecordedStream, recorded: Path | None) -> Iterator[pa.Table]:
    """The truth of a query with a stored table, from the versions that were recorded."""
    if recorded is None:
        message = "found a stored table, wanted the versions that rows met: they are only in a recording"
        raise UserMustAct(f"{message}; joinery run --record DIR")
    told, schema = read_tables(recorded), stored_schema(plan)
    tables = {
        version: pq.read_table(recorded / f"table-{version}").select(schema.names).cast(schema)
        for version in told.values()
    }
    return table_truth(plan, stream, sorted(told.items()), tables)


@contextmanager
def recording_folder(record: Path | None, *, verify: bool) -> Iterator[Path | None]:
    """Where a run records: where it was told, for the time of a verification, or nowhere."""
    if record is not None or not verify:
        yield None if record is None else record.resolve()
        return
    with scratch("record") as folder:
        yield folder


# --- first comparison: sources and recording


def _check_sources(
    spec: JoinQuerySpec, plan: JoinPlan, folder: Path, streams: list[Recording], say: Say
) -> bool:  # fmt: skip
    wrong = []
    for number, (stream, recorded) in enumerate(zip(spec.streams, streams, strict=True)):
        wrong += [f"stream {stream.name}: {one}" for one in recorded.disorder()]
        if _can_be_read_again(stream):
            given = _given(spec, plan, number, folder)
            found = compare(_numbered(recorded.rows), _numbered(given), _SHOWN)
            if not found.exact:
                wrong.append(f"stream {stream.name}: recorded is not what the source gives: {found}")
                wrong += [f"  {one}" for one in found.examples]
    for line in wrong:
        say(line)
    return not wrong


def _can_be_read_again(stream: StreamSpec) -> bool:
    return stream.source is not None and (stream.source.file is not None or stream.source.generator is not None)


def _given(spec: JoinQuerySpec, plan: JoinPlan, number: int, folder: Path) -> pa.Table:
    """All that a stream's source gives."""
    stream, form = spec.streams[number], plan.formats[number]
    if stream.source is None or not _can_be_read_again(stream):
        raise UserMustAct(
            f"stream {stream.name}: found rows that cannot be read again, wanted a file or a generator; "
            "run the query with joinery verify, or with joinery run --record DIR"
        )
    unpaced = stream.model_copy(update={"source": stream.source.model_copy(update={"pace": "none"})})
    reader = reader_of(f"spec.streams[{number}]", unpaced, form, folder, "")
    pieces = [piece.rows for piece in reader.read(None) if isinstance(piece, Piece)]
    return pa.Table.from_batches(pieces, form.schema)


def _numbered(rows: pa.Table) -> pa.Table:
    """With the position of each row, so that their order counts too."""
    return rows.add_column(0, "position", pa.array(np.arange(rows.num_rows)))


def _from_source(spec: JoinQuerySpec, plan: JoinPlan, number: int, folder: Path) -> Recording:
    """What must have been recorded of a source with event time: a row far behind the greatest before it is late."""
    form, time = plan.formats[number], spec.streams[number].time
    rows = _given(spec, plan, number, folder)
    if time is None:
        raise UserMustAct(
            f"stream {form.name}: found arrival times, wanted a time column; they are only in a recording: "
            "joinery run --record DIR"
        )
    times = np.concatenate([np.empty(0, np.int64), *(ingest.times(form, one, 0) for one in rows.to_batches())])
    greatest = np.maximum.accumulate(times)
    late = np.zeros(times.size, np.bool_)
    late[1:] = times[1:] < greatest[:-1] - time.lateness
    return Recording(rows, times, late, pa.chunked_array([], pa.string()), np.empty(0, np.int64))


# --- second comparison: truth and output


@dataclass(frozen=True, slots=True)
class _Output:
    """A file that holds rows of the query."""

    title: str
    path: Path
    schema: pa.Schema
    stream: int | None = None
    """Holds the late rows of this stream; None: results."""


def _check_outputs(
    outputs: list[_Output], plan: JoinPlan, wanted: pa.Table, streams: list[Recording], say: Say
) -> bool:
    if not any(one.stream is None for one in outputs):
        raise UserMustAct("found no file with results, wanted one; add sinks: [{file: {path: results.parquet}}]")
    whole = Comparison()
    for output in outputs:
        right = wanted if output.stream is None else _late_rows(streams[output.stream])
        found = compare(_rows_of(output), right, _SHOWN)
        whole = replace(
            whole, missing=whole.missing + found.missing, extra=whole.extra + found.extra,
            duplicate=whole.duplicate + found.duplicate,
        )  # fmt: skip
        for one in islice(found.examples, _SHOWN):
            say(f"{output.title}: {one}")
    late = sum(int(one.late.sum()) for one in streams)
    rows = ", ".join(f"{form.name} {one.rows.num_rows:,}" for form, one in zip(plan.formats, streams, strict=True))
    results, files = counted(wanted.num_rows, "result"), counted(len(outputs), "file")
    say(f"checked {results} of {rows} rows ({late:,} late) in {files}")
    say(str(whole))
    return whole.exact


def _late_rows(recorded: Recording) -> pa.Table:
    return recorded.rows.filter(pa.array(recorded.late))


def _outputs(spec: JoinQuerySpec, plan: JoinPlan, folder: Path, recorded: Path | None) -> Iterator[_Output]:
    for sink in spec.sinks:
        if sink.file is not None:
            yield _Output(sink.file.path, folder / sink.file.path, plan.schema)
    if recorded is not None and (recorded / RESULTS).is_file():
        yield _Output("recorded results", recorded / RESULTS, plan.schema)
    if spec.late is not None and spec.late.sink.file is not None:
        path = folder / spec.late.sink.file.path
        for form in plan.formats:
            own = path.with_name(f"{path.stem}-{form.name}{path.suffix}")
            yield _Output(own.name, own, form.schema, form.index)


def _rows_of(output: _Output) -> pa.Table:
    """The rows of a file, in the types of the query."""
    if not output.path.is_file():
        raise UserMustAct(f"found no file {output.path}, wanted the output of the query; run it first")
    if FORMATS[output.path.suffix.lower()] == "Parquet":
        return pq.read_table(output.path).select(output.schema.names).cast(output.schema)
    if output.path.stat().st_size == 0:
        return output.schema.empty_table()
    form = StreamFormat(0, output.title, output.schema, KeyForm(output.title, (), ()))
    pieces = [piece.rows for piece in FileReader(output.path, form).read(0) if isinstance(piece, Piece)]
    return pa.Table.from_batches(pieces, output.schema)
