"""How long a join takes: measured, and with `worker.speed` stretched to so many comparisons per second.

A throttled worker is for tests and figures: a machine with two cores has no room for many real ones. It sleeps after
each batch as long as a slower machine would have joined; sleeping counts as busy.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from joinery.machine.facts import BatchJoined, Fact, StateMeasured
from joinery.machine.orders import JoinBatch, ModuleOrder

Perform = Callable[[Any], Iterator[Fact]]


def paced(perform: Perform, speed: float | None) -> Perform:
    """The same work, with its time in each `BatchJoined`; `speed`: comparisons per second, None: as fast as it can."""

    def run(order: ModuleOrder) -> Iterator[Fact]:
        if not isinstance(order, JoinBatch):
            for fact in perform(order):
                yield replace(fact, cpu_ns=time.process_time_ns()) if isinstance(fact, StateMeasured) else fact
            return
        begun = time.perf_counter_ns()
        for fact in perform(order):
            if isinstance(fact, BatchJoined) and fact.last:
                _wait(begun, fact.comparisons, speed)
                fact = replace(fact, busy_ns=time.perf_counter_ns() - begun)
            yield fact

    return run


def _wait(begun_ns: int, comparisons: int, speed: float | None) -> None:
    if speed is not None:
        left_s = comparisons / speed - (time.perf_counter_ns() - begun_ns) / 1e9
        if left_s > 0:
            time.sleep(left_s)
