"""Plans over random clusters: no group is lost, doubled or moved from the wrong worker; no plan makes things worse."""

from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.elastic.classify import Thresholds, classify_all
from joinery.elastic.drain_plan import highest_ordinals, plan_drain, plan_spread
from joinery.elastic.load import ClusterLoad, GroupLoad, LoadReport, Role
from joinery.elastic.migration_plan import plan_guarded, plan_paper, replan
from joinery.elastic.pairing import pair
from joinery.elastic.plan import Limits, Move, Plan
from joinery.model.ids import GroupId, WorkerId
from joinery.partition.map import PartitionMap

LIMIT = 10_000
QUICK = settings(max_examples=150, deadline=None)


@st.composite
def clusters(draw: st.DrawFn, min_workers: int = 1) -> ClusterLoad:
    workers = draw(st.integers(min_workers, 8))
    owners = draw(st.lists(st.integers(0, workers - 1), min_size=0, max_size=30))
    reports = []
    for place in range(workers):
        groups = tuple(
            GroupLoad(
                group=GroupId(number),
                weight=draw(st.sampled_from([0.0, 1.0, 1.0, 2.5, 40.0])),
                memory_bytes=draw(st.integers(0, 3000)),
            )
            for number, owner in enumerate(owners)
            if owner == place
        )
        reports.append(
            LoadReport(
                worker=WorkerId(f"w{place}"),
                occupancy=draw(st.sampled_from([0.0, 0.0, 0.3, 0.9])),
                busy=draw(st.floats(0, 1)),
                memory_bytes=sum(part.memory_bytes for part in groups),
                memory_limit=LIMIT,
                groups=groups,
            )
        )
    return classify_all(reports, draw(st.sampled_from([Thresholds(), Thresholds.paper()])))


@st.composite
def with_moves_under_way(draw: st.DrawFn, load: ClusterLoad) -> tuple[Move, ...]:
    owned = sorted(owners(load).items())
    names = [report.worker for report in load.reports]
    picked = draw(st.lists(st.sampled_from(owned), unique=True, max_size=4)) if owned and len(names) > 1 else []
    return tuple(
        Move(group, source, draw(st.sampled_from([name for name in names if name != source])))
        for group, source in picked
    )


def owners(load: ClusterLoad) -> dict[GroupId, WorkerId]:
    return {part.group: report.worker for report in load.reports for part in report.groups}


def roles(load: ClusterLoad) -> dict[WorkerId, Role]:
    return {report.worker: role for report, role in zip(load.reports, load.roles, strict=True)}


def after(load: ClusterLoad, moves: tuple[Move, ...]) -> dict[str, dict[WorkerId, float]]:
    """Busy share and memory of every worker once the moves are done."""
    busy = {report.worker: report.busy for report in load.reports}
    memory = {report.worker: float(report.memory_bytes) for report in load.reports}
    share = {group: value for report in load.reports for group, value in report.load_by_group().items()}
    held = {part.group: part.memory_bytes for report in load.reports for part in report.groups}
    for move in moves:
        busy[move.source] -= share[move.group]
        busy[move.target] += share[move.group]
        memory[move.source] -= held[move.group]
        memory[move.target] += held[move.group]
    return {"busy": busy, "memory": memory}


def check_rebalance(load: ClusterLoad, plan: Plan, in_flight: tuple[Move, ...]) -> None:
    own, role = owners(load), roles(load)
    groups = [move.group for move in plan.moves]
    assert len(set(groups)) == len(groups)
    assert not set(groups) & {move.group for move in in_flight}
    for move in plan.moves:
        assert own[move.group] == move.source
        assert (Role.SUPPLIER, Role.CONSUMER) == (role[move.source], role[move.target])
    arriving = {move.target for move in in_flight}
    for report in load.reports:
        leaving = sum(move.source == report.worker for move in (*plan.moves, *in_flight))
        if any(move.source == report.worker for move in plan.moves):
            assert leaving < len(report.groups) or report.worker in arriving, "a supplier was emptied"


@QUICK
@given(st.data(), clusters(), st.integers(0, 2**32))
def test_paper_moves_one_group_from_each_paired_supplier_to_its_own_consumer(
    data, load: ClusterLoad, seed: int
) -> None:
    in_flight = data.draw(with_moves_under_way(load))
    plan = plan_paper(load, seed=seed, in_flight=in_flight)
    check_rebalance(load, plan, in_flight)
    pairs = {(move.source, move.target) for move in plan.moves}
    assert len(pairs) == len({source for source, _ in pairs}) == len({target for _, target in pairs})
    assert len(plan.moves) == len({move.source for move in plan.moves})
    if not in_flight:
        able = sum(len(report.groups) > 1 for report in load.having(Role.SUPPLIER))
        assert min(able, load.n_con) == len(plan.moves)
    assert plan == replan(plan.inputs, plan.seed)


