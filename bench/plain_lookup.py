"""The lookup application without Spark: the same server and the same tasks, its table read by Arrow. It starts at once.

`python -m bench.plain_lookup` takes the flags of `joinery.spark.lookup`. Tests and figures run it.
"""

import argparse
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from joinery.adapters.security import PLAIN
from joinery.join.plan import JoinPlan
from joinery.model.errors import require
from joinery.model.spec import JoinQuery, JoinQuerySpec
from joinery.spark.cutting import GROUP, cut_group, is_same, relation_from, stored_form, task_of, with_groups
from joinery.spark.lookup import serve
from joinery.spark.segment_files import SegmentFiles


def cut_table(table: pa.Table, spec: JoinQuerySpec, files: SegmentFiles) -> int:
    """A new version if the rows are others than before; the newest version."""
    newest = max(files.versions(), default=0)
    task = task_of(spec, files, newest + 1, newest)
    chosen = table.select(stored_form(JoinPlan.of(spec)).schema.names)
    marked = pa.Table.from_batches(list(with_groups(task, iter(chosen.to_batches()))) or [])
    told = []
    for group in marked[GROUP].unique().to_pylist():
        own = marked.filter(pa.compute.equal(marked[GROUP], group))
        told += cut_group(task, group, own)
    relation = relation_from(told, task)
    if newest and is_same(relation, files.relation(newest)):
        return newest
    files.publish(relation, "")
    return newest + 1


def stamps(path: Path) -> list[tuple[str, int, int]]:
    """What the table's files are now."""
    files = [path] if path.is_file() else sorted(path.glob("*.parquet"))
    return [(str(one), one.stat().st_size, one.stat().st_mtime_ns) for one in files]


def main(opened: Callable[[Path], SegmentFiles] = SegmentFiles) -> int:
    """Serve until told to stop; `opened`: the files that answers come from."""
    parser = argparse.ArgumentParser()
    for name in ("--query", "--as-read", "--segments", "--record"):
        parser.add_argument(name, type=Path)
    for name in ("--listen", "--with-parent"):
        parser.add_argument(name)
    flags = parser.parse_args()
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    spec = JoinQuery.parse_yaml(flags.query.read_text()).spec
    files = opened(flags.segments)
    require(spec.table is not None, "the query has no table")
    assert spec.table is not None  # noqa: S101 - for the type
    path = flags.query.resolve().parent / spec.table.path
    server, _ = serve(files, flags.listen, PLAIN)
    seen: list[tuple[str, int, int]] = []
    parent = os.getppid()
    while not stopping.is_set() and os.getppid() == parent:
        if (now := stamps(path)) != seen:
            table = pq.read_table(path)
            before = max(files.versions(), default=0)
            if flags.record is not None:
                kept = flags.record / f"table-{before + 1}"
                shutil.rmtree(kept, ignore_errors=True)
                kept.mkdir(parents=True)
                pq.write_table(table, kept / "part-0.parquet")
            cut_table(table, spec, files)
            seen = now
        stopping.wait(spec.table.refresh / 1e9)
    server.stop(grace=None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
