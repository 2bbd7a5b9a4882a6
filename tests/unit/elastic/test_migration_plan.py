from dataclasses import replace

import pytest

from joinery.elastic.load import ClusterLoad, GroupLoad, Role
from joinery.elastic.migration_plan import plan_guarded, plan_paper, replan
from joinery.elastic.plan import Limits, Move, Plan
from joinery.model.errors import Bug, UserMustAct
from joinery.model.ids import GroupId, WorkerId
from tests.unit.elastic.loads import cluster, group, report

SUP, CON, NEU = Role.SUPPLIER, Role.CONSUMER, Role.NEUTRAL
A, B, C = WorkerId("a"), WorkerId("b"), WorkerId("c")


def ten(first: int = 0, memory_bytes: int = 0) -> list[GroupLoad]:
    return [group(first + n, memory_bytes=memory_bytes) for n in range(10)]


def moved(plan: Plan) -> list[int]:
    return sorted(move.group for move in plan.moves)


def two_workers(*groups: GroupLoad, u: float = 1.0, consumer_u: float = 0.2, consumer_bytes: int = 0) -> ClusterLoad:
    consumer = report("b", f=0.0, u=consumer_u, memory_bytes=consumer_bytes)
    return cluster((report("a", *groups, f=0.9, u=u), SUP), (consumer, CON))


def test_paper_yields_one_group_per_pair_chosen_by_the_seed() -> None:
    load = two_workers(*ten())
    plans = [plan_paper(load, seed=seed) for seed in range(30)]
    assert {1} == {len(plan.moves) for plan in plans}
    assert {(A, B)} == {(move.source, move.target) for plan in plans for move in plan.moves}
    assert len({moved(plan)[0] for plan in plans}) > 5


def test_paper_chooses_alike_in_whatever_order_groups_are_reported() -> None:
    plans = [plan_paper(two_workers(*groups), seed=7) for groups in (ten(), ten()[::-1])]
    assert plans[0].moves == plans[1].moves


def test_paper_does_not_move_a_group_that_is_on_its_way() -> None:
    load = two_workers(group(1), group(2), group(3))
    in_flight = (Move(GroupId(2), A, B),)
    assert {1, 3} == {moved(plan_paper(load, seed=seed, in_flight=in_flight))[0] for seed in range(20)}


def test_nothing_moves_without_a_pair() -> None:
    load = cluster((report("a", *ten(), f=0.9), SUP), (report("b", f=0.2), NEU))
    assert [(), ()] == [plan_paper(load, seed=0).moves, plan_guarded(load, seed=0).moves]
    assert ("a is not paired: no consumer is left",) == plan_guarded(load, seed=0).notes


def test_guarded_brings_the_supplier_to_the_mean() -> None:
    #  1.0 and 0.2: the mean is 0.6, so four groups of 0.1 go
    assert 4 == len(plan_guarded(two_workers(*ten()), seed=0).moves)


def test_guarded_takes_the_heaviest_groups_that_stay_above_the_mean() -> None:
    #  shares 0.5, 0.3, 0.15, 0.05: the excess is 0.4
    load = two_workers(group(1, 50), group(2, 30), group(3, 15), group(4, 5))
    assert [2, 4] == moved(plan_guarded(load, seed=0))


def test_guarded_moves_the_lightest_if_every_group_is_more_than_the_excess() -> None:
    #  shares 0.6 and 0.4, mean 0.8
    load = two_workers(group(1, 60), group(2, 40), consumer_u=0.59)
    assert [2] == moved(plan_guarded(load, seed=0))


def test_guarded_does_not_throw_a_hot_group_to_and_fro() -> None:
    #  0.9 on top of 0.3 would be more than the supplier has now
    load = two_workers(group(1, 90), group(2, 10), consumer_u=0.3)
    assert [2] == moved(plan_guarded(load, seed=0))


def test_guarded_moves_nothing_that_does_not_make_the_pair_lighter() -> None:
    load = two_workers(group(1, 50), group(2, 50), consumer_u=0.6)
    plan = plan_guarded(load, seed=0)
    assert () == plan.moves
    assert ("a yields nothing to b: no group of it makes the pair lighter and fits",) == plan.notes


def test_guarded_leaves_idle_groups_where_they_are() -> None:
    #  shares 0.6, 0.4 and nothing: after 0.4 went the pair could still be made more even, but not by group 3
    load = two_workers(group(1, 60), group(2, 40), group(3, 0), consumer_u=0.0)
    assert [2] == moved(plan_guarded(load, seed=0))


def test_the_consumer_never_becomes_the_heavier() -> None:
    #  a third, idle worker pulls the mean down to 0.5; a alone would yield five groups
    load = cluster(
        (report("a", *ten(), f=0.9, u=1.0), SUP), (report("b", f=0.0, u=0.3), CON), (report("c", f=0.2, u=0.2), NEU)
    )
    assert 3 == len(plan_guarded(load, seed=0).moves)


def test_guarded_spreads_what_a_supplier_yields_over_all_consumers() -> None:
    #  1.0, 0.2 and 0.3: the mean is 0.5, so five groups of 0.1 go, each to whoever is lightest then
    load = cluster(
        (report("a", *ten(), f=0.9, u=1.0), SUP), (report("b", f=0.0, u=0.2), CON), (report("c", f=0.0, u=0.3), CON)
    )
    plan = plan_guarded(load, seed=0)
    assert [3, 2] == [sum(move.target == target for move in plan.moves) for target in (B, C)]


def test_guarded_lets_several_suppliers_yield_to_one_new_worker() -> None:
    load = cluster(
        (report("a", *ten(), f=0.9, u=1.0), SUP), (report("b", *ten(10), f=0.9, u=1.0), SUP), (report("c", u=0.0), CON)
    )
    assert {A, B} == {move.source for move in plan_guarded(load, seed=0).moves}


