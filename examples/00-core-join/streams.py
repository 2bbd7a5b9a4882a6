"""The streams of a query file, made up and recorded: what gateway and log will do, in a few lines.

Every stream needs a generator, an end (`rows`) and event time; whatever else the file says of them is honoured or
refused. The first key column is drawn as `keys` says, further ones from 0 to 3; `number` (int64) is the row's number;
other columns are random numbers.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import Final

import pyarrow as pa

from joinery.flow import ingest
from joinery.flow.release import Release
from joinery.generate.arrivals import EvenArrivals
from joinery.generate.bmodel import BModelKeys
from joinery.generate.keys import Keys, UniformKeys
from joinery.generate.payload import Floats, Integers, PayloadColumn, RowNumbers
from joinery.generate.points import Independent
from joinery.generate.poisson import PoissonArrivals
from joinery.generate.profiles import Constant
from joinery.generate.streams import StreamGenerator
from joinery.generate.zipf import ZipfKeys
from joinery.join.plan import JoinPlan
from joinery.model.errors import BadSpec, Complaint
from joinery.model.ids import ProducerId
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_sections import GeneratorSpec, KeysSpec, StreamSpec
from joinery.model.time import NS_PER_UNIT
from joinery.model.tuples import TupleBatch
from joinery.model.types import ColumnType, Family
from joinery.partition.format import StreamFormat
from joinery.window.sliding import Marks
from joinery.window.watermark import StreamClock
from tests.oracle.recorded import FACTS

BATCH_ROWS: Final = 4096
DISORDER_NS: Final = 300_000_000
"""Rows are held back by up to this (with times in seconds, by up to 1 s): beyond the query's lateness they are late."""
DELAYED_SHARE: Final = 0.05
PRODUCER: Final = ProducerId("example")

Record = tuple[tuple[TupleBatch, ...], Marks]
"""A batch of each stream that has not ended, and the watermarks after it."""


def recorded(spec: JoinQuerySpec, plan: JoinPlan) -> Iterator[Record]:
    """The log of the query: batch after batch, late rows flagged, watermarks written, and every stream's end."""
    streams = [_batches(stream, form) for stream, form in zip(spec.streams, plan.formats, strict=True)]
    clocks = [StreamClock(stream.lateness) for stream in spec.streams]
    for number, batches in enumerate(zip_longest(*streams)):
        read = []
        for form, batch in zip(plan.formats, batches, strict=True):
            clock = clocks[form.index]
            if batch is None:
                clocks[form.index] = clock.end().recorded()
                continue
            rows = ingest.read(form, batch, first_place=number * BATCH_ROWS)
            read.append(replace(rows, late=clock.late(PRODUCER, rows.times)))
            clocks[form.index] = clock.sent(PRODUCER, rows.times).recorded()
        yield tuple(read), Marks(tuple(clock.watermark for clock in clocks))
    yield (), Marks(tuple(clock.end().recorded().watermark for clock in clocks))


def as_joined(plan: JoinPlan, log: list[Record]) -> list[Record]:
    """The log as workers get it: as it is, or, with a count window, every row when its turn has come."""
    if not plan.runs_in_order:
        return log
    release, found = Release(plan.streams), []
    for batches, marks in log:
        rows = tuple(release.admit(batches, marks.watermarks))
        found.append((rows, Marks(marks.watermarks, release.counts)))
    return found


def check(spec: JoinQuerySpec) -> None:
    """Refuse, with every complaint at once, streams that this example cannot make or check."""
    complaints = [
        complaint
        for place, stream in enumerate(spec.streams)
        for complaint in _complaints(f"spec.streams[{place}]", stream, stream.key_columns(spec.join))
    ]
    if complaints:
        raise BadSpec(complaints)


