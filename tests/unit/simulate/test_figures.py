"""The shapes of the papers' figures, on coarser grids than the figures themselves; every run is made once."""

import pytest

from bench.figures.experiments import busy_from, curve, keeping_up, knee, point, slope, straightness

BRACKETS = {1: (750.0, 2500.0), 2: (1500.0, 4500.0), 4: (3000.0, 8500.0)}
"""Where to look for the knee."""
NO_TUNING = (1500, 2000, 2500, 3000, 3500, 4000)
TUNED = (*NO_TUNING, 5000, 6000, 7000, 8000)


def test_four_workers_without_fine_tuning_saturate_at_4000_as_the_one_constant_was_fitted() -> None:
    assert 48.0 == pytest.approx(point(4, 4000.0, fine_tuning=False).delay_s, rel=0.1)


@pytest.mark.parametrize("workers", BRACKETS)
def test_figures_5_and_6_delay_is_flat_below_the_knee_and_steep_above(workers: int) -> None:
    at = knee(workers, *BRACKETS[workers])
    below = [one.delay_s for one in curve(workers, [at * share for share in (0.3, 0.55, 0.8)])]
    level = sum(below) / len(below)
    assert [] == [delay for delay in below if not 0.5 * level <= delay <= 1.5 * level]
    assert point(workers, at * 1.2).delay_s > 5 * level


def test_figures_5_and_6_the_knee_grows_with_the_workers() -> None:
    knees = [knee(workers, *BRACKETS[workers]) for workers in BRACKETS]
    assert sorted(knees) == knees
    assert knees[0] * 1.4 < knees[1]
    assert knees[1] * 1.4 < knees[2]


def test_three_workers_are_relieved_by_the_split_right_above_their_first_saturation() -> None:
    """Not the papers' shape: our groups are nearly equal in size, so all of them split at 4915 tuples/s."""
    before, at, after = (point(3, rate).delay_s for rate in (4000.0, 4700.0, 5200.0))
    assert at > 2 * before
    assert after < 1.5 * before


def test_figure_7_cpu_time_is_quadratic_without_and_nearly_linear_with_fine_tuning() -> None:
    assert slope(keeping_up(curve(4, NO_TUNING, fine_tuning=False))) >= 1.7
    assert slope(keeping_up(curve(4, TUNED))) <= 1.3


def test_figure_8_fine_tuning_takes_the_delay_down_at_least_five_times() -> None:
    without, tuned = (point(4, 4000.0, fine_tuning=tuning).delay_s for tuning in (False, True))
    assert without >= 5 * tuned
    assert 2.0 == pytest.approx(tuned, rel=0.5)  # the paper's: about 2 s


def test_figures_9_and_10_fine_tuning_leaves_idle_time_up_to_higher_rates() -> None:
    without, tuned = busy_from(curve(4, NO_TUNING, fine_tuning=False)), busy_from(curve(4, TUNED))
    assert tuned >= 1.4 * without


def test_figures_9_and_10_fine_tuning_costs_no_communication() -> None:
    """Where both keep up: a saturated worker gets fewer rows, so it has less to receive."""
    without = keeping_up(curve(4, NO_TUNING, fine_tuning=False))
    tuned = curve(4, [one.rate_hz for one in without])
    assert len(without) >= 4
    ratios = [one.communication_s / other.communication_s for one, other in zip(without, tuned, strict=True)]
    assert [] == [ratio for ratio in ratios if not 0.9 <= ratio <= 1.1]


def test_figure_7_12_cpu_time_times_workers_is_constant() -> None:
    products = [point(workers, 1500.0).cpu_s for workers in range(1, 9)]
    assert max(products) <= 1.2 * min(products)


def test_figure_7_13_communication_falls_per_worker_and_rises_linearly_in_sum() -> None:
    points = [point(workers, 1500.0) for workers in range(1, 9)]
    shares = [one.communication_per_worker_s for one in points]
    assert shares[-1] < shares[0] / 2
    assert [] == [n for n in range(7) if shares[n + 1] > 1.03 * shares[n]]
    rise, square = straightness(range(1, 9), [one.communication_s for one in points])
    assert rise > 0
    assert square > 0.95


@pytest.mark.parametrize("rate", [1500.0, 2000.0])
def test_figure_7_14_an_adaptive_degree_keeps_the_sum_flat_and_below_the_fixed_one(rate: float) -> None:
    """From two available workers on: one alone is overloaded at 2000/s and receives only what it can bear."""
    sums = [point(available, rate, adaptive=True).communication_s for available in (2, 4, 6, 8)]
    mean = sum(sums) / len(sums)
    assert [] == [one for one in sums if not 0.8 * mean <= one <= 1.2 * mean]
    assert sums[-1] < point(8, rate).communication_s