@QUICK
@given(st.data(), clusters(), st.integers(0, 2**32), st.integers(1, 10))
def test_guarded_never_makes_a_pair_heavier_nor_overfills_a_consumer(
    data, load: ClusterLoad, seed: int, max_parallel: int
) -> None:
    in_flight = data.draw(with_moves_under_way(load))
    plan = plan_guarded(load, seed=seed, limits=Limits(max_parallel=max_parallel), in_flight=in_flight)
    check_rebalance(load, plan, in_flight)
    assert len(plan.startable((), len(in_flight))) <= max(0, max_parallel - len(in_flight))
    before, then = after(load, in_flight), after(load, in_flight + plan.moves)
    for move in plan.moves:
        assert then["memory"][move.target] <= 0.8 * LIMIT
        measure = "memory" if before["memory"][move.source] > 0.8 * LIMIT else "busy"
        assert then[measure][move.target] <= before[measure][move.source] + 1e-6
    assert plan == replan(plan.inputs, plan.seed)


@QUICK
@given(clusters())
def test_pairs_are_one_to_one_and_as_many_as_possible(load: ClusterLoad) -> None:
    found = pair(load)
    able = {report.worker for report in load.having(Role.SUPPLIER) if len(report.groups) > 1}
    takers = {report.worker for report in load.having(Role.CONSUMER)}
    assert min(len(able), len(takers)) == len(found.pairs)
    assert len(found.pairs) == len({couple.supplier for couple in found.pairs} & able)
    assert len(found.pairs) == len({couple.consumer for couple in found.pairs} & takers)
    assert load.n_sup == len(found.pairs) + len(found.notes)


@QUICK
@given(st.data(), clusters(min_workers=2))
def test_a_drain_empties_the_leaving_or_says_what_is_left(data, load: ClusterLoad) -> None:
    in_flight = data.draw(with_moves_under_way(load))
    names = [report.worker for report in load.reports]
    leaving = set(highest_ordinals(names, data.draw(st.integers(1, len(names) - 1))))
    plan = plan_drain(load, sorted(leaving), in_flight=in_flight)
    own = owners(load) | {move.group: move.target for move in in_flight}
    gone = {move.group for move in plan.moves}
    assert {group for group, worker in own.items() if worker in leaving} == gone | set(plan.left_out)
    assert not gone & set(plan.left_out)
    then = after(load, in_flight + plan.moves)
    for move in plan.moves:
        assert own[move.group] == move.source
        assert move.source in leaving
        assert move.target not in leaving
        assert then["memory"][move.target] <= 0.8 * LIMIT
    assert plan == replan(plan.inputs, plan.seed)


@QUICK
@given(st.data(), clusters(min_workers=2))
def test_every_group_of_the_lost_gets_a_living_owner_and_the_others_keep_theirs(data, load: ClusterLoad) -> None:
    in_flight = data.draw(with_moves_under_way(load))
    names = [report.worker for report in load.reports]
    lost = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names) - 1, unique=True))
    own = owners(load)
    pmap = PartitionMap.initial(max(1, len(own)), names)
    if own:
        pmap = pmap.move(own)
    plan = plan_spread(load, lost, pmap, in_flight=in_flight)
    orphans = {group for worker in lost for group in pmap.groups_of(worker)}
    assert orphans == {move.group for move in plan.moves}
    if not plan.moves:
        return
    after_loss = pmap.move({move.group: move.target for move in plan.moves})
    assert all(not after_loss.groups_of(worker) for worker in lost)
    assert all(
        pmap.owner(GroupId(group)) == after_loss.owner(GroupId(group))
        for group in range(pmap.groups)
        if group not in orphans
    )
    assert plan == replan(plan.inputs, plan.seed)


@QUICK
@given(st.integers(1, 40), st.integers(2, 7))
def test_equal_groups_are_drained_evenly(count: int, workers: int) -> None:
    names = [WorkerId(f"w{n}") for n in range(workers)]
    groups = tuple(GroupLoad(group=GroupId(n), weight=1.0) for n in range(count))
    last = LoadReport(worker=names[-1], occupancy=0.0, busy=0.9, groups=groups)
    idle = [LoadReport(worker=name, occupancy=0.0, busy=0.0) for name in names[:-1]]
    plan = plan_drain(classify_all([*idle, last], Thresholds()), names[-1:])
    shares = [sum(move.target == name for move in plan.moves) for name in names[:-1]]
    assert count == sum(shares)
    assert max(shares) - min(shares) <= 1
