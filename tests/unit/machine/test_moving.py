"""Planned moves: checkpoint, preload, wait for the commit, hand over; given up when a side goes away."""

import pytest

from joinery.elastic.plan import Move
from joinery.machine.messages import CheckpointNow, Preload, Release
from joinery.machine.moving import PATIENCE, Moves, Step
from joinery.machine.orders import Order, WriteMap
from joinery.machine.placement import Phase, Placement
from joinery.model.ids import GroupId, Term, WorkerId
from tests.unit.machine.building import of, placed, plainly, sent
from tests.unit.machine.result_parts import vector

W0, W1, W2 = WorkerId("worker-0"), WorkerId("worker-1"), WorkerId("worker-2")
TERM = Term(1)


@pytest.fixture
def place() -> Placement:
    """Groups 0, 1 are served by worker 0; 2 by worker 1; 3 by worker 2."""
    return placed("worker-0", "worker-1", "worker-2")


@pytest.fixture
def moves(place: Placement) -> Moves:
    """At most two at once."""
    return Moves(place, max_parallel=2)


def move(group: int, source: WorkerId = W0, target: WorkerId = W1) -> Move:
    return Move(GroupId(group), source, target)


def told(made: list[Order], kind: type) -> list[tuple[str, list[int]]]:
    return [(peer, plainly(message.groups)) for peer, message in sent(made, kind)]


def begun(moves: Moves, *groups: int) -> Moves:
    moves.start(tuple(move(group) for group in groups), TERM)
    return moves


# --- the steps


def test_a_move_begins_with_a_checkpoint_of_the_supplier(moves: Moves) -> None:
    assert [("worker-0", [0])] == told(moves.start((move(0),), TERM), CheckpointNow)


def test_when_the_supplier_has_written_the_consumer_preloads(moves: Moves) -> None:
    assert [("worker-1", [0])] == told(begun(moves, 0).checkpointed(vector(0), TERM), Preload)


def test_a_checkpoint_of_a_group_that_does_not_move_is_nobodys_business(moves: Moves) -> None:
    assert [] == begun(moves, 0).checkpointed(vector(1), TERM)


def test_the_consumer_follows_newer_checkpoints(moves: Moves) -> None:
    begun(moves, 0).checkpointed(vector(0), TERM)
    moves.preloaded(W1, vector(0), vector(5))
    assert [("worker-1", [0])] == told(moves.checkpointed(vector(0), TERM), Preload)


def test_a_preloaded_group_waits_until_what_was_preloaded_is_committed(moves: Moves, place: Placement) -> None:
    place.committed[0] = 4
    begun(moves, 0).checkpointed(vector(0), TERM)
    assert ([], Step.COMMIT) == (moves.preloaded(W1, vector(0), vector(5)), moves.under_way[GroupId(0)].step)


def test_a_preloaded_group_is_handed_over_once_that_is_committed(moves: Moves, place: Placement) -> None:
    begun(moves, 0).checkpointed(vector(0), TERM)
    moves.preloaded(W1, vector(0), vector(5))
    place.committed[0] = 5
    (write,) = of(moves.hand_over(), WriteMap)
    assert ["worker-1", 1] == [write.map["workers"][1], write.map["owners"][0]]


def test_a_commit_that_does_not_come_is_waited_for_only_so_long(moves: Moves, place: Placement) -> None:
    """Output in order may hold it back until a stream ends: a drain must not wait for that."""
    place.committed[0] = 4
    begun(moves, 0).checkpointed(vector(0), TERM)
    moves.preloaded(W1, vector(0), vector(5))
    handed = []
    for _ in range(PATIENCE):
        handed.append(len(of(moves.hand_over(), WriteMap)))
        moves.epoch_ended()
    assert [0] * PATIENCE == handed
    assert 1 == len(of(moves.hand_over(), WriteMap))


def test_a_group_without_a_checkpoint_is_handed_over_at_once(moves: Moves) -> None:
    begun(moves, 0).checkpointed(vector(0), TERM)
    assert 1 == len(of(moves.preloaded(W1, vector(0), vector(-1)), WriteMap))


def test_a_commit_alone_hands_nothing_over(moves: Moves, place: Placement) -> None:
    place.committed[:] = 100
    begun(moves, 0)
    assert [] == moves.hand_over()


def test_a_preload_of_another_worker_hands_nothing_over(moves: Moves, place: Placement) -> None:
    place.committed[:] = 100
    begun(moves, 0).checkpointed(vector(0), TERM)
    assert [] == moves.preloaded(W2, vector(0), vector(5))


def test_a_group_that_was_handed_over_moves_no_more(moves: Moves) -> None:
    begun(moves, 0).checkpointed(vector(0), TERM)
    moves.preloaded(W1, vector(0), vector(-1))
    assert ((), []) == (moves.in_flight, moves.hand_over())


def test_groups_that_are_ready_together_are_one_change_of_the_map(moves: Moves, place: Placement) -> None:
    begun(moves, 0, 1).checkpointed(vector(0, 1), TERM)
    moves.preloaded(W1, vector(0, 1), vector(5, 5))
    place.committed[:] = 5
    assert 1 == len(moves.hand_over())


# --- how many at once


