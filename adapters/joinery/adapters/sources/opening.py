"""From a query's spec to its sources: one for each stream that has one."""

from collections.abc import Callable
from pathlib import Path

from joinery.adapters.embedded_redis import connect
from joinery.adapters.process import Process
from joinery.adapters.sources.files import FORMATS, FileReader
from joinery.adapters.sources.generated import GeneratedReader
from joinery.adapters.sources.pacing import PacedReader
from joinery.adapters.sources.pieces import Reader
from joinery.adapters.sources.redis_stream import RedisReader
from joinery.adapters.sources.source import Source
from joinery.join.plan import JoinPlan
from joinery.model.errors import BadSpec, Complaint
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_sections import SourceSpec, StreamSpec
from joinery.partition.format import StreamFormat


def open_sources(
    spec: JoinQuerySpec,
    plan: JoinPlan,
    folder: Path,
    process: Process,
    redis_url: str,
    failed: Callable[[Source], None] | None = None,
) -> list[Source]:
    """The sources of a query, none of them started; files are relative to `folder`, the query file's own.

    Whatever the spec asks for that cannot be done is refused here, all at once. `failed` is called, on the source's
    thread, when one has stopped with an error; left out: the gateway's shell is stopped with it.
    """
    found: list[Source] = []
    complaints: list[Complaint] = []
    for place, (stream, form) in enumerate(zip(spec.streams, plan.formats, strict=True)):
        if stream.source is None or stream.table is not None:
            continue
        try:
            reader = reader_of(f"spec.streams[{place}]", stream, form, folder, redis_url)
        except BadSpec as bad:
            complaints += bad.complaints
        else:
            found.append(Source(place, stream.name, reader, process, failed))
    if complaints:
        raise BadSpec(complaints)
    return found


def reader_of(field: str, stream: StreamSpec, form: StreamFormat, folder: Path, redis_url: str) -> Reader:
    """What reads the source of one stream."""
    source = stream.source
    if source is None:
        raise BadSpec([Complaint(f"{field}.source", "nothing", "a source", "push the rows of this stream")])
    reader = _plain(field, stream, form, folder, redis_url, source)
    if source.pace == "none":
        return reader
    if isinstance(reader, RedisReader):
        remedy = "leave pace out: its entries come as they are written"
        raise BadSpec([Complaint(f"{field}.source.pace", "time", "none for a Redis Stream", remedy)])
    if form.time_column is None and not isinstance(reader, GeneratedReader):
        remedy = "add time: {column: ...}, or leave pace out"
        raise BadSpec([Complaint(f"{field}.source.pace", "time", "none without event time", remedy)])
    return PacedReader(reader, form)


def _plain(
    field: str, stream: StreamSpec, form: StreamFormat, folder: Path, redis_url: str, source: SourceSpec
) -> Reader:
    if source.generator is not None:
        return GeneratedReader(field, stream, form, source.generator)
    if source.redis_stream is not None:
        wanted = source.redis_stream
        return RedisReader(lambda: connect(redis_url), wanted.key, wanted.start, form)
    name = source.file.path if source.file is not None else ""
    path = folder / name
    if path.suffix.lower() not in FORMATS:
        wanted_endings = f"a name that ends in {', '.join(FORMATS)}"
        remedy = "rename the file: its ending says its format"
        raise BadSpec([Complaint(f"{field}.source.file.path", name, wanted_endings, remedy)])
    return FileReader(path, form)
