"""Every t_r: reports, moves, drains, losses, as far as the gateway applies what `elastic` decides."""

import pytest

from joinery.elastic.load import GroupLoad, LoadReport, Role
from joinery.elastic.migration_plan import replan
from joinery.elastic.plan import Move
from joinery.machine.messages import CheckpointNow, ClusterReport, Drain, Empty, MoveGroup
from joinery.machine.moving import Moves
from joinery.machine.orders import Order, WriteMap
from joinery.machine.placement import Placement
from joinery.machine.reorganizing import Reorganizing
from joinery.model.ids import OPERATOR, GroupId, MapVersion, Peer, Term, WorkerId
from tests.unit.machine.building import SECOND, hello, holdings, of, placed, plainly, sent, spec_of, workforce_of
from tests.unit.machine.result_parts import vector

W0, W1, W2 = WorkerId("worker-0"), WorkerId("worker-1"), WorkerId("worker-2")
TERM = Term(1)
EPOCH = 2 * SECOND


class Desk:
    """Six groups over the workers, two each if there are three; nobody has reported."""

    def __init__(self, *workers: str, placed_: bool = True, **scaling: object) -> None:
        names = workers or ("worker-0", "worker-1", "worker-2")
        self.place: Placement = placed(*names, groups=6) if placed_ else Placement(6, workforce_of(*names))
        self.moves = Moves(self.place, max_parallel=8)
        self.reorganizing = Reorganizing(spec_of(scaling=scaling), self.place, self.moves)

    def report(self, worker: WorkerId, occupancy: float = 0.0, memory: int = 0, busy: float = 0.0) -> None:
        own = self.place.groups_of(worker).tolist()
        groups = tuple(GroupLoad(group=GroupId(group), weight=1.0) for group in own)
        self.reorganizing.reported(
            worker, LoadReport(worker=worker, occupancy=occupancy, busy=busy, memory_bytes=memory, memory_limit=100,
                               groups=groups)
        )  # fmt: skip

    def written(self) -> list[Order]:
        """The map that is being written is durable."""
        assert self.place._writing is not None
        return self.place.written(MapVersion(self.place._writing.version), 0)

    def owners(self) -> list[str | None]:
        return [self.place.owner(group) for group in range(6)]

    def hand_over(self, *groups: int) -> None:
        """These groups' moves go through all their steps, up to a durable map, and their new owners hold them."""
        targets = {group: self.moves.under_way[GroupId(group)].move.target for group in groups}
        self.moves.checkpointed(vector(*groups), TERM)
        for group, target in targets.items():
            self.moves.preloaded(target, vector(group), vector(-1))
        while self.place._writing is not None:
            self.written()
        for group, target in targets.items():
            version = int(self.place.terms_of(vector(group))[0])
            self.place.holding(target, holdings(group, version=version), 0)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def moves_of(made: list[Order]) -> list[int]:
    return [group for _, message in sent(made, CheckpointNow) for group in plainly(message.groups)]


def emptied(made: list[Order]) -> list[tuple[str, ...]]:
    return [message.workers for peer, message in sent(made, Empty) if peer == OPERATOR]


# --- every epoch


def test_before_anybody_has_reported_there_is_nothing_to_say(desk: Desk) -> None:
    assert [] == desk.reorganizing.tick(TERM, 0)


def test_the_operator_hears_of_the_load_at_the_end_of_an_epoch(desk: Desk) -> None:
    desk.report(W0, 0.9)
    ((peer, message),) = sent(desk.reorganizing.tick(TERM, EPOCH), ClusterReport)
    assert (OPERATOR, (Role.SUPPLIER,), 3) == (peer, message.load.roles, message.load.degree)


def test_an_epoch_is_as_long_as_the_spec_says(desk: Desk) -> None:
    desk.report(W0)
    desk.reorganizing.tick(TERM, 5)
    assert ([], EPOCH + 5) == (desk.reorganizing.tick(TERM, EPOCH + 4), desk.reorganizing.next_ns)


