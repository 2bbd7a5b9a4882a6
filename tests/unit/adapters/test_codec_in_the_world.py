"""Simulated runs in which every message goes over the wire: as exact as without it."""

from dataclasses import replace
from typing import Any

import pytest

from joinery.join.plan import JoinPlan
from joinery.machine import messages as m
from joinery.model.spec import JoinQuerySpec
from joinery.simulate import network
from tests.simulation.runs import examine
from tests.simulation.schedules import random_schedule
from tests.unit.adapters.wire_samples import DIRECTIONS

WAYS = {
    "producer to gateway": (m.Open, m.Push),
    "gateway to producer": (m.Opened, m.Acknowledge, m.Refuse),
    "gateway to worker": (
        m.Exchange, m.Assign, m.Release, m.Preload, m.CheckpointNow, m.Trim, m.Finished, m.Ping, m.SpecNow,
    ),
    "worker to gateway": (
        m.WorkerHello, m.Holding, m.Credit, m.Checkpointed, m.Preloaded, m.CheckpointDamaged, m.ResultsLost, m.Load,
        m.Alive, m.Pong,
    ),
    "worker to collector": (m.WorkerHello, m.Results),
    "collector to worker": (m.Resume, m.Committed),
    "collector to subscriber": (m.Delivery, m.TokenTooOld),
    "subscriber to collector": (m.Subscribe,),
    "attendant to gateway": (
        m.CollectorHello, m.Vector, m.Committed, m.Finished, m.Drain, m.MoveGroup, m.ChangeSpec, m.Pong,
        m.ChangeQuery,
    ),
    "gateway to attendant": (
        m.Owners, m.Drained, m.ClusterReport, m.Empty, m.Finished, m.Ping, m.Overview, m.QueryChanged,
    ),
}  # fmt: skip
RUNS = 60


def with_members(came: Any, sent: Any) -> Any:
    """What does not travel, put back: the check of a run looks at it."""
    if not isinstance(came, m.Results | m.Delivery):
        return came
    pairs = zip(came.parts, sent.parts, strict=True)
    return replace(came, parts=tuple(replace(one, origin=had.origin, members=had.members) for one, had in pairs))


@pytest.mark.parametrize("chunk", range(6))
def test_a_run_over_the_wire_is_exact(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: set[type] = set()
    for seed in range(chunk, RUNS, 6):
        schedule = random_schedule(seed)
        plan = JoinPlan.of(JoinQuerySpec.parse(schedule.query))

        def over_the_wire(message: Any, plan: JoinPlan = plan) -> Any:
            came = message
            for name in [name for name, kinds in WAYS.items() if isinstance(message, kinds)]:
                direction = DIRECTIONS[name]
                came = direction.decode(direction.encode(message, plan), plan)
            sent.add(type(message))
            return with_members(came, message)

        monkeypatch.setattr(network, "as_on_the_wire", over_the_wire)
        assert [] == examine(schedule)[1]
    assert {m.Push, m.Exchange, m.Results, m.WorkerHello, m.Committed, m.Vector} <= {
        next(kind for kind in one.__mro__ if kind.__module__.startswith("joinery.machine")) for one in sent
    }