def test_only_so_many_moves_are_under_way_at_once(place: Placement) -> None:
    moves = Moves(place, max_parallel=1)
    assert [("worker-0", [0])] == told(moves.start((move(0), move(1)), TERM), CheckpointNow)


def test_the_next_move_begins_when_one_is_over(place: Placement) -> None:
    moves = begun(Moves(place, max_parallel=1), 0, 1)
    moves.checkpointed(vector(0), TERM)
    moves.preloaded(W1, vector(0), vector(-1))
    assert [("worker-0", [1])] == told(moves.advance(TERM), CheckpointNow)


def test_a_group_that_moves_is_not_moved_again(moves: Moves) -> None:
    begun(moves, 0)
    assert ([], (move(0),)) == (moves.start((move(0, target=W2),), TERM), moves.in_flight)


def test_a_group_that_waits_to_be_moved_is_not_moved_again(place: Placement) -> None:
    moves = begun(Moves(place, max_parallel=1), 0, 1)
    moves.start((move(1, target=W2),), TERM)
    moves.forget(vector(0))
    moves.advance(TERM)
    assert (move(1),) == moves.in_flight


# --- what makes no sense is left out


def test_nothing_moves_from_a_worker_that_does_not_own_it(moves: Moves) -> None:
    assert ([], ()) == (moves.start((move(2, source=W0),), TERM), moves.in_flight)


def test_nothing_moves_that_is_not_served(moves: Moves, place: Placement) -> None:
    place.phase[0] = Phase.ASSIGNED
    assert [] == moves.start((move(0),), TERM)


def test_nothing_moves_to_a_worker_that_is_away(moves: Moves, place: Placement) -> None:
    place.workforce.disconnected(W1)
    assert [] == moves.start((move(0),), TERM)


def test_nothing_moves_from_a_worker_that_is_away(moves: Moves, place: Placement) -> None:
    place.workforce.disconnected(W0)
    assert [] == moves.start((move(0),), TERM)


def test_nothing_moves_to_a_worker_outside_the_map(moves: Moves, place: Placement) -> None:
    place.workforce.hands[WorkerId("worker-9")] = place.workforce.hands[W1]
    assert [] == moves.start((move(0, target=WorkerId("worker-9")),), TERM)


def test_nothing_moves_to_a_worker_that_is_being_drained(moves: Moves) -> None:
    moves.close({W1})
    assert [] == moves.start((move(0),), TERM)


def test_a_worker_that_is_being_drained_gives_its_groups_away(moves: Moves) -> None:
    moves.close({W0})
    assert [("worker-0", [0])] == told(moves.start((move(0),), TERM), CheckpointNow)


def test_a_worker_that_is_no_longer_being_drained_takes_groups_again(moves: Moves) -> None:
    moves.close({W1})
    moves.close(set())
    assert [("worker-0", [0])] == told(moves.start((move(0),), TERM), CheckpointNow)


# --- given up


@pytest.mark.parametrize("gone", [W0, W1])
def test_a_move_is_given_up_when_a_side_goes_away(moves: Moves, gone: WorkerId) -> None:
    begun(moves, 0).give_up(gone)
    assert () == moves.in_flight


def test_a_move_that_waits_is_given_up_too_but_only_those_that_began_are_counted(place: Placement) -> None:
    moves = begun(Moves(place, max_parallel=1), 0)
    moves.start((move(1, target=W2),), TERM)
    moves.give_up(W2)
    assert 0 == moves.given_up
    moves.forget(vector(0))
    moves.forget(vector(0))
    assert 1 == moves.given_up
    assert ([("worker-1", [0])], ()) == (told(moves.advance(TERM), Release), moves.in_flight)


def test_a_consumer_is_told_once_to_let_go_what_it_has_preloaded_in_vain(moves: Moves) -> None:
    begun(moves, 0).give_up(W0)
    assert [("worker-1", [0])] == told(moves.advance(TERM), Release)
    assert [] == moves.advance(TERM)


def test_a_consumer_that_gets_the_group_all_the_same_is_told_nothing(moves: Moves, place: Placement) -> None:
    begun(moves, 0).give_up(W0)
    place.propose({GroupId(0): W1})
    assert [] == told(moves.advance(TERM), Release)


def test_moves_between_others_go_on(moves: Moves) -> None:
    begun(moves, 0).give_up(W2)
    assert (move(0),) == moves.in_flight


def test_what_was_given_up_is_not_handed_over(moves: Moves, place: Placement) -> None:
    begun(moves, 0).checkpointed(vector(0), TERM)
    moves.preloaded(W1, vector(0), vector(5))
    moves.give_up(W1)
    place.committed[:] = 5
    assert [] == moves.hand_over()


def test_what_is_on_its_way_to_a_worker_that_is_drained_is_given_up(moves: Moves) -> None:
    begun(moves, 0).close({W1})
    assert () == moves.in_flight


def test_a_drain_gives_up_moves_only_once(moves: Moves) -> None:
    moves.close({W0})
    begun(moves, 0).close({W0})
    assert (move(0),) == moves.in_flight


def test_a_group_that_got_another_owner_for_another_reason_moves_no_more(moves: Moves) -> None:
    begun(moves, 0, 1).forget(vector(0))
    assert (move(1),) == moves.in_flight
