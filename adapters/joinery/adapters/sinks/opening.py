"""The sinks of a query, from its spec: whatever cannot be written is refused here, before a row comes.

Results go to `spec.sinks`; late rows, whose columns differ by stream, to one sink per stream, named by it: of
`late: {sink: {file: {path: late.csv}}}` the files late-orders.csv and late-fulfilments.csv, of a Redis Stream `late`
the keys late-orders and late-fulfilments.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from redis import Redis

from joinery.adapters.redis_calls import run_of
from joinery.adapters.sinks.chosen import Chosen
from joinery.adapters.sinks.file_sink import FileSink
from joinery.adapters.sinks.formats import ENDINGS, ParquetFormat, format_of, is_writable
from joinery.adapters.sinks.light import CountSink, StdoutSink
from joinery.adapters.sinks.redis_stream import RedisStreamSink, StreamTarget
from joinery.join.plan import JoinPlan
from joinery.join.results import Kind
from joinery.machine.ports import Sink
from joinery.model.errors import BadSpec, Complaint, require
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_sections import SinkSpec


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One sink to open."""

    name: str
    field: str
    """Where the spec asks for it."""
    spec: SinkSpec
    chosen: Chosen
    suffix: str = ""
    """What tells it from the other sinks of the same entry."""

    def path(self, directory: Path) -> Path | None:
        if self.spec.file is None:
            return None
        path = directory / self.spec.file.path
        return path.with_name(f"{path.stem}{self.suffix}{path.suffix}")


@dataclass(frozen=True, slots=True)
class _Stores:
    """Where sinks keep things, and by which names."""

    redis: Redis | None
    query: str
    run: str
    output: BinaryIO
    is_durable: bool


def open_sinks(
    spec: JoinQuerySpec,
    plan: JoinPlan,
    directory: Path,
    redis: Redis | None = None,
    query: str = "query",
    *,
    output: BinaryIO | None = None,
) -> list[Sink]:
    """The sinks, in the order of the spec; `BadSpec` with every complaint.

    Paths are relative to `directory`. `redis` and `query` are those of the query's other stores: they tell this run
    from earlier ones (`part_files`, rule 4). Without a Redis there are no streams, and `query` alone names what is kept
    meanwhile: then it must be another one for every run. `output`: in place of the standard output.
    """
    wanted = list(_wanted(spec, plan))
    complaints = [*_complaints(wanted, directory)]
    if complaints:
        raise BadSpec(complaints)
    has_files = any(one.spec.file is not None for one in wanted)
    run = run_of(redis, query) if redis is not None and has_files else quote(query, safe="")
    stores = _Stores(redis, query, run, output or sys.stdout.buffer, is_durable=spec.checkpoint.durability == "wal")
    return [_open(one, directory, stores) for one in wanted]


def recording_sink(plan: JoinPlan, path: Path, redis: Redis, query: str) -> Sink:
    """A file of results for `joinery verify`, beside the sinks of the spec."""
    form = ParquetFormat(plan.schema)
    return FileSink("recorded", path, form, Chosen(plan.schema), run_of(redis, query), durable=False)


def stream_targets(sinks: Iterable[Sink]) -> list[StreamTarget]:
    """What `RedisCommits` must make visible."""
    return [sink.target for sink in sinks if isinstance(sink, RedisStreamSink)]


def _wanted(spec: JoinQuerySpec, plan: JoinPlan) -> Iterator[_Wanted]:
    for number, sink in enumerate(spec.sinks):
        yield _Wanted(f"sink-{number}", f"spec.sinks[{number}]", sink, Chosen(plan.schema))
    if spec.late is not None:
        for form in plan.formats:
            chosen = Chosen(form.schema, Kind.LATE, form.index)
            yield _Wanted(f"late-{form.name}", "spec.late.sink", spec.late.sink, chosen, f"-{form.name}")


def _complaints(wanted: list[_Wanted], directory: Path) -> Iterator[Complaint]:
    targets = Counter(str(target) for one in wanted if (target := _target(one, directory)) is not None)
    for one in wanted:
        path, target = one.path(directory), str(_target(one, directory))
        place = f"{one.field}.{'file.path' if path is not None else 'redisStream.key'}"
        if path is not None and path.suffix.lower() not in ENDINGS:
            yield Complaint(place, path.name, f"a file that ends with {', '.join(ENDINGS)}", "rename the file")
        if path is not None and path.is_dir():
            yield Complaint(place, f"the directory {path}", "a file", "name a file in it")
        if targets[target] > 1:
            yield Complaint(place, f"{target} more than once", "one sink for each target", "rename one of them")
        for field in one.chosen.schema:
            if not is_writable(field.type):
                yield Complaint(one.field, f"column {field.name} of type {field.type}", "a type that can be written",
                                "leave the column out with select")  # fmt: skip


def _target(one: _Wanted, directory: Path) -> Path | str | None:
    stream, path = one.spec.redis_stream, one.path(directory)
    if stream is not None:
        return f"{stream.key}{one.suffix}"
    return None if path is None else path.resolve()  # two ways to one file are one target


def _open(one: _Wanted, directory: Path, stores: _Stores) -> Sink:
    path, stream = one.path(directory), one.spec.redis_stream
    if path is not None:
        form = format_of(path, one.chosen.schema)
        require(form is not None, f"{path} has no format, and nobody complained")
        return FileSink(one.name, path, form, one.chosen, stores.run, durable=stores.is_durable)  # type: ignore[arg-type]
    if stream is not None:
        require(stores.redis is not None, "a Redis Stream sink without a Redis")
        key = f"{stream.key}{one.suffix}"
        return RedisStreamSink(one.name, stores.redis, stores.query, key, one.chosen)  # type: ignore[arg-type]
    if one.spec.count is not None:
        return CountSink(one.name, one.chosen)
    return StdoutSink(one.name, stores.output, one.chosen)
