"""Slots and messages: whose turn it is, where a batch must end, who has credit."""

from collections.abc import Sequence

import pytest

from joinery.flow.minibuffer import MIN_EPOCH_NS, MIN_FULL_BYTES, MUCH, AutoEpoch
from joinery.machine.backlog import Backlog
from joinery.machine.log import SpecChange
from joinery.machine.messages import Exchange
from joinery.machine.placement import Phase, Placement
from joinery.machine.serving import Serving
from joinery.machine.workforce import MAX_MESSAGES
from joinery.model.ids import Peer, RecordNo, WorkerId
from joinery.model.tuples import TupleBatch
from joinery.window.sliding import Marks
from tests.unit.machine.building import GROUPS, change_of, key_in, placed, plainly, plan_of, sent, spec_of, tuples

W0, W1 = WorkerId("worker-0"), WorkerId("worker-1")
PLAN = plan_of()
ROW = 16


def backlog_of(records: int, groups: Sequence[int] = range(GROUPS), rows: int = 1) -> Backlog:
    """Every record has so many rows of every group."""
    made = Backlog(GROUPS, RecordNo(0))
    for number in range(records):
        pairs = [(key_in(group), number) for group in groups for _ in range(rows)]
        made.add([tuples(PLAN, 0, *pairs, place=number * len(pairs))] if pairs else [], Marks((number, number)))
    return made


