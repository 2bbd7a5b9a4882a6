import pytest

from joinery.elastic.drain_plan import highest_ordinals, plan_drain, plan_spread
from joinery.elastic.load import Role
from joinery.elastic.migration_plan import replan
from joinery.elastic.plan import Limits, Move, Plan
from joinery.model.errors import Bug
from joinery.model.ids import GroupId, WorkerId
from joinery.partition.map import PartitionMap
from tests.unit.elastic.loads import cluster, group, report

NEU = Role.NEUTRAL
A, B, C = WorkerId("a"), WorkerId("b"), WorkerId("c")


def targets(plan: Plan) -> dict[int, str]:
    return {move.group: move.target for move in plan.moves}


def test_the_highest_ordinals_leave() -> None:
    assert (B, C) == highest_ordinals([A, B, C], 2)
    with pytest.raises(Bug, match="at least one stays"):
        highest_ordinals([A, B], 2)


def test_all_groups_of_the_leaving_go_heaviest_first_to_who_is_then_the_lightest() -> None:
    #  c yields 0.4, 0.2, 0.1 to a (0.1) and b (0.4): a 0.5, b 0.6, a 0.6
    load = cluster(
        (report("a", u=0.1), NEU),
        (report("b", u=0.4), NEU),
        (report("c", group(1, 10), group(2, 20), group(3, 40), u=0.7), NEU),
    )
    plan = plan_drain(load, [C])
    assert [(3, "a"), (2, "b"), (1, "a")] == [(move.group, move.target) for move in plan.moves]
    assert {C} == {move.source for move in plan.moves}
    assert "drain of c: 3 of 3 groups move" == plan.because


def test_a_plan_for_one_group_says_so_in_the_singular() -> None:
    plan = plan_drain(cluster((report("a"), NEU), (report("c", group(1, 10)), NEU)), [C])
    assert "drain of c: 1 of 1 group moves" == plan.because


def test_in_an_idle_cluster_the_numbers_of_groups_are_evened_out() -> None:
    load = cluster(
        (report("a", *(group(n, 0) for n in range(6)), u=0.0), NEU),
        (report("b", group(6, 0), u=0.0), NEU),
        (report("c", *(group(n, 0) for n in range(7, 12)), u=0.0), NEU),
    )
    plan = plan_drain(load, [C])
    assert {"b"} == set(targets(plan).values())
    assert 5 == len(plan.moves)


def test_equally_busy_workers_are_told_apart_by_their_buffers() -> None:
    load = cluster(
        (report("a", f=0.9, u=1.0), NEU), (report("b", f=0.2, u=1.0), NEU), (report("c", group(1), u=0.1), NEU)
    )
    assert {1: "b"} == targets(plan_drain(load, [C]))


def test_a_drained_group_stays_where_it_is_if_it_fits_nowhere() -> None:
    load = cluster(
        (report("a", u=0.1, memory_bytes=700), NEU), (report("b", group(1, 1, 101), group(2, 1, 100), u=0.2), NEU)
    )
    plan = plan_drain(load, [B])
    assert {2: "a"} == targets(plan)
    assert ((GroupId(1),), ("group 1 fits in nobody's memory",)) == (plan.left_out, plan.notes)


def test_a_group_on_its_way_to_the_leaving_is_left_out_and_one_on_its_way_from_it_is_done() -> None:
    load = cluster((report("a", group(1), group(2)), NEU), (report("b", group(3), group(4)), NEU), (report("c"), NEU))
    in_flight = (Move(GroupId(1), A, B), Move(GroupId(3), B, C))
    plan = plan_drain(load, [B], in_flight=in_flight)
    assert [4] == list(targets(plan))
    assert (GroupId(1),) == plan.left_out
    assert ("group 1 is still on its way; plan again when it has arrived",) == plan.notes


def test_a_drain_starts_no_more_moves_than_may_be_under_way() -> None:
    load = cluster((report("a"), NEU), (report("b", *(group(n) for n in range(5))), NEU))
    plan = plan_drain(load, [B], limits=Limits(max_parallel=3))
    assert 5 == len(plan.moves)
    first = plan.startable(started=(), in_flight=0)
    assert plan.moves[:3] == first
    started = {move.group for move in first}
    assert plan.moves[3:4] == plan.startable(started, in_flight=2)
    assert () == plan.startable(started, in_flight=4)


