"""`engine: spark`: a JoinQuery of files or generators from its sources to its sinks by Spark Structured Streaming.

Results are written as parts (`outputs`); at the end they become the files that the query names, in the service's own
formats. What Spark would not do exactly is refused (`join.fitness`).
"""

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from joinery.adapters.sinks.formats import Piece, format_of
from joinery.join.fitness import check
from joinery.join.plan import JoinPlan, JoinType
from joinery.model.errors import UserMustAct, require
from joinery.model.spec import JoinQuerySpec
from joinery.spark.inputs import JoinQueryInput
from joinery.spark.joining import joined
from joinery.spark.outputs import JoinQueryOutput, parts_of

_LOOK_S: Final = 0.1
_PASSED: Final = "2999"
"""Watermarks are texts such as 2999-12-31T23:59:58.999Z."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to."""

    rows: dict[str, int]
    late: dict[str, int]
    results: int
    seconds: float


def run(spec: JoinQuerySpec, folder: Path, spark: SparkSession, shared: Path | None = None) -> Outcome:
    """The query from beginning to end; the files of its sinks are there when this returns.

    `shared`: a folder that the executors have, too; left out: they are on this machine.
    """
    check(spec)
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="joinery-spark-", dir=shared) as work:
        parts = Path(work) / "parts"
        parts.mkdir()
        query = _started(spec, folder, spark, parts, Path(work) / "checkpoint")
        try:
            offsets = _wait(query, is_closing=JoinPlan.of(spec).type is not JoinType.INNER)
        finally:
            query.stop()
        found = _write_sinks(spec, folder, Path(work))
    rows = {stream.name: end["rows"] for stream, end in zip(spec.streams, offsets, strict=True)}
    late = {stream.name: end["late"] for stream, end in zip(spec.streams, offsets, strict=True)}
    return Outcome(rows, late, found, time.monotonic() - began_s)


def _started(spec: JoinQuerySpec, folder: Path, spark: SparkSession, parts: Path, checkpoint: Path) -> StreamingQuery:
    spark.dataSource.register(JoinQueryInput)
    spark.dataSource.register(JoinQueryOutput)
    text = json.dumps(spec.to_dict())
    left, right = (
        spark.readStream.format("joinery-input").options(spec=text, folder=str(folder.resolve()), stream=number).load()
        for number in range(len(spec.streams))
    )
    writing = joined(spec, (left, right)).writeStream.format("joinery-output").options(spec=text, parts=str(parts))
    return writing.option("checkpointLocation", str(checkpoint)).start()


def _wait(query: StreamingQuery, *, is_closing: bool) -> list[dict[str, Any]]:
    """Until all is read and, where unmatched rows matter, closed; where the sources ended."""
    while True:
        query.processAllAvailable()
        progress = query.lastProgress
        if progress is not None:
            ends = [json.loads(source.endOffset or "{}") for source in progress.sources]
            if all(end.get("over") for end in ends) and (not is_closing or _has_passed(progress.eventTime)):
                return ends
        require(query.isActive, "the streaming query ended by itself")
        time.sleep(_LOOK_S)


def _has_passed(event_time: dict[str, str]) -> bool:
    return event_time.get("watermark", "") >= _PASSED


def _write_sinks(spec: JoinQuerySpec, folder: Path, work: Path) -> int:
    """The files that the query names, of what was written; how many results there are."""
    plan = JoinPlan.of(spec)
    for number, sink in enumerate(spec.sinks):
        if sink.file is not None:
            path = folder / sink.file.path
            form = format_of(path, plan.schema)
            if form is None:
                raise UserMustAct(f"found {path}, wanted a name that ends in .parquet, .csv or .ndjson; rename it")
            whole, made = work / f"whole-{number}", path.with_name(f".{path.name}.joinery-spark")
            with whole.open("wb") as file:
                file.write(form.beginning)
                for rows in parts_of(work / "parts"):
                    for piece in form.encode(rows):
                        file.write(piece)
            form.join([Piece(whole, whole.stat().st_size)], made)
            made.replace(path)
    return sum(rows.num_rows for rows in parts_of(work / "parts"))
