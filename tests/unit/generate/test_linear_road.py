"""Position reports: every vehicle reports every 30 s, and its position is explained by its speed."""

import numpy as np
import pytest
from scipy import stats

from joinery.generate.linear_road import LANE_ENTRY, LANE_EXIT, ROAD_FEET, LinearRoad

RARE = 1e-4  # some 40 such checks stand in this folder: together a false alarm is still below 1 %
ROAD = LinearRoad(vehicles=500, xways=3, seed=1)


@pytest.fixture(scope="module")
def reports() -> dict[str, np.ndarray]:
    rows = ROAD.rows(0, 60_000)
    order = np.lexsort((rows["time"].to_numpy(), rows["vid"].to_numpy()))
    return {name: rows[name].to_numpy()[order] for name in rows.schema.names}


def same_car(reports: dict[str, np.ndarray]) -> np.ndarray:
    return np.diff(reports["vid"]) == 0


def test_a_vehicle_reports_every_30_seconds(reports: dict[str, np.ndarray]) -> None:
    intervals = np.diff(reports["time"])[same_car(reports)]
    assert {30_000_000} == set(intervals.tolist())


def test_the_rate_is_vehicles_over_30_seconds_and_steady() -> None:
    times = ROAD.rows(0, 60_000)["time"].to_numpy()
    assert np.all(np.diff(times) >= 0)
    assert 500 / 30 == pytest.approx(60_000 / (times[-1] / 1e6), rel=1e-3)
    assert stats.kstest(times[:500] / 30e6, "uniform").pvalue > RARE


def test_a_position_moves_by_exactly_the_speed_times_30_seconds(reports: dict[str, np.ndarray]) -> None:
    again = same_car(reports)
    moved = np.diff(reports["pos"])[again] * np.where(reports["dir"][1:][again] == 0, 1, -1)
    np.testing.assert_array_equal(moved * 120, reports["speed"][1:][again] * 5280)


def test_segments_lanes_directions_and_speeds_are_those_of_the_benchmark(reports: dict[str, np.ndarray]) -> None:
    np.testing.assert_array_equal(reports["pos"] // 5280, reports["seg"])
    assert reports["pos"].min() >= 0
    assert reports["pos"].max() < ROAD_FEET
    assert {0, 1, 2, 3, 4} == set(reports["lane"].tolist())
    assert {0, 1} == set(reports["dir"].tolist())
    assert {0, 1, 2} == set(reports["xway"].tolist())
    assert reports["speed"].min() >= 30
    assert reports["speed"].max() <= 100


def test_a_vehicle_stays_on_its_road_and_enters_and_leaves_by_a_ramp(reports: dict[str, np.ndarray]) -> None:
    again = same_car(reports)
    for column in ("xway", "dir"):
        assert 0 == np.count_nonzero(np.diff(reports[column])[again])
    last_of_a_trip = np.flatnonzero(~again)
    ended = last_of_a_trip[reports["time"][last_of_a_trip] < reports["time"].max() - 30_000_000]
    assert {LANE_EXIT} == set(reports["lane"][ended].tolist())
    begun = last_of_a_trip + 1
    begun = begun[reports["time"][begun] > 30_000_000]
    assert {LANE_ENTRY} == set(reports["lane"][begun].tolist())


def test_a_vehicle_is_one_vehicle_at_a_time() -> None:
    rows = ROAD.rows(10_000, 10_500)  # one round
    assert 500 == len(set(rows["vid"].to_pylist()))
