import math

import numpy as np
import pytest

from joinery.elastic.load import ClusterLoad, LoadReport, Role, occupancy
from joinery.model.errors import Bug, UserMustAct
from joinery.model.ids import GroupId, WorkerId
from tests.unit.elastic.loads import cluster, group, report


def test_occupancy_is_the_mean_of_the_samples_over_the_buffer() -> None:
    assert 0.5 == occupancy([0, 100, 50], 100)
    assert 0.25 == occupancy(np.array([25]), 100)


def test_a_worker_without_a_message_is_empty() -> None:
    assert 0.0 == occupancy([], 100)


def test_a_buffer_of_nothing_is_refused_with_its_remedy() -> None:
    with pytest.raises(UserMustAct, match=r"spec.worker.buffer: found 0, wanted at least 1 byte; leave it out for 1Mi"):
        occupancy([1], 0)


def test_a_negative_sample_is_a_bug() -> None:
    with pytest.raises(Bug):
        occupancy([1, -1], 10)


def test_the_busy_share_is_divided_by_the_weights_of_the_groups() -> None:
    shares = report("a", group(1, weight=30), group(2, weight=10), u=0.8).load_by_group()
    assert {GroupId(1): pytest.approx(0.6), GroupId(2): pytest.approx(0.2)} == shares


def test_the_busy_share_is_divided_evenly_when_nothing_is_known_of_the_groups() -> None:
    shares = report("a", group(1, weight=0), group(2, weight=0), u=0.8).load_by_group()
    assert {GroupId(1): 0.4, GroupId(2): 0.4} == shares
    assert {} == report("a", u=0.8).load_by_group()


def test_a_cluster_counts_and_sums() -> None:
    load = cluster(
        (report("a", u=0.9, memory_bytes=500), Role.SUPPLIER),
        (report("b", u=0.1, memory_bytes=250, back_pressure=True), Role.CONSUMER),
        (report("c", u=0.5, memory_bytes=0), Role.NEUTRAL),
        degree=4,
    )
    assert (1, 1, 4) == (load.n_sup, load.n_con, load.degree)
    assert (pytest.approx(1.5), pytest.approx(0.75)) == (load.busy, load.memory)
    assert load.back_pressure
    assert ["b"] == [seen.worker for seen in load.having(Role.CONSUMER)]


@pytest.mark.parametrize(
    "broken",
    [
        lambda: report("a", f=-0.1),
        lambda: report("a", f=math.nan),
        lambda: report("a", u=math.inf),
        lambda: report("a", memory_bytes=-1),
        lambda: LoadReport(worker=WorkerId("a"), occupancy=0, busy=0, memory_limit=0),
        lambda: report("a", group(1), group(1)),
        lambda: group(1, weight=math.nan),
        lambda: group(1, memory_bytes=-1),
        lambda: cluster((report("a"), Role.NEUTRAL), (report("a"), Role.NEUTRAL)),
        lambda: cluster((report("a", group(1)), Role.NEUTRAL), (report("b", group(1)), Role.NEUTRAL)),
        lambda: ClusterLoad(reports=(report("a"),), roles=(), degree=1),
        lambda: cluster((report("a"), Role.NEUTRAL), degree=-1),
    ],
)
def test_a_report_that_cannot_be_is_a_bug(broken) -> None:
    with pytest.raises(Bug):
        broken()
