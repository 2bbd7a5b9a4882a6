"""A group's way to its owner: map durable, collector told and asked, owner assigned, served."""

from collections.abc import Sequence

import pytest

from joinery.machine.messages import Assign, Owners, Release, Vector
from joinery.machine.orders import Order, WriteMap
from joinery.machine.placement import Phase, Placement
from joinery.model.ids import GroupId, MapVersion, Term, WorkerId
from tests.unit.machine.building import COLLECTOR_PEER, change_of, holdings, of, placed, plainly, sent, workforce_of
from tests.unit.machine.result_parts import vector

W0, W1, W2 = WorkerId("worker-0"), WorkerId("worker-1"), WorkerId("worker-2")


@pytest.fixture
def place() -> Placement:
    """Groups 0, 1 are served by worker 0; 2, 3 by worker 1."""
    return placed("worker-0", "worker-1")


def answer(place: Placement, *committed: int, versions: Sequence[int] | None = None) -> list[Order]:
    """The collector answers with these committed records."""
    own = place.map.terms.tolist() if place.map and versions is None else versions or ()
    vectors = (vector(*own), vector(*committed), vector(*[-1] * len(committed)))
    return place.vector(Vector(Term(1), *vectors), ())


def moved(place: Placement, group: int, to: WorkerId) -> list[Order]:
    """The group has a new owner in a map that is durable."""
    place.propose({GroupId(group): to})
    return written(place)


def written(place: Placement, now: int = 0) -> list[Order]:
    assert place._writing is not None
    return place.written(MapVersion(place._writing.version), now)


def phases(place: Placement) -> list[Phase]:
    return [Phase(phase) for phase in place.phase.tolist()]


# --- rule 1: map, then collector, then owner


def unplaced() -> Placement:
    place = Placement(4, workforce_of("worker-0", "worker-1"))
    place.restore(None, Term(1))
    place.collector = COLLECTOR_PEER
    return place


def test_the_first_map_is_written_before_anybody_is_told() -> None:
    place = unplaced()
    assert [WriteMap] == [type(one) for one in place.found([W0, W1])]


def test_before_the_map_is_durable_nobody_owns_anything() -> None:
    place = unplaced()
    place.found([W0, W1])
    assert (None, []) == (place.owner(0), plainly(place.groups_of(W0)))


def test_when_the_map_is_durable_the_collector_is_told_and_asked() -> None:
    place = unplaced()
    place.found([W0, W1])
    ((peer, owners),) = sent(written(place), Owners)
    assert (COLLECTOR_PEER, [1, 1, 1, 1]) == (peer, plainly(owners.versions))


def test_nobody_is_assigned_before_the_collector_has_answered() -> None:
    place = unplaced()
    place.found([W0, W1])
    assert ([], [Phase.ASKED] * 4) == (sent(written(place), Assign), phases(place))


def test_the_answer_of_the_collector_assigns_every_owner_its_groups() -> None:
    place = placed("worker-0", "worker-1", served=False)
    found = [
        (peer, plainly(assign.groups), plainly(assign.versions))
        for peer, assign in sent(answer(place, *[-1] * 4), Assign)
    ]
    assert [("worker-0", [0, 1], [1, 1]), ("worker-1", [2, 3], [1, 1])] == found


def test_an_owner_is_silent_up_to_what_is_committed() -> None:
    place = placed("worker-0", served=False)
    ((_, assign),) = sent(answer(place, 4, 5, 6, 7), Assign)
    assert ([4, 5, 6, 7], [Phase.ASSIGNED] * 4) == (plainly(assign.silent), phases(place))


def test_an_assignment_names_where_output_in_order_was_cut() -> None:
    place = placed("worker-0", served=False)
    made = place.vector(Vector(Term(1), vector(1, 1, 1, 1), vector(4, 4, 4, 4), vector(6, -1, 6, -1)), ())
    ((_, assign),) = sent(made, Assign)
    assert [6, -1, 6, -1] == plainly(assign.seen)