def test_an_overloaded_worker_gives_groups_to_an_idle_one(desk: Desk) -> None:
    desk.report(W0, 0.9, busy=1.0)
    desk.report(W1)
    desk.report(W2)
    desk.reorganizing.tick(TERM, 0)
    assert {W0} == {move.source for move in desk.moves.in_flight}


def test_the_papers_rule_moves_one_group_of_a_supplier() -> None:
    desk = Desk(rule="paper")
    desk.report(W0, 0.9, busy=1.0)
    desk.report(W1)
    assert 1 == len(moves_of(desk.reorganizing.tick(TERM, 0)))


def test_a_plan_can_be_made_again_from_its_inputs_and_its_seed(desk: Desk) -> None:
    desk.report(W0, 0.9, busy=1.0)
    desk.report(W1)
    desk.reorganizing.tick(Term(3), 0)
    (plan,) = desk.reorganizing.plans
    assert (3 << 32 | 1, plan) == (plan.seed, replan(plan.inputs, plan.seed))


def test_while_a_map_is_written_nothing_is_planned(desk: Desk) -> None:
    desk.report(W0, 0.9, busy=1.0)
    desk.report(W1)
    desk.place.propose({GroupId(0): W1})
    assert ([], 0) == (desk.reorganizing.tick(TERM, 0), len(desk.reorganizing.plans))


def test_while_workers_are_drained_nothing_else_is_planned(desk: Desk) -> None:
    desk.reorganizing.asked(Drain((W2,)), TERM)
    desk.report(W0, 0.9, busy=1.0)
    desk.report(W1)
    desk.reorganizing.tick(TERM, 0)
    assert 0 == len(desk.reorganizing.plans)


def test_a_report_counts_only_for_groups_that_the_worker_still_owns(desk: Desk) -> None:
    desk.report(W0)
    desk.place.propose({GroupId(0): W1})
    desk.written()
    load = desk.reorganizing.load()
    assert load is not None
    assert [1] == [part.group for part in load.reports[0].groups]


def test_a_worker_that_is_away_does_not_count(desk: Desk) -> None:
    desk.report(W0)
    desk.report(W1)
    desk.place.workforce.disconnected(W1)
    load = desk.reorganizing.load()
    assert load is not None
    assert [W0] == [report.worker for report in load.reports]


def test_a_worker_that_was_held_back_had_back_pressure_until_it_is_told(desk: Desk) -> None:
    desk.report(W0)
    desk.place.workforce.hands[W0].was_held_back = True
    pressure = []
    for epoch in range(2):
        ((_, message),) = sent(desk.reorganizing.tick(TERM, epoch * EPOCH), ClusterReport)
        pressure.append(message.load.back_pressure)
    assert [True, False] == pressure


def test_the_memory_share_is_the_fullest_workers(desk: Desk) -> None:
    desk.report(W0, memory=30)
    desk.report(W1, memory=70)
    assert 0.7 == desk.reorganizing.memory_share


# --- ordered moves


def test_the_operator_can_move_one_group(desk: Desk) -> None:
    desk.reorganizing.asked(MoveGroup(GroupId(0), W2), TERM)
    assert (Move(GroupId(0), W0, W2),) == desk.moves.in_flight


def test_a_group_is_not_moved_to_its_own_owner(desk: Desk) -> None:
    assert [] == desk.reorganizing.asked(MoveGroup(GroupId(0), W0), TERM)


# --- drains


def test_a_drained_worker_gives_all_its_groups_away(desk: Desk) -> None:
    assert [4, 5] == moves_of(desk.reorganizing.asked(Drain((W2,)), TERM))


def test_a_drained_workers_groups_are_spread_evenly_over_the_rest(desk: Desk) -> None:
    desk.reorganizing.asked(Drain((W2,)), TERM)
    assert [W0, W1] == sorted(move.target for move in desk.moves.in_flight)


def test_nothing_is_drained_to_another_worker_that_is_being_drained(desk: Desk) -> None:
    desk.reorganizing.asked(Drain((W1, W2)), TERM)
    assert {W0} == {move.target for move in desk.moves.in_flight}


