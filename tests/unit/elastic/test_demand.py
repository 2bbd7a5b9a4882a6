import pytest

from joinery.elastic.demand import with_demand
from joinery.elastic.load import LoadReport
from joinery.model.errors import Bug
from joinery.model.ids import WorkerId
from tests.unit.elastic.loads import group, report

A, B = WorkerId("a"), WorkerId("b")


def demands(reports: list[LoadReport], joined: dict[WorkerId, float], came: list[float]) -> list[float]:
    return [one.load for one in with_demand(reports, joined, came)]


def test_a_full_worker_tells_by_how_much_it_is_over() -> None:
    #  it joined 100 of the 250 bytes that came for its groups
    full, idle = report("a", group(0), group(1), u=1.0), report("b", group(2), u=0.3)
    assert [2.5, 0.3] == pytest.approx(demands([full, idle], {A: 100.0, B: 30.0}, [150.0, 100.0, 30.0]))


def test_a_worker_that_catches_up_has_less_to_do_than_it_does() -> None:
    assert [0.8] == pytest.approx(demands([report("a", group(0), u=1.0)], {A: 100.0}, [80.0]))


def test_a_group_that_has_just_come_counts_for_its_new_owner_at_what_rows_cost_elsewhere() -> None:
    joined = {A: 100.0, B: 0.0}
    reports = [report("a", group(0), u=1.0), report("b", group(1), u=0.0)]
    assert [0.5, 0.4] == pytest.approx(demands(reports, joined, [50.0, 40.0]))


def test_a_slow_worker_pays_more_for_the_same_rows() -> None:
    reports = [report("a", group(0), u=1.0), report("b", group(1), u=0.5)]
    assert [2.0, 0.5] == pytest.approx(demands(reports, {A: 50.0, B: 100.0}, [100.0, 100.0]))


def test_where_nothing_was_joined_nothing_is_known() -> None:
    assert [None] == [one.demand for one in with_demand([report("a", group(0), u=0.0)], {}, [10.0])]


def test_the_load_of_a_worker_is_its_demand_and_is_divided_over_its_groups() -> None:
    made = with_demand([report("a", group(0, 3.0), group(1, 1.0), u=1.0)], {A: 50.0}, [50.0, 50.0])[0]
    assert (2.0, {0: 1.5, 1: 0.5}) == (made.load, made.load_by_group())


def test_a_demand_below_nothing_is_a_bug() -> None:
    with pytest.raises(Bug, match="demand -1"):
        LoadReport(worker=A, occupancy=0, busy=0, demand=-1)