def test_the_heaviest_supplier_and_the_lightest_consumer_come_first() -> None:
    load = cluster(
        (report("a", *ten(), f=0.9, u=0.9), SUP),
        (report("b", *ten(10), f=0.9, u=1.0), SUP),
        (report("c", u=0.4), CON),
        (report("d", u=0.2), CON),
    )
    first = plan_guarded(load, seed=0).moves[0]
    assert (B, WorkerId("d")) == (first.source, first.target)


def test_a_consumer_takes_only_what_fits_in_its_memory() -> None:
    #  it holds 650 of 1000 bytes and may come to 800
    load = two_workers(*ten(memory_bytes=60), consumer_bytes=650)
    assert 2 == len(plan_guarded(load, seed=0).moves)


def test_a_worker_short_of_memory_yields_by_memory() -> None:
    #  idle groups, 90 bytes each: 900 and 100 bytes make a mean of 500
    load = two_workers(*ten(memory_bytes=90), u=0.0, consumer_u=0.0, consumer_bytes=100)
    assert 4 == len(plan_guarded(load, seed=0).moves)


def test_a_plan_holds_all_that_is_to_move_and_says_how_much_of_it_may_start() -> None:
    load = cluster(
        (report("a", *ten(), f=0.9, u=1.0), SUP),
        (report("b", *ten(10), f=0.9, u=1.0), SUP),
        (report("c", f=0.0, u=0.0), CON),
        (report("d", f=0.0, u=0.0), CON),
    )
    plan = plan_guarded(load, seed=0, limits=Limits(max_parallel=3))
    assert [5, 5] == [sum(move.source == source for move in plan.moves) for source in (A, B)]
    assert plan.moves[:3] == plan.startable((), 0)
    assert plan.moves[3:5] == plan.startable([move.group for move in plan.moves[:3]], 1)


def test_demand_says_how_much_a_full_worker_gives() -> None:
    #  ten groups; u = 1.0 beside 0.4 and 0.4 has a mean of 0.6, a demand of 2.0 one of 0.93
    full, half = report("a", *ten(), f=0.9, u=1.0), report("b", f=0.0, u=0.4)
    others = ((half, CON), (replace(half, worker=C), CON))
    assert 4 == len(plan_guarded(cluster((full, SUP), *others), seed=0).moves)
    assert 5 == len(plan_guarded(cluster((replace(full, demand=2.0), SUP), *others), seed=0).moves)


def test_a_worker_short_of_memory_gives_however_little_it_has_to_do() -> None:
    full, idle = report("a", *ten(memory_bytes=90), u=0.1), report("b", *ten(10), u=0.5)
    load = cluster((replace(full, demand=0.1), SUP), (replace(idle, demand=0.5), CON))
    assert plan_guarded(load, seed=0).moves


def test_a_supplier_that_only_catches_up_gives_nothing() -> None:
    busy, idle = report("a", *ten(), f=0.9, u=1.0), report("b", *ten(10), f=0.0, u=0.5)
    load = cluster((replace(busy, demand=0.5), SUP), (replace(idle, demand=0.6), CON))
    assert () == plan_guarded(load, seed=0).moves


def test_a_busy_worker_with_little_to_come_takes_groups_as_a_consumer_does() -> None:
    over, catching_up = report("a", *ten(), f=0.9, u=1.0), report("b", *ten(10), f=0.2, u=1.0)
    assert () == plan_guarded(cluster((over, SUP), (catching_up, SUP)), seed=0).moves
    load = cluster((replace(over, demand=1.2), SUP), (replace(catching_up, demand=0.6), SUP))
    assert {(A, B)} == {(move.source, move.target) for move in plan_guarded(load, seed=0).moves}


def test_moves_under_way_count_as_done() -> None:
    in_flight = tuple(Move(GroupId(n), A, B) for n in range(3))
    plan = plan_guarded(two_workers(*ten()), seed=0, in_flight=in_flight)
    assert 1 == len(plan.moves)
    assert not set(moved(plan)) & {0, 1, 2}


def test_a_supplier_keeps_one_group_even_if_it_stays_above_the_mean() -> None:
    #  most of its memory is not in its groups
    supplier = report("a", group(1, 1, 10), group(2, 1, 10), f=0.9, u=0.5, memory_bytes=900)
    load = cluster((supplier, SUP), (report("b", f=0.0, u=0.0), CON))
    assert 1 == len(plan_guarded(load, seed=0).moves)


def test_equal_groups_are_chosen_by_the_seed() -> None:
    load = two_workers(*ten())
    assert len({tuple(moved(plan_guarded(load, seed=seed))) for seed in range(10)}) > 5


@pytest.mark.parametrize("planner", [plan_paper, plan_guarded])
def test_a_plan_can_be_made_again_from_its_inputs_and_seed(planner) -> None:
    plan = planner(two_workers(*ten()), seed=12, in_flight=(Move(GroupId(4), A, B),))
    assert plan == replan(plan.inputs, plan.seed)
    assert 12 == plan.seed


def test_a_plan_says_why() -> None:
    assert "1 supplier, 1 consumer: 4 groups move" == plan_guarded(two_workers(*ten()), seed=0).because


def test_a_group_cannot_move_twice_or_to_its_own_worker() -> None:
    plan = plan_paper(two_workers(*ten()), seed=0)
    with pytest.raises(Bug, match="twice"):
        Plan(moves=plan.moves * 2, because="", inputs=plan.inputs, seed=0)
    with pytest.raises(Bug, match="itself"):
        Move(GroupId(1), A, A)


def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UserMustAct, match=r"spec.scaling.maxParallelMoves: found 0, wanted at least 1; say 8"):
        Limits(max_parallel=0)
