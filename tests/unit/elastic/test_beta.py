import math

import pytest

from joinery.elastic.beta import BetaRule, DegreeInputs, Grow, Keep, Shrink, decide, decide_degree
from joinery.model.errors import UserMustAct
from tests.unit.elastic.loads import counts

RULE = BetaRule(beta=0.5, min_degree=1, max_degree=8)


@pytest.mark.parametrize(
    ("n_sup", "n_con", "kind"), [(2, 3, Grow), (1, 2, Keep), (1, 1, Grow), (1, 0, Grow), (0, 2, Shrink)]
)
def test_the_degree_grows_when_suppliers_exceed_beta_times_consumers(n_sup: int, n_con: int, kind: type) -> None:
    assert kind is type(decide_degree(counts(n_sup, n_con), RULE))


def test_without_a_supplier_the_degree_shrinks_even_if_all_are_neutral() -> None:
    assert isinstance(decide_degree(counts(0, 0, 3), RULE), Shrink)


def test_growing_is_tested_first() -> None:
    #  one supplier is less than S_low = 3, but more than 0.5 x 1 consumer
    assert isinstance(decide_degree(counts(1, 1), BetaRule(min_suppliers=3)), Grow)


def test_s_low_suppliers_are_kept() -> None:
    rule = BetaRule(min_suppliers=2)
    assert [Shrink, Keep] == [type(decide_degree(counts(n_sup, 5), rule)) for n_sup in (1, 2)]


def test_s_low_of_zero_never_shrinks() -> None:
    assert isinstance(decide_degree(counts(0, 5), BetaRule(min_suppliers=0)), Keep)


def test_the_degree_changes_by_delta_but_not_past_its_bounds() -> None:
    rule = BetaRule(step=3, min_degree=2, max_degree=8)
    grown = [decide_degree(counts(2, 0, degree=degree), rule) for degree in (2, 5, 6)]
    shrunk = [decide_degree(counts(0, 2, degree=degree), rule) for degree in (8, 5, 4)]
    assert [3, 3, 2] == [decision.by for decision in grown if isinstance(decision, Grow)]
    assert [3, 3, 2] == [decision.by for decision in shrunk if isinstance(decision, Shrink)]


def test_at_a_bound_the_degree_stays_and_says_what_blocks_it() -> None:
    at_max = decide_degree(counts(2, 0, degree=8), RULE)
    at_min = decide_degree(counts(0, 1), RULE)
    assert [("max",), ("min",)] == [kept.blocked_by for kept in (at_max, at_min) if isinstance(kept, Keep)]


@pytest.mark.parametrize(("degree", "kind", "by"), [(1, Grow, 2), (9, Shrink, 4)])
def test_outside_its_bounds_the_degree_returns_into_them(degree: int, kind: type, by: int) -> None:
    decision = decide_degree(counts(1, 2, degree=degree), BetaRule(min_degree=3, max_degree=5))
    assert (kind, by) == (type(decision), decision.by if not isinstance(decision, Keep) else 0)


def test_a_decision_says_why() -> None:
    because = [decide_degree(counts(*numbers), RULE).because for numbers in ((2, 3), (0, 2), (1, 2), (1, 1))]
    assert [
        "2 suppliers > 0.5 x 3 consumers", "0 suppliers < 1", "1 <= 1 supplier <= 0.5 x 2 consumers",
        "1 supplier > 0.5 x 1 consumer",
    ] == because  # fmt: skip


def test_a_decision_can_be_replayed_from_its_inputs() -> None:
    load = counts(2, 3, u=0.25)
    decision = decide_degree(load, RULE)
    expected = DegreeInputs(rule=RULE, degree=5, ready=5, n_sup=2, n_con=3, busy=1.25, memory=0.0, back_pressure=False)
    assert expected == decision.inputs
    assert decision == decide(decision.inputs)


@pytest.mark.parametrize("beta", [0, 1, -0.5, 2, math.nan])
def test_beta_lies_between_zero_and_one(beta: float) -> None:
    with pytest.raises(UserMustAct, match=r"spec.scaling.beta: found .*, wanted 0 < beta < 1; leave it out for 0.5"):
        BetaRule(beta=beta)


def test_all_complaints_come_at_once() -> None:
    with pytest.raises(UserMustAct) as refused:
        BetaRule(beta=2, min_suppliers=-1, step=0, min_degree=0, max_degree=-1)
    fields = [line.split(":")[0].removeprefix("spec.scaling.") for line in str(refused.value).splitlines()]
    assert ["beta", "minSuppliers", "step", "min", "max"] == fields
