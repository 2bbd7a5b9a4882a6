"""A group's state, taken as increments and put back elsewhere, changes nothing: moves and losses are exact."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joinery.join.logic import WindowJoin
from joinery.join.plan import JoinPlan
from joinery.join.state import Checkpoints, Increment
from joinery.model.ids import GroupId, RecordNo
from joinery.partition.hashing import groups_of
from tests.oracle.history import History, released
from tests.oracle.strategies import histories
from tests.property.test_join_agrees_with_the_oracle import assert_exact, tunings
from tests.support.driving import Outcome, batches, change_windows, marks, spec_of

PARTITIONS = 3


@dataclass(slots=True)
class Worker:
    """One join and what it has written of its groups."""

    join: WindowJoin
    checkpoints: Checkpoints = field(init=False)

    def __post_init__(self) -> None:
        self.checkpoints = Checkpoints(self.join)


class Cluster:
    """Two workers, and every group's increments as a checkpoint store would have them."""

    def __init__(self, plan: JoinPlan) -> None:
        self.plan = plan
        groups = [[0, 2], [1]]
        self.workers = [Worker(WindowJoin(plan, [GroupId(group) for group in own])) for own in groups]
        self.stored: dict[int, list[Increment]] = {group: [] for group in range(PARTITIONS)}

    def owner(self, group: int) -> int:
        return next(number for number, worker in enumerate(self.workers) if worker.join.held[group])

    def checkpoint(self, group: int, tag: int) -> None:
        """Write an increment since the newest one, as the owner does every so often."""
        chain = self.stored[group]
        if chain and chain[-1].tag == tag:
            return
        worker = self.workers[self.owner(group)]
        since = chain[-1].tag if chain else None
        chain += worker.checkpoints.take([GroupId(group)], RecordNo(tag), since)
        worker.checkpoints.forget(GroupId(group), RecordNo(tag))

    def move(self, group: int, tag: int) -> None:
        """To the other worker, through the store only."""
        self.checkpoint(group, tag)
        source = self.owner(group)
        windows = self.workers[source].join.windows
        self.workers[source].checkpoints.release(GroupId(group))
        assert windows == self.workers[1 - source].join.windows
        self.workers[1 - source].checkpoints.restore(self.stored[group])


@pytest.mark.parametrize("method", ["hash", "nested-loop"])
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=histories(with_changes=True), tuning=tunings, data=st.data())
def test_moving_groups_between_workers_changes_no_result(
    method: str, history: History, tuning: tuple[int | None, int], data: st.DataObject
) -> None:
    plan = JoinPlan.of(spec_of(history, join__method=method, partitions=PARTITIONS))
    cluster = Cluster(replace(plan, theta_bytes=tuning[0], block_bytes=tuning[1]))
    outcome = Outcome()
    known = released(history) if history.question.in_order else None
    what = st.lists(st.tuples(st.sampled_from(("write", "move")), st.integers(0, PARTITIONS - 1)), max_size=3)
    for record in range(len(history.records)):
        for worker in cluster.workers:
            rows = [
                batch.take(worker.join.held[groups_of(batch.hashes, PARTITIONS)])
                for batch in batches(history, plan, record - 1, record, known)
            ]
            for part in worker.join.on_batch(rows, marks(history, record)):
                assert worker.join.held[np.unique(part.groups)].all()
                outcome.add(history.question, part)
            change_windows(worker.join, history, record)
        for action, group in data.draw(what):
            cluster.move(group, record) if action == "move" else cluster.checkpoint(group, record)
    assert_exact(history, outcome)