def test_a_worker_that_never_reported_cannot_be_drained() -> None:
    with pytest.raises(Bug, match="have not reported"):
        plan_drain(cluster((report("a"), NEU)), [B])


def test_the_groups_of_a_lost_worker_are_spread_by_its_last_report() -> None:
    pmap = PartitionMap.initial(3, [C, A, B]).move({GroupId(n): C for n in range(3)})
    load = cluster(
        (report("a", u=0.1), NEU),
        (report("b", u=0.4), NEU),
        (report("c", group(0, 10), group(1, 20), group(2, 40), u=0.7), NEU),
    )
    plan = plan_spread(load, [C], pmap)
    assert {2: "a", 1: "b", 0: "a"} == targets(plan)
    assert "loss of c: 3 of 3 groups go to others" == plan.because


def test_unknown_groups_of_a_lost_worker_count_as_the_mean() -> None:
    #  a and b have groups of 0.1; three lost ones even out 0.2 and 0.5
    pmap = PartitionMap.initial(10, [A, B, C]).move({GroupId(n): C for n in range(7, 10)})
    load = cluster(
        (report("a", *(group(n) for n in range(2)), u=0.2), NEU),
        (report("b", *(group(n) for n in range(2, 7)), u=0.5), NEU),
    )
    assert {7: "a", 8: "a", 9: "a"} == targets(plan_spread(load, [C], pmap))


def test_two_workers_lost_at_once_are_nobodys_target() -> None:
    pmap = PartitionMap.initial(6, [A, B, C])
    load = cluster((report("a"), NEU), (report("b"), NEU), (report("c"), NEU))
    plan = plan_spread(load, [B, C], pmap)
    assert dict.fromkeys(range(2, 6), "a") == targets(plan)
    assert {(2, "b"), (3, "b"), (4, "c"), (5, "c")} == {(move.group, move.source) for move in plan.moves}


def test_a_lost_group_goes_somewhere_even_if_it_fits_nowhere() -> None:
    pmap = PartitionMap.initial(3, [A, B, C])
    load = cluster(
        (report("a", memory_bytes=790), NEU), (report("b", memory_bytes=780), NEU), (report("c", group(2, 1, 50)), NEU)
    )
    plan = plan_spread(load, [C], pmap)
    assert {2: "b"} == targets(plan)
    assert ("b is above its memory bound",) == plan.notes


def test_a_lost_group_that_was_on_its_way_goes_where_it_was_going() -> None:
    pmap = PartitionMap.initial(4, [A, B, C]).move({GroupId(2): C, GroupId(3): C})
    load = cluster((report("a", u=0.0), NEU), (report("b", u=0.9), NEU), (report("c", group(2), group(3), u=0.2), NEU))
    plan = plan_spread(load, [C], pmap, in_flight=(Move(GroupId(3), C, B), Move(GroupId(0), A, C)))
    assert {2: "a", 3: "b"} == targets(plan)


def test_with_nobody_left_every_group_is_left_out() -> None:
    plan = plan_spread(cluster((report("a", group(0)), NEU)), [A], PartitionMap.initial(1, [A]))
    assert ((), (GroupId(0),)) == (plan.moves, plan.left_out)


def test_a_spread_makes_the_next_map() -> None:
    pmap = PartitionMap.initial(6, [A, B, C])
    plan = plan_spread(cluster((report("a"), NEU), (report("b"), NEU)), [C], pmap)
    after = pmap.move({move.group: move.target for move in plan.moves}).with_workers([A, B])
    assert 6 == len(after.groups_of(A)) + len(after.groups_of(B))


def test_drain_and_spread_can_be_made_again_from_their_inputs() -> None:
    load = cluster((report("a"), NEU), (report("b", group(3), group(4)), NEU))
    for plan in (plan_drain(load, [B]), plan_spread(load, [B], PartitionMap.initial(5, [A, B]))):
        assert plan == replan(plan.inputs, plan.seed)
