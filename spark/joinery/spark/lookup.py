"""`python -m joinery.spark.lookup`: the lookup application of a query with a stored table (docs/hybrid.md).

It cuts the table into segments (`segmenting`), looks every `refresh` whether the table has changed and then cuts a new
version, and answers gateway and workers (lookup.proto): which version there is, how it is cut, whole segments.

Rule 1: it answers from its first moment; before the first version is cut that is "none yet", and rows wait.
Rule 2: all that it knows is in its folder of segments: one that is started again goes on there.
Rule 3: a table that changes while it is read is read again.
Rule 4: a Spark that fails ends the process; whoever looks after it starts it again.
Rule 5: once there is a version, a table that is not there for a moment, or cannot be read, changes nothing: that is
        told once, the version stays in force, and the table is looked at again.
"""

import argparse
import hashlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import grpc
import numpy as np

from joinery.adapters.codec.frames import pack
from joinery.adapters.http_probes import Answer, open_probes
from joinery.adapters.lookups import METHOD, UNBOUNDED_OPTIONS, segment_answer
from joinery.adapters.security import Security
from joinery.adapters.settings import CANNOT_RUN, end_with_parent
from joinery.adapters.tuning import keep_memory
from joinery.model.errors import UserMustAct
from joinery.model.spec import JoinQuery, JoinQuerySpec
from joinery.model.spec_table import TableSpec
from joinery.spark.cutting import is_same
from joinery.spark.segment_files import SegmentFiles
from joinery.v1 import lookup_pb2 as wire

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SERVICE, _RPC = METHOD.strip("/").split("/")
_PEERS: Final = 64


def serve(files: SegmentFiles, address: str, security: Security) -> tuple[grpc.Server, int]:
    """Answer questions from what lies in the folder; the server and its port."""
    server = grpc.server(ThreadPoolExecutor(_PEERS, "lookup"), options=(*UNBOUNDED_OPTIONS, ("grpc.so_reuseport", 0)))

    def look(questions: Iterator[wire.Question], context: Any) -> Iterator[bytes]:
        security.admit(context, is_for_clients=False)
        for question in questions:
            yield from _answers(files, question, context)

    handler = grpc.stream_stream_rpc_method_handler(
        look, request_deserializer=wire.Question.FromString, response_serializer=bytes
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, {_RPC: handler}),))
    try:
        port = security.add_port(server, address)
    except RuntimeError as error:
        raise UserMustAct(f"--listen: found {address} ({error}), wanted a free address; choose another") from error
    server.start()
    return server, port


def _answers(files: SegmentFiles, question: wire.Question, context: Any) -> Iterator[bytes]:
    try:
        match question.WhichOneof("message"):
            case "ask_version":
                files.forget(question.ask_version.oldest)
                newest = max(files.versions(), default=0)
                yield pack(wire.Answer(version=wire.Version(version=newest)))
            case "ask_relation":
                data = files.relation_bytes(question.ask_relation.version)
                yield pack(wire.Answer(relation=wire.Relation.FromString(data)))
            case "ask_segments":
                asked = question.ask_segments
                names = (np.frombuffer(data, "<i8").tolist() for data in (asked.stamps, asked.numbers))
                for stamp, number in zip(*names, strict=True):
                    yield segment_answer(stamp, number, files.read(stamp, number))
            case _:
                context.abort(grpc.StatusCode.UNIMPLEMENTED, "found no question that is known, wanted one")
    except FileNotFoundError as error:
        context.abort(grpc.StatusCode.NOT_FOUND, f"found no {error.filename}, wanted what a version names")


