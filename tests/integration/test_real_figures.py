"""The shapes of the papers' figures with real, throttled processes, on fewer rates than the figures themselves.

Each test makes its own runs: side by side where they are several, since throttled processes mostly sleep.
"""

import pytest

from bench.figures import hybrid_real
from bench.figures import real_runs as lab
from bench.figures.hybrid_scaled import simulated
from tests.support.measuring import measured

pytestmark = pytest.mark.timeout(600)


@measured
def test_figures_5_and_6_delay_is_flat_below_the_knee_steep_above_and_the_knee_grows_with_workers() -> None:
    curves = lab.delay_over_rate((700.0, 1200.0, 1600.0, 2100.0, 2600.0))
    knees = [curves[workers].knee_hz for workers in (1, 2, 3)]
    assert knees[0] * 1.5 < knees[1]
    assert knees[1] * 1.2 < knees[2]
    for curve in curves.values():
        level = sum(curve.level) / len(curve.level)
        assert len(curve.level) >= 2
        assert [] == [delay for delay in curve.level if not 0.5 * level <= delay <= 1.5 * level]
        assert curve.over.delay_s > 5 * level


@measured
def test_figure_8_fine_tuning_takes_the_delay_down_at_least_five_times() -> None:
    found = lab.fine_tuning()
    assert found[False].delay_s >= 5 * found[True].delay_s


@measured
def test_figures_12_and_7_11_communication_spreads_with_the_rate_unless_turns_are_known_and_windows_grow() -> None:
    rates = (500.0, 1000.0, 2000.0)
    lab.communication_over_rate.cache_clear()
    found = lab.communication_over_rate(rates)
    unknown, known = ([lab.spread(lab.received(one)) for one in found[turns]] for turns in (False, True))
    assert sorted(unknown) == unknown
    assert unknown[-1] > 2 * unknown[0]
    assert [] == [pair for pair in zip(known, unknown, strict=True) if pair[0] > pair[1] / 2]
    for points in found.values():
        means = [sum(one.windows) / len(one.windows) for one in points]
        assert lab.square([one.rate_hz for one in points], means) > 0.95
        assert means[0] * 3 < means[-1] < means[0] * 5  # through the origin, too: the rates are 1 : 4
        assert [] == [one.windows for one in points if max(one.windows) > 1.5 * min(one.windows)]


@measured
def test_figure_7_13_communication_falls_per_worker_and_rises_linearly_in_sum() -> None:
    found = lab.communication_over_workers()
    sums = [sum(found[workers].communication) for workers in (1, 2, 3, 4)]
    shares = [total / workers for workers, total in enumerate(sums, 1)]
    assert shares[-1] < 0.9 * shares[0]
    assert [] == [n for n in range(3) if shares[n + 1] > 1.05 * shares[n]]
    assert sorted(sums) == sums
    assert lab.square([1, 2, 3, 4], sums) > 0.95


@measured
def test_figures_13_and_14_delay_rises_and_communication_falls_with_the_epoch() -> None:
    epochs = (0.25, 1.0, 2.0)
    lab.over_epochs.cache_clear()
    found = lab.over_epochs(epochs)
    delays = [found[epoch].delay_s for epoch in epochs]
    assert sorted(delays) == delays
    assert 0.4 <= lab.slope(epochs, delays) <= 1.0
    times = [sum(found[epoch].communication) for epoch in epochs]
    assert times[-1] < 0.8 * times[0]


@measured
def test_section_v_b_the_gateways_buffer_shrinks_with_sub_groups_as_the_paper_says() -> None:
    for n_g, point in lab.gateway_buffer().items():
        assert lab.expected_peak(point) == pytest.approx(point.peak_bytes, rel=0.15), f"{n_g} sub-groups"


@measured
def test_figures_6_7_and_6_8_range_is_below_hash_in_delay_and_far_below_in_disk_time() -> None:
    hybrid_real.real_points.cache_clear()
    found = hybrid_real.real_points()
    ranged, hashed = found["range"], found["hash"]
    assert ranged.delay_s < 0.8 * hashed.delay_s
    assert hashed.disk_s >= 5 * ranged.disk_s
    for method, point in found.items():
        told = simulated(method, hybrid_real.RATE_HZ)
        assert told.delay_s == pytest.approx(point.delay_s, rel=0.4, abs=0.1)
        assert told.reads == pytest.approx(point.reads, rel=0.25, abs=5)
        assert point.disk_s / point.reads >= 0.95 * told.disk_s / told.reads, "the disk is not slow"