def test_a_worker_that_owns_nothing_any_more_leaves_the_map(desk: Desk) -> None:
    desk.reorganizing.asked(Drain((W2,)), TERM)
    desk.hand_over(4, 5)
    (write,) = of(desk.reorganizing.drain(TERM), WriteMap)
    assert ["worker-0", "worker-1"] == write.map["workers"]


def test_the_operator_hears_of_an_empty_worker_only_when_it_has_left_the_map(desk: Desk) -> None:
    desk.reorganizing.asked(Drain((W2,)), TERM)
    desk.hand_over(4, 5)
    before = emptied(desk.reorganizing.drain(TERM))
    desk.written()
    assert ([], [(W2,)]) == (before, emptied(desk.reorganizing.drain(TERM)))


def test_a_worker_that_was_drained_does_not_come_back(desk: Desk) -> None:
    desk.reorganizing.asked(Drain((W2,)), TERM)
    desk.hand_over(4, 5)
    desk.reorganizing.drain(TERM)
    desk.written()
    desk.reorganizing.drain(TERM)
    assert not desk.place.workforce.hello(desk.place.workforce.hands[W0].peer, hello("worker-2"), 0)


def test_a_drain_told_again_says_empty_at_once_if_the_worker_is_gone(desk: Desk) -> None:
    assert [(WorkerId("worker-9"),)] == emptied(desk.reorganizing.asked(Drain((WorkerId("worker-9"),)), TERM))


def test_a_worker_on_its_way_out_is_not_yet_empty(desk: Desk) -> None:
    desk.reorganizing.asked(Drain((W2,)), TERM)
    desk.hand_over(4, 5)
    desk.reorganizing.drain(TERM)
    assert [] == emptied(desk.reorganizing.asked(Drain((W2,)), TERM))


def test_the_last_worker_is_never_taken_out_of_the_map() -> None:
    desk = Desk("worker-0")
    desk.reorganizing.asked(Drain((W0,)), TERM)
    assert ([], ("worker-0",)) == (desk.reorganizing.drain(TERM), desk.place.map and desk.place.map.workers)


def test_what_is_on_its_way_to_a_worker_that_is_drained_turns_back(desk: Desk) -> None:
    desk.reorganizing.asked(MoveGroup(GroupId(0), W2), TERM)
    desk.reorganizing.asked(Drain((W2,)), TERM)
    assert [4, 5] == sorted(move.group for move in desk.moves.in_flight)


def test_a_worker_drained_before_it_was_in_the_map_does_not_come_back(desk: Desk) -> None:
    desk.place.workforce.hello(Peer("worker-9"), hello("worker-9"), 0)
    desk.reorganizing.asked(Drain((WorkerId("worker-9"),)), TERM)
    assert ([], False) == (
        desk.reorganizing.welcome(has_rows=True),
        desk.place.workforce.hello(Peer("worker-9"), hello("worker-9"), 0),
    )


def test_a_drain_asked_for_while_the_first_map_is_written_is_not_forgotten() -> None:
    desk = Desk(placed_=False)
    desk.place.found([W0, W1, W2])
    desk.reorganizing.asked(Drain((W2,)), TERM)
    assert {W2} == desk.reorganizing.draining


# --- who comes


def test_whoever_is_there_and_not_in_the_map_joins_it(desk: Desk) -> None:
    desk.place.workforce.hello(Peer("worker-9"), hello("worker-9"), 0)
    (write,) = of(desk.reorganizing.welcome(has_rows=True), WriteMap)
    assert ["worker-0", "worker-1", "worker-2", "worker-9"] == write.map["workers"]


def test_if_all_are_in_the_map_nobody_joins_it(desk: Desk) -> None:
    assert [] == desk.reorganizing.welcome(has_rows=True)


def test_while_a_map_is_written_nobody_is_welcomed(desk: Desk) -> None:
    desk.place.workforce.hello(Peer("worker-9"), hello("worker-9"), 0)
    desk.place.propose({GroupId(0): W1})
    assert [] == desk.reorganizing.welcome(has_rows=True)