def _complaints(field: str, stream: StreamSpec, keys: list[str]) -> Iterator[Complaint]:
    source = stream.source
    if source is None or source.generator is None:
        found = "nothing" if source is None else "file" if source.file is not None else "redisStream"
        remedy = "write source: {generator: {rate: 1000, rows: 10000}}"
        yield Complaint(f"{field}.source", found, "a generator, which is all that this example reads", remedy)
    elif source.generator.rows is None:
        remedy = "write rows: 100000"
        yield Complaint(f"{field}.source.generator.rows", "nothing", "an end: the example runs to it", remedy)
    if source is not None and source.generator is not None:
        yield from _key_range(f"{field}.source.generator.keys.range", source.generator.keys.range, stream, keys[0])
    if stream.time is None:
        remedy = "write time: {column: ts, unit: us}"
        yield Complaint(f"{field}.time", "nothing", "event time: nothing arrives here", remedy)
    elif stream.time.column == keys[0]:
        remedy = "join on another column first"
        yield Complaint("spec.join.on", f"the time column {keys[0]} of {stream.name}", "a key of its own", remedy)
    known = [name.lower() for name in FACTS]
    for name, kind in stream.columns:
        if name.lower() in known:
            wanted = "names that differ, in any case, from each other and from " + ", ".join(FACTS)
            yield Complaint(f"{field}.schema", name, wanted, "rename it: DuckDB could not tell them apart")
        known.append(name.lower())
        is_time = stream.time is not None and name == stream.time.column
        if not _can_make(kind, is_key=name in keys, is_time=is_time):
            remedy = "give it such a type, or take it out"
            yield Complaint(f"{field}.schema.{name}", str(kind), "a type that is made here: integer or float", remedy)


def _key_range(field: str, found: int, stream: StreamSpec, key: str) -> Iterator[Complaint]:
    kind = dict(stream.columns)[key]
    if kind.family is Family.INTEGER:
        most = 2 ** (kind.arrow.bit_width - pa.types.is_signed_integer(kind.arrow))
        if found > most:
            yield Complaint(field, str(found), f"at most {most}, the keys that fit {key}, {kind}", "lower it")


def _can_make(kind: ColumnType, *, is_key: bool, is_time: bool) -> bool:
    if is_time and not is_key:
        return kind.family in (Family.INTEGER, Family.TIMESTAMP)
    return kind.family is Family.INTEGER or (kind.family is Family.FLOAT and not is_key)


def _batches(stream: StreamSpec, form: StreamFormat) -> Iterator[pa.RecordBatch]:
    """The rows that the stream's `source` describes, in the types of its schema; integers are cast by ingest."""
    for batch in _generator(stream, form.key.columns).batches(0, BATCH_ROWS):
        kinds = {field.name: field.type for field in form.schema if not pa.types.is_integer(field.type)}
        columns = {name: batch.column(name) for name in batch.schema.names}
        yield pa.RecordBatch.from_pydict(columns | {name: columns[name].cast(kind) for name, kind in kinds.items()})


def _generator(stream: StreamSpec, keys: tuple[str, ...]) -> StreamGenerator:
    """The stream's generator, with every 20th row held back on its way."""
    if stream.source is None or stream.source.generator is None or stream.time is None:
        raise AssertionError(f"{stream.name} was not checked")
    wanted, types = stream.source.generator, dict(stream.columns)
    time = types[stream.time.column]
    unit = time.arrow.unit if time.family is Family.TIMESTAMP else stream.time.unit
    others = [(name, kind) for name, kind in stream.columns if name not in (keys[0], stream.time.column)]
    return StreamGenerator(
        points=Independent(_arrivals(wanted), _keys(wanted.keys)), seed=wanted.seed, limit=wanted.rows,
        key_column=keys[0], time_column=stream.time.column, time_unit=unit,
        payload=tuple(_payload(name, kind, is_key=name in keys) for name, kind in others),
        lateness_ns=max(DISORDER_NS, NS_PER_UNIT[unit]), delayed_share=DELAYED_SHARE,
    )  # fmt: skip


def _arrivals(wanted: GeneratorSpec) -> PoissonArrivals | EvenArrivals:
    profile = Constant(rate_hz=wanted.rate)
    return EvenArrivals(profile) if wanted.arrivals == "constant" else PoissonArrivals(profile)


def _keys(wanted: KeysSpec) -> Keys:
    match wanted.distribution:
        case "uniform":
            return UniformKeys(wanted.range)
        case "zipf":
            return ZipfKeys(wanted.range, wanted.skew)
        case "b-model":
            return BModelKeys(wanted.range, wanted.skew)


def _payload(name: str, kind: ColumnType, *, is_key: bool) -> PayloadColumn:
    if kind.family is Family.FLOAT:
        return Floats(name, 0.0, 1000.0)
    if is_key:
        return Integers(name, 0, 4)
    return RowNumbers(name) if (name, kind.name) == ("number", "int64") else Integers(name, 1, _bound(kind))


def _bound(kind: ColumnType) -> int:
    return 100 if kind.arrow.bit_width == 8 else 1000
