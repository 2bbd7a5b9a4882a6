"""What the history of a run catches: each invariant broken by hand, and the same thing done rightly."""

from typing import Any

import numpy as np
import pytest

from joinery.machine import facts, messages, orders
from joinery.machine.facts import Fact
from joinery.machine.log import LoggedBatch, Record
from joinery.machine.messages import Acknowledge, Push, Results
from joinery.machine.orders import Emit, Order, Send, SendAcknowledge
from joinery.machine.ports import Commit
from joinery.model.errors import Bug
from joinery.model.ids import GroupId, MapVersion, Peer, ProducerId, RecordNo, Term, WorkerId
from joinery.model.spec import JoinQuerySpec
from joinery.partition.map import PartitionMap
from joinery.simulate.history import History
from joinery.simulate.process import Process
from joinery.simulate.schedule import Role
from joinery.simulate.stores import Stores
from joinery.window.sliding import Marks
from tests.contract.samples import increment
from tests.unit.simulate.toys import HEAD, QUERY, Toy, rows

A, B = WorkerId("worker-0"), WorkerId("worker-1")
P = ProducerId("p")
PRODUCER = Peer("p")


class Desk:
    """A history with stores, and processes that do what they are told."""

    def __init__(self, **query: Any) -> None:
        self.stores = Stores(("sink-0",), 1 << 20)
        spec = JoinQuerySpec.parse({**QUERY, **query})
        self.history = History(spec, self.stores, {PRODUCER: (0, P)}, retain_bytes=100)
        self.gateway = self.process(Role.GATEWAY, "gateway", "gateway/1")
        self.collector = self.process(Role.COLLECTOR, "collector", "collector/1")
        self.collector.sinks = self.stores.sinks
        self.producer = self.process(Role.PRODUCER, PRODUCER, "p/1")
        self.worker = self.process(Role.WORKER, A, "worker-0/1")
        self.store(self.gateway, orders.OpenLog(HEAD, "gateway/1"))
        self.store(self.collector, orders.OpenCommits("collector/1"))
        self.store(self.collector, orders.RecoverSinks(Term(1), ()))

    def process(self, role: Role, peer: str, instance: str) -> Process:
        return Process(role, 0, instance, Peer(peer), Toy(), 0, 0)

    def store(self, process: Process, order: Order) -> Fact | None:
        answer = self.stores.carry_out(process, order)
        self.history.stored(process, order, answer)
        if answer is not None:
            self.history.saw(process, answer)
        return answer

    def push(self, sequence: int, *numbers: int, checksum: int = 0) -> None:
        message = Push(1, sequence, sequence + 1, checksum or sequence + 50, rows(*numbers))
        self.history.saw(self.producer, Send(Peer("gateway"), message))

    def record(self, number: int, *batches: LoggedBatch, marks: tuple[int, int] = (0, 0)) -> None:
        record = Record(Term(1), batches, marks)
        self.store(self.gateway, orders.AppendRecord(Term(1), RecordNo(number), record))

    def map(self, version: int, *owners: WorkerId, term: int | None = None) -> None:
        places, terms = np.array([(A, B).index(owner) for owner in owners], np.int32), np.full(4, term or version)
        stored = PartitionMap(MapVersion(version), (A, B), places, terms.astype(np.int64)).to_dict()
        self.store(self.gateway, orders.WriteMap(Term(1), stored))

    def results(self, group: int, after: int, upto: int, version: int = 1, *, take: bool = True) -> None:
        """The results of a batch reach the collector, which takes them."""
        message = results([group], after, upto, version)
        self.history.saw(self.collector, facts.Received(Peer(A), message))
        if take:
            self.history.saw(self.collector, orders.Take((GroupId(group),), RecordNo(upto)))

    def commit(self, number: int, *committed: int) -> None:
        receipts = tuple(sink.stage(number, []) for sink in self.collector.sinks)
        made = Commit(number, np.array(committed, np.int64), receipts)
        self.store(self.collector, orders.WriteCommit(Term(1), made))

    def checkpoint(self, group: int, since: int, tag: int, version: int = 1) -> None:
        self.store(self.worker, orders.WriteBlocks(tag, (increment(group, since, tag, 1),)))
        head = (GroupId(group), MapVersion(version), RecordNo(since), RecordNo(tag))
        self.store(self.worker, orders.WriteHeads(tag, (head,)))

    def filled(self, upto: int) -> "Desk":
        """Records up to a number, taken and committed of every group."""
        for number in range(upto + 1):
            self.record(number)
        for group in range(4):
            self.results(group, -1, upto)
        self.commit(1, upto, upto, upto, upto)
        return self


