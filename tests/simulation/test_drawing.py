"""What is drawn: the same every time, fit to run, and nothing left out."""

import pytest

from joinery.model.spec import JoinQuerySpec
from joinery.simulate.schedule import Role, Schedule
from tests.simulation.disturbances import IN_A_MOVE, POINTS
from tests.simulation.schedules import JUMPS_MS, kinds, random_schedule
from tests.simulation.story import fault_text, query_lines, step_text
from tests.simulation.traffic import TAIL_ROWS

SEEDS = 300
WANTED = {
    *(f"join {kind}" for kind in ("inner", "left", "right", "full", "semi", "anti")),
    *(f"window {kind}" for kind in ("zero", "small", "large", "count", "unbounded")),
    *(f"method {kind}" for kind in ("hash", "nested-loop")),
    *(f"streams {count}" for count in (2, 3)),
    *(f"workers {count}" for count in (1, 2, 3, 4)),
    *(f"faults {count}" for count in (0, 1, 2, 3, 4)),
    *(f"producers {count}" for count in (1, 2, 3)),
    *(f"rows {count}" for count in range(1, 9)),
    *("filter", "select", "where", "output", "exact order", "alignment", "worker", "results", "scaling", "sinks"),
    *("arrival time", "lateness", "lateness zero", "never idle", "null keys", "key int64", "key string"),
    *("a producer joins later", "end alone", "end with rows", "few results kept"),
    *(f"step {kind}" for kind in ("AddWorker", "DrainLast", "MoveGroup", "Change")),
    *(f"fault {kind}" for kind in ("Crash", "Pause", "BreakConnection", "StoreDown")),
    *(f"fault {kind} of {role}" for kind in ("Crash", "Pause") for role in Role),
    *("pause with a replacement", "pause without a replacement"),
    *(f"{role} before {effect}" for role, effects in POINTS.items() for effect in effects),
    *(f"{role} before {message}" for role, names in IN_A_MOVE.items() for message in names),
    *("operated", "subscribers 1", "subscribers 2", *(f"clocks jump by {ms} ms" for ms in JUMPS_MS)),
    *("a producer without a name", "a producer with other rows", "a long tail"),
    *(f"{role} before any effect" for role in (Role.GATEWAY, Role.COLLECTOR, Role.WORKER)),
}


@pytest.fixture(scope="module")
def drawn() -> list[Schedule]:
    return [random_schedule(seed) for seed in range(SEEDS)]


def test_every_kind_of_query_step_and_fault_occurs(drawn: list[Schedule]) -> None:
    found = set().union(*map(kinds, drawn))
    assert set() == WANTED - found


def test_every_query_is_one_that_can_run(drawn: list[Schedule]) -> None:
    for schedule in drawn:
        JoinQuerySpec.parse(schedule.query)


def test_a_seed_always_gives_the_same_schedule() -> None:
    for seed in range(20):
        assert repr(random_schedule(seed)) == repr(random_schedule(seed))


def test_numbers_are_unique_in_their_stream_and_every_producer_ends(drawn: list[Schedule]) -> None:
    for schedule in drawn:
        for stream in range(len(schedule.query["streams"])):
            own = [script for script in schedule.scripts if script.stream == stream]
            rows = [batch.rows for script in own for batch in script.batches if batch.rows is not None]
            numbers = [number for batch in rows for number in batch.column("n").to_pylist()]
            assert len(numbers) == len(set(numbers))
            assert [[*[False] * (len(s.batches) - 1), True] for s in own] == [[b.end for b in s.batches] for s in own]
            for script in own:
                moments = [batch.at_ns for batch in script.batches]
                assert sorted(moments) == moments


def test_most_runs_change_no_spec_and_are_small(drawn: list[Schedule]) -> None:
    unchanged = [one for one in drawn if "step Change" not in kinds(one)]
    assert 0.5 < len(unchanged) / SEEDS < 0.7
    for schedule in drawn:
        rows = [batch.rows for script in schedule.scripts for batch in script.batches if batch.rows is not None]
        tail = TAIL_ROWS * len(schedule.query["streams"]) if "a long tail" in kinds(schedule) else 0
        assert 35 <= sum(batch.num_rows for batch in rows) - tail <= 95


def test_everything_that_is_drawn_can_be_told(drawn: list[Schedule]) -> None:
    for schedule in drawn:
        for text in (*query_lines(schedule), *map(step_text, schedule.steps), *map(fault_text, schedule.faults)):
            assert "object at 0x" not in text
            assert "(at_ns" not in text
