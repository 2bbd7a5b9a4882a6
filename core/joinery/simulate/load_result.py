"""What a simulated run tells: decisions, moves, samples over time, and summaries of any part of it.

The production delay of a result is the time from the arrival of its later tuple to its output (seed 000, VI.A).
Communication is the time in which a worker receives rows or waits for its turn; the bytes of moved state are counted
apart. Idle is what is left: wall - busy - communication - moving.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import pairwise
from math import isnan
from typing import Final

import numpy as np

from joinery.model.ids import GroupId, WorkerId
from joinery.simulate.load_worker import Output

_QUANTILES: Final = 16


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One decision about the degree, with what it saw."""

    at_ns: int
    action: str
    """grow, shrink, keep; drain while a shrink is under way."""
    by: int
    degree: int
    """Workers asked for, after it."""
    ready: int
    n_sup: int
    n_con: int
    beta: float
    busy: float
    because: str
    blocked_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MoveRow:
    """One move of a group."""

    started_ns: int
    ended_ns: int
    group: GroupId
    source: WorkerId
    target: WorkerId
    state_bytes: int
    pause_ns: int
    """For how long nothing of the group was sent."""
    why: str


@dataclass(frozen=True, slots=True)
class WorkerSample:
    """A worker at the end of a reorganization epoch; times are since it became Ready."""

    worker: WorkerId
    occupancy: float
    busy: float
    groups: int
    window_bytes: int
    ready_ns: float
    busy_ns: float
    cpu_ns: float
    communication_ns: float
    moving_ns: float


@dataclass(frozen=True, slots=True)
class Sample:
    """The cluster at the end of a reorganization epoch."""

    at_ns: int
    rates_hz: tuple[float, ...]
    degree: int
    n_sup: int
    n_con: int
    waiting_bytes: float
    """Not yet sent by the gateway."""
    buffered_bytes: float
    """Sent, and not yet joined."""
    mini_groups: int
    workers: tuple[WorkerSample, ...]


@dataclass(frozen=True, slots=True)
class DelaySummary:
    """Production delay in seconds; all NaN if nothing came out."""

    mean: float
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class Totals:
    """Seconds of all workers together between two samples."""

    wall: float
    busy: float
    cpu: float
    communication: float
    moving: float
    per_worker: tuple[tuple[WorkerId, float, float], ...]
    """(worker, cpu, communication)"""

    @property
    def idle(self) -> float:
        return max(0.0, self.wall - self.busy - self.communication - self.moving)

    @property
    def idle_share(self) -> float:
        return self.idle / self.wall if self.wall else 0.0


@dataclass(frozen=True, slots=True)
class LoadRun:
    """The whole story of a run."""

    samples: tuple[Sample, ...]
    decisions: tuple[DecisionRow, ...]
    moves: tuple[MoveRow, ...]
    outputs: tuple[Output, ...]
    until_ns: int
    overruns: int
    """Slots that took longer than their length."""

    def delay(self, from_ns: int = 0, to_ns: int | None = None) -> DelaySummary:
        """Of the results that came out in [from, to)."""
        end_ns = self.until_ns if to_ns is None else to_ns
        return summary_of([out for out in self.outputs if from_ns <= out.at_ns < end_ns])

    def delay_over_time(self, step_ns: int) -> tuple[tuple[int, DelaySummary], ...]:
        """(end, delay) of every `step_ns`, of results by the time that they came out."""
        buckets: dict[int, list[Output]] = {}
        for out in self.outputs:
            buckets.setdefault(int(out.at_ns // step_ns), []).append(out)
        return tuple(((number + 1) * step_ns, summary_of(buckets[number])) for number in sorted(buckets))

    def totals(self, from_ns: int = 0, to_ns: int | None = None) -> Totals:
        """Time spent by all workers between the samples nearest after `from_ns` and before `to_ns`."""
        end_ns = self.until_ns if to_ns is None else to_ns
        names = ("ready_ns", "busy_ns", "cpu_ns", "communication_ns", "moving_ns")
        sums = np.zeros(len(names))
        by_worker: dict[WorkerId, list[float]] = {}
        for before, after in pairwise((Sample(0, (), 0, 0, 0, 0.0, 0.0, 0, ()), *self.samples)):
            if before.at_ns < from_ns or after.at_ns > end_ns:
                continue
            earlier = {one.worker: one for one in before.workers}
            for now in after.workers:
                old = earlier.get(now.worker)
                base = old if old is not None and old.ready_ns < now.ready_ns else None
                spent = np.array([getattr(now, name) - (getattr(base, name) if base else 0.0) for name in names])
                sums += spent
                own = by_worker.setdefault(now.worker, [0.0, 0.0])
                own[0] += spent[2] / 1e9
                own[1] += spent[3] / 1e9
        wall, busy, cpu, communication, moving = (float(value) / 1e9 for value in sums)
        per_worker = tuple((worker, cpu_s, com_s) for worker, (cpu_s, com_s) in sorted(by_worker.items()))
        return Totals(wall, busy, cpu, communication, moving, per_worker)

    def degrees(self) -> tuple[tuple[int, int], ...]:
        """(time, workers asked for) at every sample."""
        return tuple((sample.at_ns, sample.degree) for sample in self.samples)

    def turns(self, from_ns: int = 0) -> int:
        """How often the degree changed its direction: up after down, or down after up."""
        signs = [row.action for row in self.decisions if row.at_ns >= from_ns and row.action in ("grow", "shrink")]
        return sum(earlier != later for earlier, later in pairwise(signs))

    def to_dict(self) -> dict[str, object]:
        """The run as plain data, without the single outputs."""
        return {
            "until_ns": self.until_ns,
            "overruns": self.overruns,
            "delay_s": _plain(self.delay()),
            "samples": [_plain(sample) for sample in self.samples],
            "decisions": [_plain(row) for row in self.decisions],
            "moves": [_plain(row) for row in self.moves],
        }


def summary_of(outputs: Iterable[Output]) -> DelaySummary:
    """Mean and percentiles, weighted by results."""
    rows = np.array([(out.results, out.delay_ns, out.half_work_ns, out.half_span_ns) for out in outputs])
    if not rows.size or not (weights := rows[:, 0]).sum() > 0:
        return DelaySummary(*([float("nan")] * 4))
    mean = float(np.average(rows[:, 1], weights=weights))
    # a grid of the two uniform parts: the middle of each of 16 x 16 equally likely cells would be too much, 16 pairs do
    places = (np.arange(_QUANTILES) + 0.5) / _QUANTILES * 2 - 1
    mixed = places[(np.arange(_QUANTILES) * 7) % _QUANTILES]
    points = (rows[:, 1:2] + rows[:, 2:3] * places + rows[:, 3:4] * mixed).ravel()
    order = np.argsort(points, kind="stable")
    reached = np.cumsum(np.repeat(weights, _QUANTILES)[order])
    p50, p95, p99 = (float(points[order][np.searchsorted(reached, share * reached[-1])]) for share in (0.5, 0.95, 0.99))
    return DelaySummary(mean / 1e9, p50 / 1e9, p95 / 1e9, p99 / 1e9)


def _plain(value: object) -> object:
    if isinstance(value, float) and isnan(value):
        return None
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "__dataclass_fields__"):
        return {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value)}  # type: ignore[arg-type]
    return value
