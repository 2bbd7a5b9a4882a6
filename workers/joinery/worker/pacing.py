"""How long a join takes: measured, and with `worker.speed` stretched to so many comparisons per second.

A throttled worker is for tests and figures: a machine with two cores has no room for many real ones. It sleeps after
each batch as long as a slower machine would have joined; sleeping counts as busy. With `--speed-file` one worker gets
another speed than the query's, also while it runs: a machine that has other work to do.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from joinery.machine.facts import BatchJoined, BatchTaken, Fact, StateMeasured
from joinery.machine.orders import JoinBatch, ModuleOrder
from joinery.machine.table_orders import LookAfterWaiting, TakeTable
from joinery.model.spec import JoinQuerySpec

Perform = Callable[[Any], Iterator[Fact]]
Speed = Callable[[], float | None]
"""Comparisons per second; None: as fast as it can."""


def speed_of(spec: JoinQuerySpec, file: Path | None) -> Speed:
    """As the file says, now; without one, or while it says nothing, as the query says."""
    known = None if spec.worker.speed == "unlimited" else float(spec.worker.speed)

    def look() -> float | None:
        try:
            return known if file is None else float(file.read_text())
        except (OSError, ValueError):
            return known

    return look


def paced(perform: Perform, speed: Speed) -> Perform:
    """The same work, with its time in each `BatchJoined`."""

    owed_ns = 0
    """Time at segments that came: it counts with the next message."""

    def run(order: ModuleOrder) -> Iterator[Fact]:
        nonlocal owed_ns
        begun = time.perf_counter_ns()
        if not isinstance(order, JoinBatch):
            for fact in perform(order):
                yield replace(fact, cpu_ns=time.process_time_ns()) if isinstance(fact, StateMeasured) else fact
            if isinstance(order, TakeTable | LookAfterWaiting):
                owed_ns += time.perf_counter_ns() - begun
            return
        for fact in perform(order):
            if isinstance(fact, BatchTaken) or (isinstance(fact, BatchJoined) and fact.last):
                _wait(begun, fact.comparisons, speed())
                fact = replace(fact, busy_ns=time.perf_counter_ns() - begun + owed_ns)
                owed_ns = 0
            yield fact

    return run


def _wait(begun_ns: int, comparisons: int, speed: float | None) -> None:
    if speed is not None:
        left_s = comparisons / speed - (time.perf_counter_ns() - begun_ns) / 1e9
        if left_s > 0:
            time.sleep(left_s)