class Desk:
    """A serving with a fixed epoch of 100 ns and two slots, and its placement."""

    def __init__(self, *workers: str, buffer: int = 10**6, records: int = 5, epoch: str = "100ns") -> None:
        self.place: Placement = placed(*(workers or ("worker-0",)), buffer=buffer)
        spec = spec_of(epochs={"distribution": epoch, "subgroups": 2}, worker={"buffer": "1Mi"})
        self.serving = Serving(spec, self.place)
        self.backlog = backlog_of(records)
        self.serving.reschedule(0)

    def fill(self, worker: WorkerId = W0, changes: tuple[SpecChange, ...] = ()) -> list[Exchange]:
        return [message for _, message in sent(self.serving.fill(worker, self.backlog, changes), Exchange)]

    def fill_buffer(self, nbytes: int) -> None:
        """Two messages: one may always be followed by another."""
        for _ in range(2):
            self.place.workforce.sent(W0, nbytes // 2)

    def serve(self, now: int) -> list[Peer]:
        return [peer for peer, _ in sent(self.serving.serve(self.backlog, (), now), Exchange)]


def cuts(messages: list[Exchange]) -> list[tuple[list[int], list[int], int]]:
    return [(plainly(one.groups), plainly(one.after), int(one.upto)) for one in messages]


ALL, BEGIN = list(range(GROUPS)), [-1] * GROUPS


# --- rule 1: one message for all groups at the same place


def test_groups_that_stand_at_the_same_place_share_one_message() -> None:
    assert [(ALL, BEGIN, 4)] == cuts(Desk().fill())


def test_a_message_holds_the_rows_of_its_groups_ordered_by_group() -> None:
    (message,) = Desk(records=2).fill()
    (batch,) = message.batches
    assert [key_in(group) for group in ALL for _ in range(2)] == batch.rows.column("k").to_pylist()


def test_a_message_carries_the_marks_at_its_end() -> None:
    (message,) = Desk().fill()
    assert Marks((4, 4)) == message.marks


def test_a_message_names_term_and_map_version() -> None:
    (message,) = Desk().fill()
    assert (1, 1) == (message.term, message.map_version)


def test_groups_whose_batches_end_elsewhere_get_a_message_of_their_own() -> None:
    desk = Desk()
    desk.place.silent[0] = 2
    assert [([0], [-1], 2), ([0, 1, 2, 3], [2, -1, -1, -1], 4)] == cuts(desk.fill())


def test_what_was_sent_is_not_sent_again() -> None:
    desk = Desk()
    desk.fill()
    assert ([], [4] * 4) == (desk.fill(), plainly(desk.place.sent))


def test_only_the_workers_own_groups_are_sent() -> None:
    assert [([2, 3], [-1, -1], 4)] == cuts(Desk("worker-0", "worker-1").fill(W1))


def test_only_groups_that_are_served_are_sent() -> None:
    desk = Desk()
    desk.place.phase[[0, 2]] = Phase.ASSIGNED
    assert [([1, 3], [-1, -1], 4)] == cuts(desk.fill())


def test_a_worker_that_is_away_is_sent_nothing() -> None:
    desk = Desk()
    desk.place.workforce.disconnected(W0)
    assert [] == desk.fill()


def test_a_group_goes_on_after_what_its_owner_has_received() -> None:
    desk = Desk()
    desk.place.sent[:] = (0, 3, 0, 3)
    assert [(ALL, [0, 3, 0, 3], 4)] == cuts(desk.fill())


# --- rule 2: where a batch ends


def test_a_batch_ends_where_its_group_was_committed() -> None:
    desk = Desk()
    desk.place.silent[:] = 1
    assert [(ALL, BEGIN, 1), (ALL, [1] * 4, 4)] == cuts(desk.fill())


def test_a_batch_ends_where_output_in_order_was_cut() -> None:
    desk = Desk()
    desk.place.silent[:], desk.place.seen[:] = 1, 3
    assert [1, 3, 4] == [int(message.upto) for message in desk.fill()]


def test_a_place_that_was_passed_ends_no_batch() -> None:
    desk = Desk()
    desk.place.silent[:], desk.place.seen[:], desk.place.sent[:] = 1, 2, 2
    assert [4] == [int(message.upto) for message in desk.fill()]


def test_a_batch_ends_at_the_record_of_a_change() -> None:
    assert [2, 4] == [int(message.upto) for message in Desk().fill(changes=(change_of(2),))]


def test_a_batch_never_reaches_across_several_changes() -> None:
    changes = (change_of(0), change_of(1, version=2), change_of(3, version=3))
    assert [0, 1, 3, 4] == [int(message.upto) for message in Desk().fill(changes=changes)]


def test_a_change_is_in_force_after_its_record_only() -> None:
    change = change_of(2)
    assert [(), (change,)] == [message.changes for message in Desk().fill(changes=(change,))]


def test_a_full_message_ends_at_the_record_with_which_it_is_full() -> None:
    desk = Desk(records=0)
    desk.serving._limit = 2 * GROUPS * ROW
    desk.backlog = backlog_of(5)
    assert [1, 3, 4] == [int(message.upto) for message in desk.fill()]


def test_a_message_is_at_most_a_quarter_of_the_workers_buffer() -> None:
    """So that a worker has something to join while the next one comes, and f sees what waits."""
    spec = spec_of(worker={"buffer": "4Ki"})
    assert 1024 == Serving(spec, placed("worker-0"))._limit


def test_records_without_rows_are_sent_for_their_marks() -> None:
    desk = Desk()
    desk.backlog = backlog_of(3, groups=())
    (message,) = desk.fill()
    assert (2, (), Marks((2, 2))) == (message.upto, message.batches, message.marks)


# --- rule 3: credit


def test_a_worker_without_credit_is_skipped() -> None:
    desk = Desk(buffer=100)
    desk.fill_buffer(100)
    assert ([], BEGIN) == (desk.fill(), plainly(desk.place.sent))


def test_a_worker_that_was_skipped_is_known_as_held_back() -> None:
    desk = Desk(buffer=100)
    desk.fill_buffer(100)
    desk.fill()
    assert desk.place.workforce.hands[W0].was_held_back


def test_a_worker_that_has_everything_is_not_held_back() -> None:
    desk = Desk(records=0, buffer=100)
    desk.fill_buffer(100)
    desk.fill()
    assert not desk.place.workforce.hands[W0].was_held_back


def test_the_rows_of_a_skipped_worker_wait_for_its_next_slot() -> None:
    desk = Desk(buffer=100)
    desk.fill_buffer(100)
    desk.fill()
    desk.place.workforce.credit(W0, 50)
    assert [(ALL, BEGIN, 4)] == cuts(desk.fill())


def test_every_message_takes_credit() -> None:
    desk = Desk(buffer=10**6)
    desk.fill()
    assert (5 * GROUPS * ROW, 1) == (
        desk.place.workforce.hands[W0].outstanding_bytes,
        desk.place.workforce.hands[W0].outstanding,
    )


def test_messages_stop_when_credit_is_used_up() -> None:
    desk = Desk(buffer=2 * GROUPS * ROW)
    desk.serving._limit = GROUPS * ROW
    assert [0, 1] == [int(message.upto) for message in desk.fill()]


def test_while_a_record_as_large_as_the_buffer_is_joined_the_next_one_comes() -> None:
    desk = Desk(buffer=GROUPS * ROW)
    desk.serving._limit = GROUPS * ROW
    assert [0, 1] == [int(message.upto) for message in desk.fill()]


def test_a_worker_gets_no_more_messages_than_it_may_have_unjoined() -> None:
    desk = Desk(records=MAX_MESSAGES + 5)
    desk.serving._limit = 1
    assert MAX_MESSAGES == len(desk.fill())


# --- slots


def test_a_worker_is_served_in_its_slot_only() -> None:
    desk = Desk("worker-0", "worker-1")
    assert ([W0], [], [W1]) == (desk.serve(0), desk.serve(49), desk.serve(50))


def test_a_worker_is_served_once_in_an_epoch() -> None:
    desk = Desk()
    desk.serve(0)
    desk.backlog = backlog_of(9)
    assert ([], [W0]) == (desk.serve(99), desk.serve(100))


def test_the_next_turn_is_the_next_workers() -> None:
    desk = Desk("worker-0", "worker-1")
    desk.serve(0)
    assert 50 == desk.serving.next_turn_ns()


def test_without_a_map_there_are_no_turns() -> None:
    assert Serving(spec_of(), Placement(GROUPS, placed("worker-0").workforce)).next_turn_ns() is None


def test_new_slots_begin_with_the_next_epoch() -> None:
    desk = Desk("worker-0", "worker-1")
    desk.serve(0)
    desk.serving.reschedule(70)
    assert 100 == desk.serving.next_turn_ns()


def test_the_most_that_waited_just_before_a_slot_is_kept() -> None:
    desk = Desk()
    desk.serve(0)
    desk.serve(100)
    assert 5 * GROUPS * ROW == desk.serving.peak_bytes


def test_unsent_bytes_are_those_after_each_groups_place() -> None:
    desk = Desk()
    desk.place.sent[:] = (4, 3, 2, 1)
    assert (0 + 1 + 2 + 3) * ROW == desk.serving.unsent_bytes(desk.backlog)


# --- rule 4: auto


def large(bytes_: int) -> TupleBatch:
    return tuples(PLAN, 0, *[(key_in(0), 1)] * (bytes_ // ROW))


@pytest.mark.parametrize(("epoch", "size", "served"), [("auto", 0, False), ("auto", 1, True), ("100ns", 1, False)])
def test_a_slot_comes_early_with_auto_and_when_enough_waits(epoch: str, size: int, served: bool) -> None:
    desk = Desk(records=0, epoch=epoch)
    desk.backlog.add([large(size * MIN_FULL_BYTES) if size else large(ROW)], Marks((0, 0)))
    assert served == bool(desk.serving.serve_if_full(desk.backlog, (), now_ns=1))


def test_auto_begins_with_the_shortest_epoch() -> None:
    assert MIN_EPOCH_NS == Desk(epoch="auto").serving.epoch_ns


def test_auto_lengthens_the_epoch_when_a_turn_comes_later_than_its_slot_is_long_again() -> None:
    desk = Desk(epoch="auto")
    desk.serving.auto = AutoEpoch(trouble=MUCH)
    desk.serve(-1)  # rows wait from now on, and nobody's turn has come
    desk.serve(3 * MIN_EPOCH_NS)
    assert MIN_EPOCH_NS * 3 // 2 == desk.serving.epoch_ns


@pytest.mark.parametrize(("nbytes", "is_longer"), [(10, True), (10**6, False)], ids=["small", "large"])
def test_auto_lengthens_the_epoch_when_small_messages_pile_up_at_a_worker(nbytes: int, is_longer: bool) -> None:
    desk = Desk(epoch="auto", buffer=10**7)
    desk.serving.auto = AutoEpoch(trouble=MUCH)
    desk.fill_buffer(2 * nbytes)
    desk.serve(-1)
    desk.serve(MIN_EPOCH_NS)
    assert is_longer == (desk.serving.epoch_ns > MIN_EPOCH_NS)


def test_a_turn_that_had_nothing_to_give_was_not_late() -> None:
    desk = Desk(epoch="auto")
    desk.serve(10 * MIN_EPOCH_NS)  # the rows came just now; before, no slot had anything to send
    assert MIN_EPOCH_NS == desk.serving.epoch_ns


def test_there_is_something_unsent_until_every_group_has_the_last_record() -> None:
    desk = Desk()
    assert desk.serving.has_unsent(desk.backlog)
    desk.fill()
    assert not desk.serving.has_unsent(desk.backlog)


def test_a_clock_that_is_set_back_does_not_stop_the_slots() -> None:
    desk = Desk()
    desk.serve(10**12)
    desk.serving.clock_is(5)
    turn = desk.serving.next_turn_ns()
    assert turn is not None
    assert turn <= 5 + 2 * desk.serving.epoch_ns
