import math

import pytest

from joinery.elastic.classify import Thresholds, classify, classify_all
from joinery.elastic.load import Role
from joinery.model.errors import UserMustAct
from tests.unit.elastic.loads import report


@pytest.mark.parametrize(
    ("f", "role"),
    [
        (0.0, Role.CONSUMER),
        (0.0099, Role.CONSUMER),
        (0.01, Role.NEUTRAL),
        (0.5, Role.NEUTRAL),
        (0.51, Role.SUPPLIER),
        (1.2, Role.SUPPLIER),
    ],
)
def test_occupancy_makes_the_role_and_a_threshold_is_neutral(f: float, role: Role) -> None:
    assert role == classify(report("a", f=f), Thresholds()).role


@pytest.mark.parametrize(("memory_bytes", "role"), [(800, Role.CONSUMER), (801, Role.SUPPLIER)])
def test_memory_above_its_threshold_makes_a_supplier_of_an_idle_worker(memory_bytes: int, role: Role) -> None:
    assert role == classify(report("a", f=0.0, memory_bytes=memory_bytes), Thresholds()).role


@pytest.mark.parametrize(("u", "role"), [(0.91, Role.SUPPLIER), (0.9, Role.CONSUMER)])
def test_a_worker_that_is_nearly_always_busy_is_a_supplier_before_its_buffer_fills(u: float, role: Role) -> None:
    assert role == classify(report("a", f=0.0, u=u), Thresholds()).role


def test_the_busy_threshold_lies_half_way_between_the_target_and_one() -> None:
    assert [0.9, 0.75, 1.0] == [Thresholds.guarded(target=target).busy for target in (0.8, 0.5, 1.0)]
    assert Thresholds() == Thresholds.guarded()


def test_the_bare_rule_looks_neither_at_memory_nor_at_the_busy_share() -> None:
    assert Role.CONSUMER == classify(report("a", f=0.0, memory_bytes=999), Thresholds.paper()).role
    assert Role.NEUTRAL == classify(report("a", f=0.4, u=1.0), Thresholds.paper()).role


@pytest.mark.parametrize(
    ("f", "memory_bytes", "because"),
    [
        (0.75, 0, "f = 0.75 > 0.5"),
        (0.0, 900, "memory 0.9 > 0.8 of its limit"),
        (0.005, 0, "f = 0.005 < 0.01"),
        (0.2, 0, "0.01 <= f = 0.2 <= 0.5"),
    ],
)
def test_a_role_says_why(f: float, memory_bytes: int, because: str) -> None:
    assert because == classify(report("a", f=f, memory_bytes=memory_bytes), Thresholds()).because


def test_a_whole_cluster_is_classified_in_its_order() -> None:
    load = classify_all([report("a", f=0.9), report("b", f=0.0), report("c", f=0.3)], Thresholds(), degree=5)
    assert (Role.SUPPLIER, Role.CONSUMER, Role.NEUTRAL) == load.roles
    assert (5, 3) == (load.degree, classify_all(load.reports, Thresholds()).degree)


@pytest.mark.parametrize(
    ("supplier", "consumer", "field"),
    [
        (0.0, 0.0, "supplierThreshold"),
        (1.0, 0.01, "supplierThreshold"),
        (math.nan, 0.01, "supplierThreshold"),
        (0.5, 0.5, "consumerThreshold"),
        (0.5, -0.1, "consumerThreshold"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused(supplier: float, consumer: float, field: str) -> None:
    with pytest.raises(UserMustAct, match=rf"spec.scaling.{field}: found .*, wanted .*; leave it out for"):
        Thresholds(supplier=supplier, consumer=consumer)


def test_a_memory_or_busy_threshold_above_one_is_refused() -> None:
    with pytest.raises(UserMustAct, match=r"memory threshold: found 1\.5(.|\n)*busy threshold: found 2"):
        Thresholds(memory=1.5, busy=2)
