"""Shrinking keeps what a failure needs and little else."""

from joinery.simulate.schedule import Crash, Schedule
from tests.simulation.schedules import random_schedule
from tests.simulation.shrink import shrink


def numbers(schedule: Schedule, stream: int) -> set[int]:
    return {
        number
        for script in schedule.scripts
        if script.stream == stream
        for batch in script.batches
        if batch.rows is not None
        for number in batch.rows.column("n").to_pylist()
    }


def test_what_does_not_matter_is_left_out() -> None:
    drawn = [random_schedule(seed) for seed in range(100)]
    whole = next(one for one in drawn if len(one.faults) > 2 and any(isinstance(f, Crash) for f in one.faults))

    def complaints(schedule: Schedule) -> list[str]:
        crash = any(isinstance(fault, Crash) for fault in schedule.faults)
        rows = 1 in numbers(schedule, 0) and 2 in numbers(schedule, 1)
        return ["missing: a pair"] if crash and rows else ["extra: something else"]

    small = shrink(whole, complaints, ["missing: a pair"])
    assert ["missing: a pair"] == complaints(small)
    assert 1 == len(small.faults)
    assert 0 == len(small.steps)
    assert {1} == numbers(small, 0)
    assert {2} == numbers(small, 1)
    assert (1, 1) == (small.workers, small.query["partitions"])
    assert whole.seed == small.seed
    assert all(script.batches[-1].end for script in small.scripts)


def test_the_budget_bounds_the_runs() -> None:
    runs = 0

    def complaints(schedule: Schedule) -> list[str]:
        nonlocal runs
        runs += 1
        return ["missing: all of it"]

    shrink(random_schedule(3), complaints, ["missing: all of it"], budget=10)
    assert 10 == runs
