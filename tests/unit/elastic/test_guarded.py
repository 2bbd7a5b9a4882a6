import pytest

from joinery.elastic.beta import BetaRule, Decision, Grow, Keep, Shrink, decide_degree
from joinery.elastic.guarded import Guards, Stabilization, Wish, replay
from joinery.elastic.guarded import decide_degree as decide_guarded
from joinery.elastic.load import ClusterLoad, Role
from joinery.model.errors import UserMustAct
from tests.unit.elastic.loads import cluster, counts, report

AT_ONCE = Guards(up_ns=0, down_ns=0)
RULE = BetaRule(step=1, min_degree=1, max_degree=8)


def at_once(load: ClusterLoad, rule: BetaRule = RULE) -> Decision:
    return decide_guarded(load, rule, AT_ONCE, Stabilization(), 0)[0]


def run(loads: list[tuple[int, ClusterLoad]], guards: Guards) -> list[type[Decision]]:
    """One decision after another, at the given times."""
    state, seen = Stabilization(), []
    for now_ns, load in loads:
        decision, state = decide_guarded(load, RULE, guards, state, now_ns)
        seen.append(type(decision))
    return seen


def blocked(decision: Decision) -> tuple[str, ...]:
    assert isinstance(decision, Keep)
    return decision.blocked_by


def test_it_shrinks_only_if_the_rest_can_bear_the_load() -> None:
    #  4 workers at 0.59 fill 0.787 of 3; at 0.61 they fill 0.813
    assert isinstance(at_once(counts(0, 4, u=0.59)), Shrink)
    assert ("target",) == blocked(at_once(counts(0, 4, u=0.61)))


def test_the_bare_rule_would_shrink_where_the_guarded_does_not() -> None:
    busy = counts(0, 4, u=0.95)
    assert isinstance(decide_degree(busy, RULE), Shrink)
    assert ("target",) == blocked(at_once(busy))


def test_it_shrinks_only_if_the_rest_has_the_memory() -> None:
    full, half = (
        cluster(*((report(f"w{n}", u=0.1, memory_bytes=held), Role.CONSUMER) for n in range(2))) for held in (400, 399)
    )
    assert ("memory",) == blocked(at_once(full))
    assert isinstance(at_once(half), Shrink)


def test_it_never_shrinks_while_there_is_a_supplier() -> None:
    assert ("suppliers",) == blocked(at_once(counts(1, 5, u=0.1), BetaRule(min_suppliers=2)))


def test_it_never_shrinks_under_back_pressure() -> None:
    held = cluster(*((report(f"w{n}", u=0.1, back_pressure=n == 0), Role.NEUTRAL) for n in range(3)))
    assert ("back-pressure",) == blocked(at_once(held))


def test_every_obstacle_is_named() -> None:
    held = cluster(
        *((report(f"w{n}", u=0.9, memory_bytes=900, back_pressure=True), Role.NEUTRAL) for n in range(3)), degree=4
    )
    assert ("workers not ready", "back-pressure", "target", "memory") == blocked(at_once(held))


@pytest.mark.parametrize("load", [counts(2, 0, degree=3), counts(0, 2, u=0.1, degree=3)])
def test_it_waits_until_the_workers_asked_for_are_ready(load: ClusterLoad) -> None:
    assert ("workers not ready",) == blocked(at_once(load))


def test_a_shrink_takes_as_much_of_its_step_as_the_rest_can_bear() -> None:
    #  busy 2.0 of 6: 3 workers would be at 0.667, 2 at 1.0
    decision = at_once(counts(0, 6, u=2.0 / 6), BetaRule(step=4))
    assert isinstance(decision, Shrink)
    assert 3 == decision.by


def test_a_wish_must_last_before_it_acts() -> None:
    grow = counts(2, 0)
    assert [Keep, Keep, Grow] == run([(0, grow), (9, grow), (10, grow)], Guards(up_ns=10, down_ns=60))


def test_growing_and_shrinking_wait_separately() -> None:
    shrink = counts(0, 3, u=0.1)
    assert [Keep, Keep, Shrink] == run([(0, shrink), (59, shrink), (60, shrink)], Guards(up_ns=10, down_ns=60))


def test_a_wish_that_breaks_off_starts_anew() -> None:
    grow, calm = counts(2, 0), counts(1, 2)
    looks = [(0, grow), (9, calm), (10, grow), (19, grow), (20, grow)]
    assert [Keep, Keep, Keep, Keep, Grow] == run(looks, Guards(up_ns=10, down_ns=60))


def test_after_acting_the_wait_starts_anew() -> None:
    grow = counts(2, 0)
    looks = [(0, grow), (10, grow), (12, grow), (21, grow), (22, grow)]
    assert [Keep, Grow, Keep, Keep, Grow] == run(looks, Guards(up_ns=10, down_ns=60))


def test_a_clock_that_went_back_starts_the_wait_anew() -> None:
    grow = counts(2, 0)
    assert [Keep, Keep, Keep, Grow] == run([(100, grow), (5, grow), (14, grow), (15, grow)], Guards(up_ns=10))


def test_a_waiting_decision_says_until_when() -> None:
    state = Stabilization(Wish.GROW, 100)
    decision, after = decide_guarded(counts(2, 0), RULE, Guards(up_ns=10), state, 104)
    assert (("stabilization",), 110) == (blocked(decision), decision.blocked_until_ns)
    assert "2 suppliers > 0.5 x 0 consumers; wanted for 4ns of 10ns" == decision.because
    assert state == after


def test_outside_its_bounds_the_degree_returns_at_once() -> None:
    overloaded = counts(5, 4, u=0.99)
    decision, _ = decide_guarded(overloaded, BetaRule(max_degree=6), Guards(), Stabilization(), 0)
    assert isinstance(decision, Shrink)
    assert (3, "degree 9 > max 6") == (decision.by, decision.because)


@pytest.mark.parametrize("load", [counts(2, 0), counts(0, 3, u=0.1), counts(0, 3, u=0.9), counts(1, 2)])
@pytest.mark.parametrize("guards", [Guards(), AT_ONCE])
def test_a_guarded_decision_can_be_replayed(load: ClusterLoad, guards: Guards) -> None:
    decision, _ = decide_guarded(load, RULE, guards, Stabilization(Wish.GROW, 3), 7)
    assert decision == replay(decision)


def test_a_bare_decision_can_be_replayed_as_well() -> None:
    decision = decide_degree(counts(2, 0), RULE)
    assert decision == replay(decision)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"target": 0}, "target"),
        ({"target": 1.1}, "target"),
        ({"up_ns": -1}, "scaleUp.stabilization"),
        ({"down_ns": -1}, "scaleDown.stabilization"),
    ],
)
def test_guards_that_make_no_sense_are_refused(wrong: dict[str, float], field: str) -> None:
    with pytest.raises(UserMustAct, match=rf"spec.scaling.{field}: found .*, wanted .*; "):
        Guards(**wrong)
