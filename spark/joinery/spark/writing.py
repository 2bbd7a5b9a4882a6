"""Frames into a stream, each row once although Spark repeats what it is not sure of.

Rule 1: partition p of the frame is the producer `NAME/p`. NAME is the option `producer`, else the id that Spark keeps
        in the query's checkpoint; of a batch write it is drawn anew.
Rule 2: a micro-batch of a partition is one message whose number is the id of the micro-batch. The gateway knows what it
        has recorded: a micro-batch that is repeated after a crash, by whichever process, adds nothing. Its rows are
        put in the order of their times: Spark gives them in any, and late is only what is late by micro-batches.
Rule 3: before a micro-batch begins the driver opens a session for every producer. So all of them hold the watermark
        before the first row comes, and no partition is late because Spark started it after another. A partition
        without rows sends nothing: its session has said that it is there, and a message would keep an old time alive;
        the hole in its numbers is filled by its next message.
Rule 4: a batch write of one partition is a producer like any other: in many messages, of any size.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from joinery.client import numbered
from joinery.flow import ingest
from joinery.machine.messages import Opened
from joinery.model.errors import UserMustAct
from joinery.partition.format import StreamFormat
from joinery.spark.options import Options
from joinery.spark.schemas import check_frame

BATCH: Final = "streaming.sql.batchId"
_QUERY: Final = "sql.streaming.queryId"


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one partition recorded."""

    producer: str
    rows: int
    is_known: bool = False


class BatchWriter(DataSourceArrowWriter):
    """`frame.write.format("joinery")`."""

    def __init__(self, options: Options, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise UserMustAct("found mode overwrite, wanted append: a stream only grows; use .mode('append')")
        self._options, self._form = options, _checked(options, schema)
        self._name = options.producer or f"spark-{uuid4().hex[:12]}"
        opened = _join_all(options, self._form, self._name)
        self._is_done = all(one.ended for one in opened)
        """Whether the same write was made before, to its end."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """One partition, in an executor."""
        options, name = self._options, _producer(self._options, self._name)
        if self._is_done:
            return Written(name, 0, is_known=True)
        if options.producers > 1:
            return _record(options, self._form, name, 0, iterator)
        with options.connect() as query:
            producer = query.producer(self._form.name, name)
            producer.push(iterator, skip=producer.recorded)
            producer.flush()
            return Written(name, producer.rows, is_known=producer.recorded > 0)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """In the driver, when every partition is recorded."""
        if self._options.end:
            end_stream(self._options.gateway, self._form.name, self._name, options=self._options)


class StreamWriter(DataSourceStreamArrowWriter):
    """`frame.writeStream.format("joinery")`; Spark makes one for every micro-batch, and one for its commit."""

    def __init__(self, options: Options, schema: StructType) -> None:
        if options.end:
            raise UserMustAct("found the option end, wanted none: a streaming frame may go on; call end_stream")
        self._options, self._form = options, _checked(options, schema)
        if options.producers > 1:
            _join_all(options, self._form, options.producer or _query_id(options))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """One partition of one micro-batch, in an executor."""
        context = TaskContext.get()
        batch = None if context is None else context.getLocalProperty(BATCH)
        query = None if context is None else context.getLocalProperty(_QUERY)
        name = self._options.producer or query
        if batch is None or name is None:
            raise UserMustAct("found no id of the micro-batch, wanted a task of a streaming query; use writeStream")
        return _record(self._options, self._form, _producer(self._options, name), int(batch), iterator)


def end_stream(gateway: str, stream: str, producer: str, *, producers: int = 1, options: Options | None = None) -> None:
    """No more rows of this producer (a streaming query's `id`, or the option `producer`) will come to the stream."""
    chosen = options or Options.read({"gateway": gateway, "stream": stream, "producers": str(producers)})
    with chosen.connect() as query:
        form = query.form(stream)
    for partition in range(chosen.producers):
        numbered.end(chosen.place, form, f"{producer}/{partition}")


def _checked(options: Options, schema: StructType) -> StreamFormat:
    """The stream's form, which the frame fits."""
    if options.stream is None:
        raise UserMustAct("found no option stream, wanted the name of a stream of the query; .option('stream', ...)")
    with options.connect() as query:
        form = query.form(options.stream)
    check_frame(form, schema)
    return form


def _join_all(options: Options, form: StreamFormat, name: str) -> list[Opened]:
    """Rule 3."""
    return [numbered.join(options.place, form, f"{name}/{number}") for number in range(options.producers)]


def _producer(options: Options, name: str) -> str:
    """Of the partition that this task is."""
    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    if partition >= options.producers:
        raise UserMustAct(
            f"found partition {partition} of the frame, wanted at most {options.producers}; use "
            f"frame.coalesce({options.producers}), or .option('producers', n) with as many as the frame has"
        )
    return f"{name}/{partition}"


def _record(options: Options, form: StreamFormat, name: str, number: int, rows: Iterator[pa.RecordBatch]) -> Written:
    """All rows of a partition as one message (rule 2)."""
    batches = [ingest.conform(form, batch) for batch in rows if batch.num_rows]
    if not batches:
        return Written(name, 0)
    nbytes = sum(batch.nbytes for batch in batches)
    if nbytes > numbered.MAX_BYTES:
        raise UserMustAct(
            f"found {nbytes >> 20} MB in a partition of one batch, wanted at most {numbered.MAX_BYTES >> 20}; bound "
            "what a micro-batch reads (maxFilesPerTrigger, maxBytesPerTrigger, maxOffsetsPerTrigger), or more producers"
        )
    done = numbered.record(options.place, form, name, number, _in_order(form, pa.concat_batches(batches)))
    return Written(name, done.rows, is_known=done.is_known)


def _in_order(form: StreamFormat, rows: pa.RecordBatch) -> pa.RecordBatch:
    """By time: rows of one micro-batch come in any order, and none shall be late because of that."""
    return rows if form.time_column is None else rows.sort_by(form.time_column)


def _query_id(options: Options) -> str:
    """Spark's id of the query, as its checkpoint keeps it; the driver is told no other way."""
    if options.checkpoint is not None:
        metadata = Path(options.checkpoint.removeprefix("file://").removeprefix("file:")) / "metadata"
        if metadata.is_file():
            return str(json.loads(metadata.read_text())["id"])
    raise UserMustAct(
        f"found no checkpoint that can be read here ({options.checkpoint}), wanted one, to know the query by with more "
        "than one producer; give the query a name of its own: .option('producer', ...)"
    )