def results(groups: list[int], after: int, upto: int, version: int = 1) -> Results:
    size = len(groups)
    return Results(
        np.array(groups, np.int64), np.full(size, after, np.int64), np.full(size, version, np.int64), RecordNo(upto),
        Marks((0, 0)), 0, True, (),
    )  # fmt: skip


def batch(sequence: int, *numbers: int, checksum: int = 0, next_sequence: int | None = None) -> LoggedBatch:
    following = sequence + 1 if next_sequence is None else next_sequence
    return LoggedBatch(0, P, 1, sequence, following, checksum or sequence + 50, 0, 0, None, rows(*numbers))


@pytest.fixture
def desk() -> Desk:
    return Desk()


# --- producers and the log


def test_what_was_sent_recorded_and_acknowledged_is_right(desk: Desk) -> None:
    desk.push(0, 1, 2)
    desk.record(0, batch(0, 1, 2))
    desk.history.saw(desk.gateway, SendAcknowledge(PRODUCER, Acknowledge(0, RecordNo(0))))
    desk.history.saw(desk.producer, facts.Received(Peer("gateway"), Acknowledge(0, RecordNo(0))))
    desk.history.has_ended = True
    desk.stores.sinks[0].finish(None)
    assert [] == desk.history.complaints()
    assert [0] == list(desk.history.records)


def test_a_batch_that_nobody_sent_is_seen(desk: Desk) -> None:
    with pytest.raises(Bug, match="nobody sent"):
        desk.record(0, batch(0, 1, 2))


def test_a_batch_that_is_recorded_twice_is_seen(desk: Desk) -> None:
    desk.push(0, 1)
    desk.record(0, batch(0, 1))
    with pytest.raises(Bug, match="in record 0 and in 1"):
        desk.record(1, batch(0, 1))


@pytest.mark.parametrize(
    "wrong", [batch(0, 1, 3), batch(0, 1), batch(0, 1, 2, checksum=9), batch(0, 1, 2, next_sequence=7)]
)
def test_a_batch_that_is_recorded_otherwise_than_it_was_sent_is_seen(desk: Desk, wrong: LoggedBatch) -> None:
    desk.push(0, 1, 2)
    with pytest.raises(Bug, match="not recorded as it was sent"):
        desk.record(0, wrong)


def test_a_batch_that_is_sent_twice_with_different_rows_is_seen(desk: Desk) -> None:
    desk.push(0, 1)
    desk.push(0, 1)
    with pytest.raises(Bug, match="different rows"):
        desk.push(0, 2, checksum=9)


def test_an_acknowledgement_of_what_is_not_in_the_log_is_seen(desk: Desk) -> None:
    desk.push(0, 1)
    with pytest.raises(Bug, match="not in the log"):
        desk.history.saw(desk.gateway, SendAcknowledge(PRODUCER, Acknowledge(0, None)))


def test_an_acknowledgement_that_names_another_record_is_seen(desk: Desk) -> None:
    desk.push(0, 1)
    desk.record(0)
    desk.record(1, batch(0, 1))
    with pytest.raises(Bug, match="in record 1, not in 0"):
        desk.history.saw(desk.gateway, SendAcknowledge(PRODUCER, Acknowledge(0, RecordNo(0))))


def test_what_a_producer_holds_for_recorded_and_is_not_is_a_complaint(desk: Desk) -> None:
    desk.history.saw(desk.producer, facts.Received(Peer("gateway"), Acknowledge(4, RecordNo(0))))
    [complaint] = desk.history.complaints()
    assert "acknowledged and is not recorded" in complaint


