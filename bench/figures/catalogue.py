"""Every figure: which runs it needs, how it is drawn, what stands below it.

The papers' curves are not in their text, so what is drawn beside ours are the values that the text gives.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.figures import experiments as lab
from bench.figures import hybrid, hybrid_points, real
from bench.figures.experiments import Point, curve, point
from bench.figures.rules import beta_rule
from bench.figures.style import drawing, labelled, line, paper_points
from joinery.simulate.costs import PAPER_COMPARISON_NS

Rows = list[Mapping[str, object]]
RATE: Final = "rate of each stream (tuples/s)"
WORKERS: Final = "workers"
SCALE: Final = (
    f"Simulated (S). The paper's scale: W = 10 min, θ = 1.5 MB, 60 partitions, t_d = 2 s, t_r = 20 s; minutes 10-20 of "
    f"each run. One fitted constant: {PAPER_COMPARISON_NS} ns per comparison (48 s at 4000/s without fine tuning). "
)
RATES: Final = tuple(range(1000, 9001, 500))


@dataclass(frozen=True, slots=True)
class Figure:
    """A name, what it shows, and how it is made: it writes the picture and returns the rows of its CSV."""

    name: str
    paper: str
    make: Callable[[Path], Rows]


def delay_by_workers(path: Path) -> Rows:
    curves = {workers: _until_far_over(workers) for workers in range(1, 6)}
    knees = ", ".join(f"{workers}: {lab.knee_of(points):.0f}/s" for workers, points in curves.items())
    caption = (
        f"{SCALE}Delay is flat until the cluster saturates, then grows with the backlog. Knees: {knees}. Paper: about "
        "2 s at 4000/s with 4 workers. Three workers saturate a little between 4400 and 4900/s: all groups have nearly "
        "the same size, split at the same rate (4915/s) and are cheaper after it."
    )
    with drawing(path, "Delay over rate, with fine tuning (figures 5, 6 / 7.7)", caption) as axis:
        for place, (workers, points) in enumerate(curves.items()):
            name = f"{workers} worker{'s' * (workers > 1)}"
            line(axis, _rates(points), [one.delay_s for one in points], name, place)
        paper_points(axis, [(4000, 2.0)], "paper: 4 workers, 2 s")
        axis.set_yscale("log")
        axis.set_ylim(0.3)
        labelled(axis, RATE, "mean production delay (s)", loc="lower right", ncols=3)
    return [_row(one) for points in curves.values() for one in points]


def cpu_by_rate(path: Path) -> Rows:
    without, tuned = _both(RATES)
    slopes = [lab.slope(lab.keeping_up([one for one in points if one.rate_hz >= 1500])) for points in (without, tuned)]
    caption = (
        f"{SCALE}4 workers. Log-log slope from 1500/s to the last rate that is borne: {slopes[0]:.2f} without, "
        f"{slopes[1]:.2f} "
        'with fine tuning (paper: "increases sharply" without; no numbers). The teeth are the splits: groups of nearly '
        "equal size halve together. 600 s is all the time there is."
    )
    with drawing(path, "CPU time over rate (figure 7 / 7.8a)", caption) as axis:
        for place, (points, name) in enumerate(((without, "without fine tuning"), (tuned, "with fine tuning"))):
            line(axis, _rates(points), [one.cpu_per_worker_s for one in points], name, place)
        axis.axhline(600, color="#999999", linewidth=0.8, linestyle=":")
        labelled(axis, RATE, "CPU time per worker (s of 600 s)")
    return [_row(one) for one in without + tuned]


def delay_by_tuning(path: Path) -> Rows:
    without, tuned = _both(RATES)
    at = [point(4, 4000.0, fine_tuning=tuning).delay_s for tuning in (False, True)]
    caption = (
        f"{SCALE}4 workers. At 4000/s ours: {at[0]:.1f} s without (this point is fitted), {at[1]:.1f} s with fine "
        "tuning; paper: 48 s and about 2 s."
    )
    with drawing(path, "Delay with and without fine tuning (figure 8 / 7.8b)", caption) as axis:
        for place, (points, name) in enumerate(((without, "without fine tuning"), (tuned, "with fine tuning"))):
            line(axis, _rates(points), [one.delay_s for one in points], name, place)
        paper_points(axis, [(4000, 48.0), (4000, 2.0)], "paper: 48 s and 2 s")
        axis.set_yscale("log")
        labelled(axis, RATE, "mean production delay (s)")
    return [_row(one) for one in without + tuned]


def idle_and_communication(path: Path) -> Rows:
    without, tuned = _both(RATES)
    gone = [lab.busy_from(points) for points in (without, tuned)]
    caption = (
        f"{SCALE}4 workers. No idle time (under 5 %) from {gone[0]:.0f}/s without and {gone[1]:.0f}/s with fine "
        "tuning; paper: 4000 and 6000. Communication is the same as long as both keep up; "
        "beyond, rows wait at the gateway."
    )
    title = "Idle and communication time (figures 9, 10 / 7.9)"
    with drawing(path, title, caption, panels=2) as axes:
        for axis, points, name, near_zero in zip(
            axes, (without, tuned), ("without fine tuning", "with fine tuning"), (4000, 6000), strict=True
        ):
            line(axis, _rates(points), [one.idle_share * 600 for one in points], "idle", 0)
            line(axis, _rates(points), [one.communication_per_worker_s for one in points], "communication", 1)
            paper_points(axis, [(near_zero, 0.0)], f"paper: idle near zero at {near_zero}/s")
            axis.set_ylim(-15, 615)
            labelled(axis, RATE, "time per worker (s of 600 s)", name)
    return [_row(one) for one in without + tuned]


def cpu_by_workers(path: Path) -> Rows:
    points = [point(workers, 1500.0) for workers in range(1, 9)]
    products = [one.cpu_s for one in points]
    caption = (
        f'{SCALE}1500 tuples/s. CPU time x workers is {min(products):.0f}-{max(products):.0f} s (paper: "decreases '
        "almost "
        'linearly", with some overhead where messages are small; no numbers). That overhead is not in the cost model.'
    )
    with drawing(path, "CPU time per worker over workers (figure 7.12)", caption, height=3.6) as axis:
        line(axis, _workers(points), [one.cpu_per_worker_s for one in points], "per worker", 0)
        line(axis, _workers(points), [products[0] / one.workers for one in points], "1/N", 5, marker="", linestyle=":")
        axis.set_ylim(0)
        labelled(axis, WORKERS, "CPU time per worker (s of 600 s)")
    return [_row(one) for one in points]


def communication_by_workers(path: Path) -> Rows:
    points = [point(workers, 1500.0) for workers in range(1, 9)]
    rise, square = lab.straightness(_workers(points), [one.communication_s for one in points])
    caption = (
        f"{SCALE}1500 tuples/s, fixed degree, 2 sub-groups. The sum rises by {rise:.1f} s per worker "
        f"(R² = {square:.3f}); "
        'the paper: per worker it falls, the aggregate "increases linearly"; no numbers.'
    )
    with drawing(path, "Communication over workers (figure 11 / 7.13)", caption, height=3.6) as axis:
        line(axis, _workers(points), [one.communication_per_worker_s for one in points], "per worker", 0)
        line(axis, _workers(points), [one.communication_s for one in points], "all workers together", 1)
        axis.set_ylim(0)
        labelled(axis, WORKERS, "communication time (s of 600 s)")
    return [_row(one) for one in points]


def adaptive_degree(path: Path) -> Rows:
    available, rates = range(1, 9), (1500.0, 2000.0)
    fixed = {rate: [point(workers, rate) for workers in available] for rate in rates}
    adaptive = {rate: [point(workers, rate, adaptive=True) for workers in available] for rate in rates}
    means = ", ".join(f"{adaptive[rate][-1].degree:.1f} workers at {rate:.0f}/s" for rate in rates)
    moving = adaptive[2000.0][-1].moving_s
    caption = (
        f"{SCALE}β-rule as in the papers (β = 0.5, δ = 1, ours; S_low = 1). With 8 available it uses {means} in "
        "the mean. One "
        "worker alone is overloaded at 2000/s. Moved state is not in the sum: "
        f"{moving:.0f} s at 2000/s, where the bare rule grows and shrinks all the time. "
        'Paper: adaptive "remains stable".'
    )
    title = "Communication of all workers, fixed and adaptive degree (figure 11 / 7.14)"
    with drawing(path, title, caption, panels=2) as axes:
        for axis, rate in zip(axes, rates, strict=True):
            line(axis, list(available), [one.communication_s for one in fixed[rate]], "fixed: all available", 1)
            line(axis, list(available), [one.communication_s for one in adaptive[rate]], "adaptive", 0)
            axis.set_ylim(0)
            labelled(axis, "available workers", "communication, sum (s of 600 s)", f"{rate:.0f} tuples/s")
    return [_row(one) for rate in rates for one in fixed[rate] + adaptive[rate]]


CATALOGUE: Final = (
    Figure("delay-over-rate", "5, 6 / 7.7", delay_by_workers),
    Figure("cpu-over-rate", "7 / 7.8a", cpu_by_rate),
    Figure("delay-fine-tuning", "8 / 7.8b", delay_by_tuning),
    Figure("idle-communication", "9, 10 / 7.9", idle_and_communication),
    Figure("cpu-over-workers", "7.12", cpu_by_workers),
    Figure("communication-over-workers", "11 / 7.13", communication_by_workers),
    Figure("adaptive-degree", "11 / 7.14", adaptive_degree),
    Figure("beta-rule", "ours", beta_rule),
    Figure("hybrid-buffered", "6.5", hybrid.buffered),
    Figure("hybrid-read-buffer", "6.6", hybrid.read_buffer),
    Figure("hybrid-delay-over-rate", "6.7", hybrid.delay_by_rate),
    Figure("hybrid-disk-over-rate", "6.8", hybrid.disk_by_rate),
    Figure("hybrid-processed-over-rate", "6.9", hybrid.processed_by_rate),
    Figure("hybrid-cpu-over-rate", "6.10", hybrid.cpu_by_rate),
    Figure("hybrid-total-over-rate", "6.11", hybrid.total_by_rate),
    Figure("hybrid-kernels", "6.10, 6.11, real kernels", hybrid_points.kernels),
    Figure("hybrid-delay-over-memory", "6.12", hybrid.delay_by_memory),
    Figure("hybrid-delay-over-bias", "6.13", hybrid.delay_by_bias),
    Figure("real-delay-over-rate", "5, 6 / 7.7, real", real.delay_over_rate),
    Figure("real-delay-fine-tuning", "8 / 7.8b, real", real.delay_by_tuning),
    Figure("real-communication-over-rate", "12 / 7.10, real", real.communication_by_rate),
    Figure("real-window-sizes", "7.11, real", real.window_sizes),
    Figure("real-communication-over-workers", "11 / 7.13, real", real.communication_by_workers),
    Figure("real-delay-over-epoch", "13 / 7.15a, real", real.delay_by_epoch),
    Figure("real-communication-over-epoch", "14 / 7.15b, real", real.communication_by_epoch),
    Figure("real-gateway-buffer", "V.B, real", real.gateway_buffer),
    Figure("real-hybrid-delay", "6.7, real", hybrid_points.delay),
    Figure("real-hybrid-disk", "6.8, real", hybrid_points.disk),
)


def _until_far_over(workers: int) -> list[Point]:
    """A curve until its delay is far above the knee: what comes then is only more of it."""
    points: list[Point] = []
    for rate in RATES:
        points.append(point(workers, float(rate)))
        if points[-1].delay_s > 200:
            break
    return points


def _both(rates: Sequence[float]) -> tuple[list[Point], list[Point]]:
    return curve(4, rates, fine_tuning=False), curve(4, rates)


def _rates(points: Sequence[Point]) -> list[float]:
    return [one.rate_hz for one in points]


def _workers(points: Sequence[Point]) -> list[float]:
    return [float(one.workers) for one in points]


def _row(one: Point) -> Mapping[str, object]:
    return {
        "workers": one.workers,
        "rate_per_stream_hz": one.rate_hz,
        "fine_tuning": one.fine_tuning,
        "adaptive": one.adaptive,
        "delay_mean_s": round(one.delay_s, 4),
        "delay_p95_s": round(one.delay_p95_s, 4),
        "cpu_sum_s": round(one.cpu_s, 3),
        "communication_sum_s": round(one.communication_s, 3),
        "moving_sum_s": round(one.moving_s, 3),
        "idle_share": round(one.idle_share, 5),
        "mean_degree": round(one.degree, 3),
    }
