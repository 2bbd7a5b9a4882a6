"""The core, driven as a worker drives it: both streams' batches of a turn, then the watermarks."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from bench.answer import Answer, BenchError
from bench.inputs import Turn
from joinery.flow import ingest
from joinery.generate.workloads import PAYLOAD_BYTES, Workload
from joinery.join.logic import WindowJoin
from joinery.join.plan import JoinPlan
from joinery.join.results import ResultPart
from joinery.model.spec import JoinQuerySpec
from joinery.model.tuples import TupleBatch
from joinery.window.sliding import Marks

Fed = tuple[tuple[TupleBatch, ...], Marks]
"""What `on_batch` takes."""

_SCHEMA: Final = {"ts": "int64", "key": "int64", "payload": f"binary({PAYLOAD_BYTES})"}


def plan_of(workload: Workload, *, rows: bool, **sections: object) -> JoinPlan:
    """The plan of a workload's join: whole result rows, or only the members' positions."""
    stream = {"schema": _SCHEMA, "window": f"{workload.window_ns}ns", "time": {"column": "ts", "unit": "us"}}
    spec = {"streams": [{"name": name, **stream} for name in ("s1", "s2")], "join": {"on": ["key"]}, **sections}
    plan = JoinPlan.of(JoinQuerySpec.parse(spec))
    return plan if rows else replace(plan, output=())


def read(plan: JoinPlan, turns: Iterable[Turn]) -> Iterator[Fed]:
    """Arrow batches as the tuples that the join takes."""
    for turn in turns:
        parts = zip(plan.formats, turn.batches, turn.firsts, strict=True)
        yield tuple(ingest.read(form, batch, first_place=first) for form, batch, first in parts), turn.marks


def feed(join: WindowJoin, fed: Iterable[Fed]) -> int:
    """Join it all; the number of pairs."""
    pairs = 0
    for batches, marks in fed:
        for part in join.on_batch(batches, marks):
            pairs += len(part.groups)
    return pairs


def answer_of(plan: JoinPlan, fed: Iterable[Fed], streams: tuple[pa.RecordBatch, ...] = ()) -> Answer:
    """Number and checksum of the pairs; with `streams`, every result row is also compared with its members' columns."""
    join, pairs, checksum = WindowJoin(plan), 0, 0
    for batches, marks in fed:
        for part in join.on_batch(batches, marks):
            first, second = (np.asarray(places, np.int64) for places in part.members)
            pairs += first.size
            checksum += int(np.sum((first * 1000003 + second * 7919) % 1000000007))
            _check_rows(part, streams)
    return Answer(pairs, checksum)


def _check_rows(part: ResultPart, streams: tuple[pa.RecordBatch, ...]) -> None:
    for number, (rows, places) in enumerate(zip(streams, part.members, strict=False), start=1):
        wanted = rows.take(pa.array(places))
        for name in rows.schema.names:
            if not part.rows.column(f"s{number}_{name}").equals(wanted.column(name)):
                raise BenchError(f"column s{number}_{name} of the core's result rows is not what came in")


def living_rows(turns: list[Turn], window_ns: int) -> int:
    """Rows of both streams that the last watermarks have not passed by a window."""
    last, living = turns[-1].marks.watermarks, 0
    for stream, passed in enumerate(reversed(last)):
        for turn in reversed(turns):
            times = turn.batches[stream].column("ts").to_numpy()
            found = int(np.count_nonzero(times * 1000 >= passed - window_ns))
            living += found
            if found < times.size:
                break
    return living