def test_what_was_sent_and_is_not_recorded_is_a_complaint_once_the_run_has_ended(desk: Desk) -> None:
    desk.push(0, 1)
    assert [] == desk.history.complaints()
    desk.history.has_ended = True
    desk.stores.sinks[0].finish(None)
    [complaint] = desk.history.complaints()
    assert "sent and is not recorded" in complaint


def test_a_run_that_ended_with_unfinished_sinks_is_a_complaint(desk: Desk) -> None:
    desk.history.has_ended = True
    [complaint] = desk.history.complaints()
    assert "sink-0 was not finished" in complaint


def test_a_watermark_that_goes_back_is_seen(desk: Desk) -> None:
    desk.record(0, marks=(5, 5))
    desk.record(1, marks=(5, 7))
    with pytest.raises(Bug, match="watermarks go back"):
        desk.record(2, marks=(6, 6))


def test_a_repeated_append_is_one_record(desk: Desk) -> None:
    order = orders.AppendRecord(Term(1), RecordNo(0), Record(Term(1), (), (0, 0)))
    desk.store(desk.gateway, order)
    desk.store(desk.gateway, order)
    assert [0] == list(desk.history.records)


def test_what_a_store_refused_did_not_happen(desk: Desk) -> None:
    desk.store(desk.gateway, orders.OpenLog(HEAD, "gateway/2"))
    desk.record(0)
    assert {} == desk.history.records


# --- maps and results


def test_two_owners_under_one_version_are_seen(desk: Desk) -> None:
    desk.map(1, A, A, B, B)
    with pytest.raises(Bug, match="two owners"):
        desk.map(2, B, A, B, B, term=1)


def test_a_map_that_goes_back_is_seen(desk: Desk) -> None:
    desk.map(2, A, A, B, B)
    with pytest.raises(Bug, match="goes back"):
        desk.map(1, A, A, B, B)


def test_groups_that_move_are_counted(desk: Desk) -> None:
    desk.map(1, A, A, B, B)
    assert 0 == desk.history.moves
    desk.map(2, B, B, B, B)
    assert 2 == desk.history.moves


def emit(desk: Desk, process: Process, group: int, version: int) -> None:
    desk.history.saw(process, Emit(Peer("collector"), results([group], -1, 0, version)))


def test_the_owner_may_emit(desk: Desk) -> None:
    desk.map(1, A, A, B, B)
    emit(desk, desk.worker, 0, 1)
    emit(desk, desk.worker, 0, 1)


@pytest.mark.parametrize(("group", "version"), [(2, 1), (0, 2)])
def test_who_emits_without_owning_is_seen(desk: Desk, group: int, version: int) -> None:
    desk.map(1, A, A, B, B)
    with pytest.raises(Bug, match="owner is"):
        emit(desk, desk.worker, group, version)


def test_two_instances_that_emit_under_one_version_are_seen(desk: Desk) -> None:
    desk.map(1, A, A, B, B)
    emit(desk, desk.worker, 0, 1)
    with pytest.raises(Bug, match="worker-0/2 and worker-0/1 emit"):
        emit(desk, desk.process(Role.WORKER, A, "worker-0/2"), 0, 1)


def test_batches_that_are_taken_one_after_the_other_are_right(desk: Desk) -> None:
    desk.results(0, -1, 3)
    desk.results(0, 3, 5)
    desk.commit(1, 3, -1, -1, -1)
    desk.results(0, 3, 8, version=2)
    desk.commit(2, 8, -1, -1, -1)


@pytest.mark.parametrize(
    ("after", "version", "why"), [(4, 1, "after 3"), (-1, 1, "after 3"), (3, 2, "after -1"), (3, 0, "after 1")]
)
def test_a_gap_or_an_overlap_in_what_is_taken_is_seen(desk: Desk, after: int, version: int, why: str) -> None:
    desk.results(0, -1, 3)
    with pytest.raises(Bug, match=why):
        desk.results(0, after, 9, version)


def test_what_is_taken_without_having_come_is_seen(desk: Desk) -> None:
    desk.results(0, -1, 3, take=False)
    with pytest.raises(Bug, match="no message"):
        desk.history.saw(desk.collector, orders.Take((GroupId(0),), RecordNo(4)))


