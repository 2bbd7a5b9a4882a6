"""The status: what is told of a query, and when a condition's time changes."""

from dataclasses import replace
from typing import Any

import pytest

from joinery.elastic.beta import BetaRule, DegreeInputs, Grow, Keep
from joinery.machine.messages import MoveView, Overview, StreamView, WorkerView
from joinery.model.ids import GroupId, RecordNo, WorkerId
from joinery.operator.crd_status import STATUS
from joinery.operator.status import Picture, decision_status, phase_of, status_of
from tests.unit.kubernetes_operator.queries import wanted

SECOND = 10**9
ALL = {"gateway": 1, "collector": 1, "worker": 2}
MOVE = MoveView(
    group=GroupId(17), source=WorkerId("worker-2"), target=WorkerId("worker-0"), nbytes=6_000_000, is_planned=True,
    begun_ns=5 * SECOND, pause_ns=84_000_000,
)  # fmt: skip
STREAM = StreamView(rows=100, late=3, rows_per_s=12.34, watermark_ns=90 * SECOND)
VIEW = Overview(
    at_ns=100 * SECOND, records=RecordNo(50), streams=(STREAM, STREAM), n_sup=1, n_con=2, results=42, moves=(MOVE,),
    moves_done=1, uncommitted=48, rejected=1, checkpointed_ns=99 * SECOND,
    workers=tuple(WorkerView(worker=WorkerId(f"worker-{n}"), is_up=True, groups=30, slot=n // 2) for n in range(3)),
)  # fmt: skip
RUNNING = Picture(
    name="orders", generation=3, now_ns=100 * SECOND, query=wanted().query(), desired=2, replicas=2, ready=ALL,
    is_attended=True, view=VIEW,
)  # fmt: skip


def truths(status: dict[str, Any]) -> dict[str, str]:
    return {one["type"]: one["status"] for one in status["conditions"]}


@pytest.mark.parametrize(
    ("changed", "phase"),
    [
        ({}, "Running"),
        ({"desired": 3}, "Scaling"),
        ({"is_draining": True}, "Scaling"),
        ({"is_attended": False}, "Pending"),
        ({"ready": {"gateway": 1}}, "Pending"),
        ({"is_paused": True}, "Paused"),
        ({"has_ended": True}, "Finished"),
        ({"query": None, "stalled": "spec.join.on: ..."}, "Stalled"),
    ],
)
def test_one_word_says_how_it_is(changed: dict[str, Any], phase: str) -> None:
    assert phase == phase_of(replace(RUNNING, **changed))


def test_it_is_ready_when_rows_are_taken_and_joined() -> None:
    assert "True" == truths(status_of(RUNNING, {}))["Ready"]
    assert "False" == truths(status_of(replace(RUNNING, ready={"gateway": 1, "collector": 1}), {}))["Ready"]


def test_conditions_count_in_words_of_the_right_number() -> None:
    def texts(picture: Picture) -> list[str]:
        told = {one["type"]: one["message"] for one in status_of(picture, {})["conditions"]}
        return [told["WorkersAvailable"], told["Balanced"]]

    assert ["2 of 2 workers are ready", "1 supplier, 2 consumers, 0 groups on their way"] == texts(RUNNING)
    one = replace(
        RUNNING, desired=1, ready={**ALL, "worker": 1}, view=replace(VIEW, n_sup=2, n_con=1, under_way=(MOVE,))
    )
    assert ["1 of 1 worker is ready", "2 suppliers, 1 consumer, 1 group on its way"] == texts(one)


def test_a_complaint_is_in_the_stalled_condition() -> None:
    status = status_of(replace(RUNNING, stalled="spec.partitions: found 7"), {})
    found = next(one for one in status["conditions"] if one["type"] == "Stalled")
    assert ("True", "spec.partitions: found 7") == (found["status"], found["message"])


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    first = status_of(RUNNING, {})
    later = status_of(replace(RUNNING, now_ns=200 * SECOND, is_attended=False), first)
    times = {one["type"]: one["lastTransitionTime"] for one in later["conditions"]}
    assert "1970-01-01T00:03:20Z" == times["Ready"]
    assert "1970-01-01T00:01:40Z" == times["Stalled"]


def test_a_move_is_told_with_its_pause() -> None:
    status = status_of(RUNNING, {})
    assert "84ms" == status["migrations"][0]["pause"]
    assert ("84ms", "84ms", 1) == (status["pauseP50"], status["pauseP99"], status["migrationsTotal"])


def test_lag_commits_and_refusals_are_told() -> None:
    status = status_of(RUNNING, {})
    assert ("10s", 48, 1, 6) == (status["lag"], status["oldestUncommitted"], status["rejected"], status["late"])


def test_the_slots_are_those_that_the_gateway_tells() -> None:
    status = status_of(RUNNING, {})
    assert [0, 0, 1] == [worker["slot"] for worker in status["workers"]]
    assert 2 == status["slots"]["subgroups"]


def test_a_decision_is_told_with_its_inputs() -> None:
    inputs = DegreeInputs(
        rule=BetaRule(), degree=2, ready=2, n_sup=2, n_con=1, busy=1.5, memory=0.1, back_pressure=False
    )
    grow = decision_status(Grow(by=1, because="2 suppliers > 0.5 x 1 consumer", inputs=inputs))
    assert {"nSup": 2, "nCon": 1, "beta": 0.5, "busy": 1.5, "action": "Grow", "blockedBy": ""} == {
        key: value for key, value in grow.items() if key != "because"
    }
    keep = decision_status(Keep(because="...", inputs=inputs, blocked_by=("max",)))
    assert ("Keep", "max") == (keep["action"], keep["blockedBy"])


def test_nothing_is_told_that_the_schema_would_prune() -> None:
    inputs = DegreeInputs(
        rule=BetaRule(), degree=2, ready=2, n_sup=2, n_con=1, busy=1.5, memory=0.1, back_pressure=False
    )
    decision = Keep(because="...", inputs=inputs)
    check(status_of(replace(RUNNING, decision=decision, held_until_ns=200 * SECOND), {}), STATUS, "status")


def check(value: Any, schema: dict[str, Any], path: str) -> None:
    if isinstance(value, dict):
        for name, held in value.items():
            assert name in schema["properties"], f"{path}.{name}"
            check(held, schema["properties"][name], f"{path}.{name}")
    elif isinstance(value, list):
        for held in value:
            check(held, schema["items"], f"{path}[]")