def test_an_assignment_names_every_change_of_the_spec() -> None:
    place = placed("worker-0", served=False)
    change = change_of(3)
    made = place.vector(Vector(Term(1), vector(1, 1, 1, 1), vector(4, 4, 4, 4), vector(-1, -1, -1, -1)), (change,))
    ((_, assign),) = sent(made, Assign)
    assert (change,) == assign.changes


def test_an_answer_about_older_owners_assigns_nobody(place: Placement) -> None:
    moved(place, 0, W1)
    assert ([], Phase.ASKED) == (answer(place, 0, 0, 0, 0, versions=(1, 1, 1, 1)), phases(place)[0])


def test_groups_that_are_served_are_not_assigned_again(place: Placement) -> None:
    moved(place, 0, W1)
    found = [(peer, plainly(assign.groups)) for peer, assign in sent(answer(place, 3, 3, 3, 3), Assign)]
    assert [("worker-1", [0])] == found


def test_an_answer_before_there_is_a_map_is_left_alone() -> None:
    assert [] == answer(unplaced(), -1, -1, -1, -1, versions=(0, 0, 0, 0))


def test_what_is_committed_never_goes_back(place: Placement) -> None:
    answer(place, 5, 5, 5, 5)
    answer(place, 3, 6, 3, 6)
    assert [5, 6, 5, 6] == plainly(place.committed)


def test_an_owner_that_is_away_is_not_sent_its_assignment(place: Placement) -> None:
    moved(place, 0, W1)
    place.workforce.disconnected(W1)
    assert [] == answer(place, 3, 3, 3, 3)


def test_without_a_collector_nobody_is_told(place: Placement) -> None:
    place.collector = None
    assert [] == sent(moved(place, 0, W1), Owners)


def test_a_collector_that_comes_is_told_the_owners_of_all_groups(place: Placement) -> None:
    place.collector = None
    moved(place, 0, W1)
    place.collector = COLLECTOR_PEER
    ((_, owners),) = sent(place.tell_collector(), Owners)
    assert [2, 1, 1, 1] == plainly(owners.versions)


# --- changes of the map


def test_a_move_is_written_before_anybody_is_told(place: Placement) -> None:
    assert ([WriteMap], W0) == ([type(one) for one in place.propose({GroupId(0): W1})], place.owner(0))


def test_the_old_owner_lets_go_before_the_collector_hears_of_the_new_one(place: Placement) -> None:
    made = moved(place, 0, W1)
    assert [Release, Owners] == [type(one.message) for one in made]


def test_the_old_owner_is_told_which_groups_it_lost(place: Placement) -> None:
    ((peer, release),) = sent(moved(place, 0, W1), Release)
    assert ("worker-0", [0]) == (peer, plainly(release.groups))


def test_an_owner_that_gets_its_own_group_anew_is_not_told_to_let_go(place: Placement) -> None:
    assert [] == sent(moved(place, 0, W0), Release)


def test_a_group_that_moves_is_not_served_until_its_new_owner_holds_it(place: Placement) -> None:
    moved(place, 0, W1)
    assert ([1], [2, 3]) == (plainly(place.served_by(W0)), plainly(place.served_by(W1)))


def test_only_the_group_that_moves_gets_a_new_term(place: Placement) -> None:
    moved(place, 0, W1)
    assert [2, 1, 1, 1] == plainly(place.terms_of(vector(0, 1, 2, 3)))


def test_one_map_is_written_at_a_time(place: Placement) -> None:
    place.propose({GroupId(0): W1})
    assert [] == place.propose({GroupId(1): W1})


def test_what_was_proposed_while_a_map_was_written_is_written_next(place: Placement) -> None:
    place.propose({GroupId(0): W1})
    place.propose({GroupId(1): W1})
    (write,) = of(written(place), WriteMap)
    assert (3, [1, 1, 1, 1], [2, 3, 1, 1]) == (write.map["version"], write.map["owners"], write.map["terms"])