class Segmenter:
    """Follows the table: a version for every change."""

    def __init__(
        self, spark: "SparkSession", spec: JoinQuerySpec, query: Path, files: SegmentFiles, record: Path | None
    ) -> None:
        self._spark, self._spec, self._files, self._record = spark, spec, files, record
        self._told = ""
        """What was told last of a table that cannot be read."""
        table = _table_of(spec)
        self.path = table.path if "://" in table.path else str((query.resolve().parent / table.path).resolve())

    def look(self) -> int:
        """Cut a new version if the table has changed; the newest version."""
        from joinery.spark.segmenting import cut_version, read_table  # noqa: PLC0415 - after the server is up

        newest, own = max(self._files.versions(), default=0), 0
        while (seen := self._seen()) != (self._files.seen(newest) if newest else ""):
            if seen is None:
                raise self._missing()
            frame = read_table(self._spark, self._spec, self.path)
            own = own or self._files.reserve()
            relation = cut_version(frame, self._spec, self._files, own, newest)
            if self._record is not None:
                frame.write.mode("overwrite").parquet(str(self._record / f"table-{own}"))
            if self._seen() != seen:
                continue  # rule 3
            if newest and is_same(relation, self._files.relation(newest)):
                self._files.see_again(newest, seen)
                self._files.release(own)
                return newest
            self._files.publish(relation, seen)
            return own
        return newest

    def follow(self) -> None:
        """As `look`, but rule 5."""
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # noqa: PLC0415 - as above
        from pyspark.errors import PySparkException  # noqa: PLC0415

        try:
            self.look()
        except (UserMustAct, PySparkException, Py4JJavaError) as error:
            if not self._files.versions() or self._spark.sparkContext._jsc.sc().isStopped():
                raise
            told = f"{str(error).splitlines()[0]}; the version before it stays in force"
            if told != self._told:
                sys.stderr.write(f"lookup: {told}\n")
            self._told = told
        else:
            self._told = ""

    def _missing(self) -> UserMustAct:
        table = "spec.streams[1].table.path"
        return UserMustAct(f"{table}: found no files at {self.path}, wanted the stored table; check the path")

    def _seen(self) -> str | None:
        """What the table's files are now: names, sizes, times; None: there is no table, or nothing in it."""
        jvm, context = self._spark.sparkContext._jvm, self._spark.sparkContext
        if jvm is None:
            raise RuntimeError("Spark has no JVM")
        path = jvm.org.apache.hadoop.fs.Path(self.path)
        system = path.getFileSystem(context._jsc.hadoopConfiguration())
        if not system.exists(path):
            return None
        found, files = [], system.listFiles(path, True)
        while files.hasNext():
            one = files.next()
            name = one.getPath().toString()
            if "/_temporary/" not in name and not name.rpartition("/")[2].startswith("."):
                found.append(f"{name} {one.getLen()} {one.getModificationTime()}")
        return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest() if found else None


def _table_of(spec: JoinQuerySpec) -> TableSpec:
    if spec.table is None:
        raise UserMustAct("found a query without a table, wanted one; there is nothing to look up")
    return spec.table


def main(arguments: list[str] | None = None) -> int:
    """Serve until a signal comes; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m joinery.spark.lookup", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--query", type=Path, required=True, help="the JoinQuery file")
    parser.add_argument("--as-read", type=Path, help="its text as somebody has read it; left out: as it is")
    parser.add_argument("--segments", type=Path, required=True, help="folder of the segments; it is kept for restarts")
    parser.add_argument("--listen", required=True, help="address to serve on, such as 127.0.0.1:7003")
    parser.add_argument("--record", type=Path, help="folder to keep every version of the table in, for joinery verify")
    parser.add_argument("--tls", type=Path, help="folder with ca.crt, tls.crt, tls.key; left out: plain text")
    parser.add_argument("--http", default="", help="address for probes, such as 0.0.0.0:8080; left out: none")
    parser.add_argument("--last-words", type=Path, help="file to say in why it cannot run")
    spark_log = "file for what Spark says, - for stderr; left out: beside the segments"
    parser.add_argument("--spark-log", default="", help=spark_log)
    parser.add_argument("--with-parent", type=int, default=0, help="end when the parent, which has this id, ends")
    flags = parser.parse_args(arguments)
    if flags.with_parent:
        end_with_parent(flags.with_parent)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        return _run(flags, stopping)
    except UserMustAct as refused:
        sys.stderr.write(f"lookup: {refused}\n")
        if flags.last_words is not None:
            flags.last_words.write_text(f"lookup: {refused}")
        return CANNOT_RUN


def _run(flags: argparse.Namespace, stopping: threading.Event) -> int:
    keep_memory()
    spec = JoinQuery.parse_yaml((flags.as_read or flags.query).read_text()).spec
    table, files = _table_of(spec), SegmentFiles(flags.segments.resolve())
    probes = open_probes(flags.http)
    if probes is not None:
        probes.pages["/readyz"] = lambda: _readiness(files)
    server, _ = serve(files, flags.listen, Security.read(flags.tls, ""))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        from joinery.spark import session  # noqa: PLC0415 - the server answers while Spark is loaded

        with _quiet(flags.spark_log, files.folder / "spark.log"), session.local("joinery lookup") as spark:
            segmenter = Segmenter(spark, spec, flags.query, files, flags.record)
            while not stopping.is_set():
                segmenter.follow()
                stopping.wait(table.refresh / 1e9)
    finally:
        server.stop(grace=None)
        if probes is not None:
            probes.close()
    return 0


def _readiness(files: SegmentFiles) -> Answer:
    return Answer(200, "ok") if files.versions() else Answer(503, "no version of the table is cut yet")


@contextmanager
def _quiet(asked: str, usual: Path) -> Iterator[None]:
    """What the JVM has to say goes to a file of its own, if nobody wants it here; what we say does not."""
    if asked == "-":
        yield
        return
    own = os.dup(2)
    with (Path(asked) if asked else usual).open("ab") as log:
        os.dup2(log.fileno(), 2)
    sys.stderr = os.fdopen(own, "w", buffering=1, closefd=False)
    try:
        yield
    finally:
        os.dup2(own, 2)
        sys.stderr = sys.__stderr__


if __name__ == "__main__":
    sys.exit(main())