def test_a_worker_on_its_way_out_of_the_map_is_not_welcomed_back(desk: Desk) -> None:
    desk.reorganizing.asked(Drain((W2,)), TERM)
    desk.hand_over(4, 5)
    desk.reorganizing.drain(TERM)
    desk.written()
    assert [] == desk.reorganizing.welcome(has_rows=True)


def newcomers(desk: Desk, *names: str, has_rows: bool) -> list[int]:
    """How many groups each worker has once these are there."""
    for name in names:
        desk.place.workforce.hello(Peer(name), hello(name), 0)
    for write in of(desk.reorganizing.welcome(has_rows=has_rows), WriteMap):
        owners, workers = write.map["owners"], write.map["workers"]
        return [owners.count(place) for place in range(len(workers))]
    return []


def test_who_comes_before_the_first_row_gets_its_share_at_once() -> None:
    assert [2, 2, 2] == newcomers(Desk("worker-0"), "worker-1", "worker-2", has_rows=False)


def test_shares_of_workers_differ_by_one_group_at_most_and_no_group_moves_in_vain(desk: Desk) -> None:
    assert [2, 2, 1, 1] == sorted(newcomers(desk, "worker-9", has_rows=False), reverse=True)
    assert desk.place.map is not None
    desk.written()
    assert [] == newcomers(desk, has_rows=False)


def test_who_is_in_the_map_already_gets_its_share_too() -> None:
    """A worker that says hello joins the map by itself."""
    desk = Desk("worker-0")
    desk.place.workforce.hello(Peer("worker-1"), hello("worker-1"), 0)
    desk.place.hello(W1, holdings(), 0)
    desk.written()
    assert [3, 3] == newcomers(desk, has_rows=False)


def test_who_comes_later_gets_groups_by_load_only() -> None:
    assert [6, 0] == newcomers(Desk("worker-0"), "worker-1", has_rows=True)


def test_the_papers_rule_moves_groups_by_load_only() -> None:
    assert [6, 0] == newcomers(Desk("worker-0", rule="paper"), "worker-1", has_rows=False)


def test_while_a_worker_is_drained_nobody_gets_a_share(desk: Desk) -> None:
    desk.reorganizing.asked(Drain((W2,)), TERM)
    assert [2, 2, 2, 0] == newcomers(desk, "worker-9", has_rows=False)


# --- losses


def test_a_worker_that_is_only_in_the_first_map_being_written_is_not_forgotten() -> None:
    desk = Desk(placed_=False)
    desk.place.found([W0, W1, W2])
    assert ([], True) == (desk.reorganizing.lose(W0), W0 in desk.place.workforce.hands)


def test_a_lost_workers_groups_are_spread_over_the_others(desk: Desk) -> None:
    desk.place.workforce.disconnected(W2)
    desk.reorganizing.lose(W2)
    desk.written()
    assert [W0, W0, W1, W1, W0, W1] == desk.owners()


def test_a_lost_worker_leaves_the_map(desk: Desk) -> None:
    desk.place.workforce.disconnected(W2)
    (write,) = of(desk.reorganizing.lose(W2), WriteMap)
    assert ["worker-0", "worker-1"] == write.map["workers"]


def test_a_lost_workers_groups_are_spread_by_load_if_everybody_has_reported(desk: Desk) -> None:
    for worker in (W0, W1, W2):
        desk.report(worker, busy=0.9 if worker == W0 else 0.1)
    desk.place.workforce.disconnected(W2)
    desk.reorganizing.lose(W2)
    desk.written()
    assert [W1, W1] == desk.owners()[4:]


def test_a_lost_workers_groups_do_not_go_to_a_worker_that_is_being_drained(desk: Desk) -> None:
    desk.reorganizing.asked(Drain((W1,)), TERM)
    desk.place.workforce.disconnected(W2)
    desk.reorganizing.lose(W2)
    desk.written()
    assert [W0, W0] == desk.owners()[4:]