def test_changes_are_settled_when_the_last_one_is_durable(place: Placement) -> None:
    before = place.is_settled
    place.propose({GroupId(0): W1})
    during = place.is_settled
    written(place)
    assert (True, False, True) == (before, during, place.is_settled)


def test_an_answer_for_another_map_than_the_one_being_written_changes_nothing(place: Placement) -> None:
    place.propose({GroupId(0): W1})
    assert ([], W0) == (place.written(MapVersion(7), 0), place.owner(0))


def test_a_group_does_not_move_to_a_worker_that_is_away(place: Placement) -> None:
    place.workforce.disconnected(W1)
    assert ([], True) == (place.propose({GroupId(0): W1}), place.is_settled)


def test_a_group_does_not_move_to_a_worker_outside_the_map(place: Placement) -> None:
    assert [] == place.propose({GroupId(0): W2})


def test_a_worker_that_joins_owns_nothing_yet(place: Placement) -> None:
    place.propose({}, join=[W2])
    written(place)
    assert (("worker-0", "worker-1", "worker-2"), []) == (place.map and place.map.workers, plainly(place.groups_of(W2)))


def test_workers_are_those_of_the_map_and_of_the_one_being_written(place: Placement) -> None:
    place.propose({}, join=[W2])
    assert {W0, W1, W2} == place.workers


def test_a_worker_leaves_only_if_it_owns_nothing(place: Placement) -> None:
    assert [] == place.propose({}, part=[W1])


def test_a_worker_leaves_together_with_its_last_groups(place: Placement) -> None:
    place.propose({GroupId(2): W0, GroupId(3): W0}, part=[W1])
    written(place)
    assert ("worker-0",) == (place.map and place.map.workers)


def test_a_worker_that_joins_again_does_not_leave(place: Placement) -> None:
    place.propose({GroupId(0): W1})
    place.propose({GroupId(2): W0, GroupId(3): W0}, part=[W1])
    place.propose({}, join=[W1])
    written(place)
    written(place)
    assert ("worker-0", "worker-1") == (place.map and place.map.workers)


# --- being served


def test_an_owner_that_holds_its_groups_is_served_after_what_it_received() -> None:
    place = placed("worker-0", served=False)
    place.holding(W0, holdings(0, 1, received=6, silent=4), now_ns=0)
    assert ([0, 1], [6, 6, -1, -1], [4, 4, -1, -1]) == (
        plainly(place.served_by(W0)),
        plainly(place.sent),
        plainly(place.silent),
    )


def test_a_group_held_under_another_term_is_not_served(place: Placement) -> None:
    moved(place, 2, W1)
    assert ([], Phase.ASKED) == (plainly(place.holding(W1, holdings(2, version=1), 0)), phases(place)[2])


def test_a_group_that_belongs_to_another_is_not_served(place: Placement) -> None:
    assert [] == plainly(place.holding(W1, holdings(0), 0))


def test_the_pause_of_a_group_is_from_the_durable_map_to_its_owners_word(place: Placement) -> None:
    place.propose({GroupId(0): W1})
    written(place, now=100)
    answer(place, 3, 3, 3, 3)
    place.holding(W1, holdings(0, version=2), now_ns=175)
    assert [(0, 75)] == place.pauses_ns


def test_a_group_that_was_served_all_the_time_has_no_pause(place: Placement) -> None:
    place.hello(W0, holdings(0, 1), now_ns=50)
    assert [] == place.pauses_ns


# --- rule 2: an owner without its groups


def test_an_owner_that_comes_back_without_its_groups_gets_them_under_a_new_term(place: Placement) -> None:
    _, made = place.hello(W0, holdings(), now_ns=0)
    (write,) = of(made, WriteMap)
    assert ([2, 2, 1, 1], [0, 0, 1, 1]) == (write.map["terms"], write.map["owners"])


def test_an_owner_that_comes_back_without_its_groups_is_not_served(place: Placement) -> None:
    place.hello(W0, holdings(), now_ns=0)
    assert ([], Phase.UNKNOWN) == (plainly(place.served_by(W0)), phases(place)[0])


