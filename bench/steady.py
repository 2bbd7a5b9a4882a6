"""Joins in their steady state: windows that are full, so that as many rows leave as come.

`window_growth`: what ten times the window costs a tuple, at the same rate and with as many partners for a row (ten
times the keys). `fine_tuning`: nested loops over whole partition-groups of 10 θ, and over the mini-groups that fine
tuning makes of them. What is compared is filled first and then takes turns, a slice of the stream each.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

from bench.answer import BenchError
from bench.core_join import feed, plan_of, read
from bench.inputs import NS_PER_US, Turn
from bench.lab import Lab
from bench.measure import Sample, in_turns, seconds
from bench.report import Metric
from joinery.generate.keys import UniformKeys
from joinery.generate.workloads import TUPLE_BYTES, Workload
from joinery.join.logic import WindowJoin
from joinery.join.nested_loop import NestedLoopMethod
from joinery.join.plan import JoinPlan
from joinery.model.ids import StreamIndex
from joinery.window.sliding import Marks

_SECOND_NS: Final = 1_000_000_000
_FILL: Final = 1.2
"""Windows that pass before the clock starts: the second time around, memory is used again."""

THETA_KI: Final = 256
BLOCK_KI: Final = 4
GROUPS: Final = 4
THETAS_PER_GROUP: Final = 10


@dataclass(slots=True)
class Steady:
    """A join whose windows are full, and the rest of its endless streams."""

    join: WindowJoin
    turns: Iterator[Turn]
    pairs: int = 0
    spent_s: float = 0.0
    """Inside the clock, after the filling."""

    @staticmethod
    def filled(plan: JoinPlan, workload: Workload, batch_rows: int) -> "Steady":
        """Fed until a bit more than a window has passed."""
        steady = Steady(WindowJoin(plan), paired(workload, batch_rows))
        needed = int(_FILL * workload.window_ns / _SECOND_NS * workload.rate_hz) // batch_rows + 1
        feed(steady.join, read(plan, islice(steady.turns, needed)))
        return steady

    def slice(self, turns: int) -> float:
        """Seconds per tuple over the next turns."""
        fed = list(read(self.join.plan, islice(self.turns, turns)))
        rows = sum(len(batch) for batches, _ in fed for batch in batches)

        def run() -> None:
            self.pairs += feed(self.join, fed)

        took = seconds(run)
        self.spent_s += took
        return took / rows


def paired(workload: Workload, batch_rows: int) -> Iterator[Turn]:
    """The workload's streams without an end, made as they are asked for, a batch of each per turn.

    They are cut at the same row numbers, which at equal rates are nearly the same times; watermarks are exact.
    """
    streams = [workload.stream(StreamIndex(index)).batches(rows_per_batch=batch_rows) for index in range(2)]
    for number, batches in enumerate(zip(*streams, strict=True)):
        times = tuple(batch.column("ts")[-1].as_py() * NS_PER_US for batch in batches)
        yield Turn(batches, (number * batch_rows,) * 2, Marks(times))


def _uniform(name: str, rows_in_window: int, window_ns: int) -> Workload:
    """Streams of which so many rows are in a window, and each finds about one partner among the earlier ones."""
    rate = rows_in_window * _SECOND_NS / window_ns
    keys = UniformKeys(rows_in_window)
    return Workload(name=name, rows_per_stream=2**40, rate_hz=rate, keys=keys, window_ns=window_ns, seed=31)


def window_growth(lab: Lab) -> list[Metric]:
    """From 1 s to 10 s (the window of U1), and from there to 100 s, at U1's 100,000 rows/s; a quick look is shorter."""
    joins = {}
    for length in (1, 10, 100):
        window_ns = length * _SECOND_NS // lab.scale
        name = f"{window_ns / _SECOND_NS:g} s"
        workload = _uniform(name, 100_000 * length // lab.scale, window_ns)
        lab.say(f"window growth: filling a window of {name}")
        joins[name] = Steady.filled(plan_of(workload, rows=False), workload, batch_rows=1 << 14)
    found = in_turns({name: partial(one.slice, 8) for name, one in joins.items()}, 3 * lab.reps)
    for name, sample in found.items():
        lab.say(f"window growth: window of {name}: {_shown(sample)}")
    short, middle, long = found.values()
    return [
        Metric.ratio("core.hash.window_growth", long, middle),
        Metric.ratio("core.hash.window_growth.small", middle, short),
    ]


def fine_tuning(lab: Lab) -> list[Metric]:
    """Nested loops with and without fine tuning, groups of 10 θ, both streams together."""
    theta_ki = max(BLOCK_KI, THETA_KI // lab.scale)
    rows = GROUPS * THETAS_PER_GROUP * theta_ki * 1024 // TUPLE_BYTES // 2
    workload = _uniform("fine tuning", rows, _SECOND_NS)
    lab.say(f"fine tuning: filling {GROUPS} groups of {THETAS_PER_GROUP} x {theta_ki} Ki, tuned and not")
    plain, tuned = (
        Steady.filled(_nested_loops(workload, theta_ki, enabled=enabled), workload, batch_rows=1 << 12)
        for enabled in (False, True)
    )
    before = _comparisons(plain)
    turns = in_turns({"plain": partial(plain.slice, 2), "tuned": partial(tuned.slice, 2)}, 2 * lab.reps)
    for name, sample in turns.items():
        lab.say(f"fine tuning: {name} {_shown(sample)}")
    if plain.pairs != tuned.pairs:
        raise BenchError(f"nested loops give {plain.pairs} pairs, fine-tuned {tuned.pairs}")
    rate = (_comparisons(plain) - before) / plain.spent_s
    return [
        Metric.ratio("core.fine_tuning.speedup", turns["plain"], turns["tuned"]),
        Metric("core.nested_loop.comparisons_per_s", rate, "1/s"),
    ]


def _comparisons(steady: Steady) -> int:
    method = steady.join.method
    return method.comparisons if isinstance(method, NestedLoopMethod) else 0


def _nested_loops(workload: Workload, theta_ki: int, *, enabled: bool) -> JoinPlan:
    join = {"on": ["key"], "method": "nested-loop"}
    tuning = {"enabled": enabled, "theta": f"{theta_ki}Ki", "block": f"{BLOCK_KI}Ki"}
    return plan_of(workload, rows=False, join=join, partitions=GROUPS, fineTuning=tuning)


def _shown(sample: Sample) -> str:
    return f"{1e9 * sample.median:,.0f} ns per tuple ({1e9 * sample.low:,.0f} to {1e9 * sample.high:,.0f})"