def test_the_groups_of_the_only_worker_wait_for_another(desk: Desk) -> None:
    alone = Desk("worker-0")
    alone.place.workforce.disconnected(W0)
    assert [] == alone.reorganizing.lose(W0)


def test_a_lost_worker_that_is_not_in_the_map_is_forgotten(desk: Desk) -> None:
    desk.place.workforce.hands[WorkerId("worker-9")] = desk.place.workforce.hands[W0]
    desk.reorganizing.lose(WorkerId("worker-9"))
    assert WorkerId("worker-9") not in desk.place.workforce.hands


def test_a_loss_waits_while_a_map_is_written(desk: Desk) -> None:
    desk.place.propose({GroupId(0): W1})
    desk.place.workforce.disconnected(W2)
    assert [] == desk.reorganizing.lose(W2)


def test_moves_of_a_lost_workers_groups_are_over(desk: Desk) -> None:
    desk.reorganizing.asked(MoveGroup(GroupId(4), W0), TERM)
    desk.place.workforce.disconnected(W2)
    desk.reorganizing.lose(W2)
    assert () == desk.moves.in_flight


# --- lost results


def test_groups_with_lost_results_go_to_their_own_owner_under_a_new_term(desk: Desk) -> None:
    desk.reorganizing.recover(W0, vector(1))
    desk.written()
    assert ([1, 2, 1, 1, 1, 1], W0) == (plainly(desk.place.terms_of(vector(*range(6)))), desk.place.owner(1))


def test_a_group_with_lost_results_moves_no_more(desk: Desk) -> None:
    desk.reorganizing.asked(MoveGroup(GroupId(0), W2), TERM)
    desk.reorganizing.recover(W0, vector(0))
    assert () == desk.moves.in_flight


# --- demand


def test_a_report_gets_the_demand_of_what_came_in_for_the_groups(desk: Desk) -> None:
    desk.reorganizing.came(vector(0, 0, 0, 0, 0, 0), EPOCH)
    desk.reorganizing.tick(TERM, EPOCH)
    for worker, joined in ((W0, 100), (W1, 100), (W2, 0)):
        desk.place.workforce.credit(worker, joined)
        desk.report(worker, busy=joined / 100)
    desk.reorganizing.came(vector(150, 100, 40, 40, 10, 0), 2 * EPOCH)
    load = desk.reorganizing.load()
    assert load is not None
    assert [2.5, 0.8, 0.1] == pytest.approx([report.demand for report in load.reports])


def test_a_group_that_came_after_the_report_counts_for_its_new_owner(desk: Desk) -> None:
    desk.reorganizing.came(vector(0, 0, 0, 0, 0, 0), EPOCH)
    desk.reorganizing.tick(TERM, EPOCH)
    for worker in (W0, W1, W2):
        desk.place.workforce.credit(worker, 100)
        desk.report(worker, busy=1.0)
    desk.reorganizing.asked(MoveGroup(GroupId(0), W2), TERM)
    desk.hand_over(0)
    desk.reorganizing.came(vector(60, 30, 40, 40, 10, 20), 2 * EPOCH)
    load = desk.reorganizing.load()
    assert load is not None
    assert [0.3, 0.8, 0.9] == pytest.approx([report.demand for report in load.reports])
    assert {4: 0.1, 5: 0.2, 0: 0.6} == pytest.approx(load.reports[2].load_by_group())


def test_the_papers_rule_knows_no_demand() -> None:
    desk = Desk(rule="paper")
    desk.reorganizing.came(vector(0, 0, 0, 0, 0, 0), EPOCH)
    desk.reorganizing.tick(TERM, EPOCH)
    desk.place.workforce.credit(W0, 100)
    desk.report(W0, busy=1.0)
    desk.reorganizing.came(vector(150, 100, 40, 40, 10, 0), 2 * EPOCH)
    load = desk.reorganizing.load()
    assert load is not None
    assert [None] == [report.demand for report in load.reports]