def test_a_collector_whose_term_was_overtaken_may_take_what_it_likes(desk: Desk) -> None:
    desk.store(desk.process(Role.COLLECTOR, "collector", "collector/2"), orders.OpenCommits("collector/2"))
    desk.results(0, 4, 9)


def test_a_zombie_collector_that_has_the_newest_term_is_held_to_it(desk: Desk) -> None:
    desk.collector.is_zombie = True
    with pytest.raises(Bug, match="after -1"):
        desk.results(0, 4, 9)


@pytest.mark.parametrize(("committed", "why"), [(4, "taken were"), (9, "taken were"), (-1, "back from 3")])
def test_a_commit_of_what_was_not_taken_is_seen(desk: Desk, committed: int, why: str) -> None:
    desk.results(0, -1, 3)
    desk.results(0, 3, 7)
    desk.commit(1, 3, -1, -1, -1)
    with pytest.raises(Bug, match=why):
        desk.commit(2, committed, -1, -1, -1)


def test_a_commit_in_order_may_end_inside_what_was_taken_but_not_beyond() -> None:
    desk = Desk(output={"order": "time"})
    desk.results(0, -1, 3)
    desk.commit(1, 2, -1, -1, -1)
    with pytest.raises(Bug, match="never taken"):
        desk.commit(2, 5, -1, -1, -1)


def test_a_new_collector_starts_from_what_is_committed(desk: Desk) -> None:
    desk.results(0, -1, 3)
    desk.commit(1, 3, -1, -1, -1)
    desk.results(0, 3, 5)
    desk.collector = desk.process(Role.COLLECTOR, "collector", "collector/2")
    desk.store(desk.collector, orders.OpenCommits("collector/2"))
    with pytest.raises(Bug, match="after 3"):
        desk.results(0, 5, 7)


# --- trims


def test_a_trim_up_to_what_is_checkpointed_and_committed_is_right(desk: Desk) -> None:
    desk.filled(9)
    for group in range(4):
        desk.checkpoint(group, -1, 5)
        desk.checkpoint(group, 5, 12)
    desk.store(desk.gateway, orders.TrimLog(Term(1), after(5), RecordNo(6)))
    trim = messages.Trim(Term(1), np.array([0]), np.array([5]))
    desk.history.saw(desk.gateway, Send(Peer(A), trim))


def after(record: int) -> Any:
    from dataclasses import replace

    return replace(HEAD, next_record=RecordNo(record + 1))


def test_a_trim_beyond_what_is_committed_is_seen(desk: Desk) -> None:
    desk.filled(9)
    trim = messages.Trim(Term(1), np.array([0, 1]), np.array([9, 10]))
    with pytest.raises(Bug, match="group 1 is to be trimmed to 10, but committed is 9"):
        desk.history.saw(desk.gateway, Send(Peer(A), trim))


@pytest.mark.parametrize("tag", [4, 12])
def test_a_log_that_begins_after_what_a_group_needs_is_seen(desk: Desk, tag: int) -> None:
    desk.filled(9)
    for group in range(3):
        desk.checkpoint(group, -1, 5)
    desk.checkpoint(3, -1, tag)
    with pytest.raises(Bug, match="group 3 could only be recovered at tag"):
        desk.store(desk.gateway, orders.TrimLog(Term(1), after(5), RecordNo(6)))


def test_a_head_that_takes_away_the_only_checkpoint_that_helps_is_seen(desk: Desk) -> None:
    desk.filled(9)
    for group in range(4):
        desk.checkpoint(group, -1, 5)
        desk.checkpoint(group, 5, 8)
    desk.store(desk.gateway, orders.TrimLog(Term(1), after(8), RecordNo(9)))
    with pytest.raises(Bug, match="group 2 could only be recovered at tag 5"):
        desk.checkpoint(2, 5, 12)


def test_increments_that_are_trimmed_too_far_are_seen(desk: Desk) -> None:
    desk.filled(9)
    desk.checkpoint(0, -1, 5)
    desk.checkpoint(0, 5, 12)
    with pytest.raises(Bug, match="none is <= committed"):
        desk.store(desk.worker, orders.TrimCheckpoint(GroupId(0), MapVersion(1), RecordNo(5)))