def test_only_the_groups_that_it_lacks_get_a_new_term(place: Placement) -> None:
    mine, made = place.hello(W0, holdings(1, received=3), now_ns=0)
    (write,) = of(made, WriteMap)
    assert ([1], [2, 1, 1, 1]) == (plainly(mine), write.map["terms"])


def test_an_owner_that_never_got_its_assignment_gets_it_under_a_new_term() -> None:
    place = placed("worker-0", served=False)
    answer(place, -1, -1, -1, -1)
    (write,) = of(place.hello(W0, holdings(), now_ns=0)[1], WriteMap)
    assert [2, 2, 2, 2] == write.map["terms"]


def test_an_owner_whose_assignment_is_still_to_come_gets_no_new_term() -> None:
    place = placed("worker-0", served=False)
    assert [] == place.hello(W0, holdings(), now_ns=0)[1]


def test_an_owner_that_holds_all_its_groups_gets_no_new_term(place: Placement) -> None:
    assert [] == place.hello(W0, holdings(0, 1), now_ns=0)[1]


def test_foreign_groups_are_released(place: Placement) -> None:
    ((peer, release),) = sent(place.hello(W0, holdings(0, 1, 2), now_ns=0)[1], Release)
    assert ("worker-0", [2]) == (peer, plainly(release.groups))


def test_a_group_held_under_an_old_term_is_released(place: Placement) -> None:
    moved(place, 0, W0)
    ((_, release),) = sent(place.hello(W0, holdings(0, 1, version=1), now_ns=0)[1], Release)
    assert [0] == plainly(release.groups)


def test_a_worker_that_is_not_in_the_map_joins_it() -> None:
    place = placed("worker-0", "worker-1")
    place.workforce = workforce_of("worker-0", "worker-1", "worker-2")
    (write,) = of(place.hello(W2, holdings(), now_ns=0)[1], WriteMap)
    assert ["worker-0", "worker-1", "worker-2"] == write.map["workers"]


def test_before_there_is_a_map_a_hello_changes_nothing() -> None:
    mine, made = unplaced().hello(W0, holdings(0), now_ns=0)
    assert ([], []) == (plainly(mine), made)


# --- rule 3: a gateway that starts again


def again(place: Placement) -> Placement:
    """A new gateway finds the map of the one before."""
    made = Placement(4, workforce_of("worker-0", "worker-1"))
    made.restore(place.map.to_dict() if place.map else None, Term(2))
    return made


def test_after_a_restart_the_map_is_known_and_nothing_else(place: Placement) -> None:
    moved(place, 0, W1)
    found = again(place)
    assert (W1, [Phase.UNKNOWN] * 4, [-1] * 4) == (found.owner(0), phases(found), plainly(found.sent))


def test_after_a_restart_a_hello_says_from_where_to_serve(place: Placement) -> None:
    found = again(place)
    mine, made = found.hello(W0, holdings(0, 1, received=8, silent=5), now_ns=0)
    assert ([0, 1], [], [8, 8, -1, -1]) == (plainly(mine), made, plainly(found.sent))


def test_after_a_restart_an_owner_without_its_groups_gets_a_new_term(place: Placement) -> None:
    found = again(place)
    (write,) = of(found.hello(W1, holdings(), now_ns=0)[1], WriteMap)
    assert (Term(2), [1, 1, 2, 2]) == (write.term, write.map["terms"])


@pytest.mark.parametrize(("served", "moves"), [(True, [2, 3]), (False, [])])
def test_only_groups_that_an_owner_had_are_taken_back_by_it(served: bool, moves: list[int]) -> None:
    place = placed("worker-0", "worker-1", served=served)
    place.phase[:] = Phase.SERVED if served else Phase.ASSIGNED  # what never came is assigned again, and moves nowhere
    place.hello(W1, holdings(), now_ns=0)
    place.written(MapVersion(2), now_ns=0)
    assert moves == sorted(place.handovers.changing)
