"""The figures that are made with real, throttled processes: how each is drawn, and what stands below it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.figures import real_runs as lab
from bench.figures.rig import KEYS, SCALE, SPEED, THETA, WINDOW_S, Point
from bench.figures.style import drawing, labelled, line

Rows = list[Mapping[str, object]]
RATE: Final = "rate of each stream (tuples/s)"
REAL: Final = (
    f"Real processes (R). Time, memory and keys are the papers' divided by {SCALE}: W = {WINDOW_S:g} s, θ = "
    f"{THETA / 1024:g} KiB, {KEYS} keys, b-model 0.7; 60 partitions, 64-byte tuples and the papers' rates. "
)
THROTTLED: Final = f"Workers make {SPEED:,.0f} comparisons/s (the simulator's 14.2 ns x {SCALE}; nothing is fitted). "
IDLE: Final = "Workers are not throttled and mostly idle. "
CAPPED: Final = f"The gateway's link is capped at {lab.LINK / 1e3:.0f} KB/s; t_d = 0.5 s, one sub-group. "


def delay_over_rate(path: Path) -> Rows:
    curves = lab.delay_over_rate()
    knees = ", ".join(f"{n}: {curve.knee_hz:.0f}/s" for n, curve in curves.items())
    steep = ", ".join(f"{curve.over.delay_s * len(curve.level) / sum(curve.level):.0f}" for curve in curves.values())
    caption = (
        f"{REAL}{THROTTLED}t_d = 0.2 s. Knees (three times the least delay): {knees}; at 1.2 of them the delay is "
        f"{steep} times its level below 0.8, 5 to 13 s after the change (it grows as long as the rate stays). "
        "Simulated: 1500, 3500, 5500/s on a grid of 500. Paper: flat, then sharp; the knee grows with workers."
    )
    with drawing(path, "Delay over rate, real processes (figures 5, 6 / 7.7)", caption) as axis:
        for place, (n, curve) in enumerate(sorted(curves.items())):
            points = sorted((*curve.points, curve.over), key=lambda one: one.rate_hz)
            line(axis, _rates(points), [one.delay_s for one in points], f"{n} worker{'s' * (n > 1)}", place)
            axis.axvline(curve.knee_hz, color="#999999", linewidth=0.8, linestyle=":")
        axis.set_yscale("log")
        labelled(axis, RATE, "mean production delay (s)")
    return [lab.row_of(one) for _, curve in sorted(curves.items()) for one in (*curve.points, curve.over)]


def delay_by_tuning(path: Path) -> Rows:
    found = lab.fine_tuning()
    without, tuned = found[False], found[True]
    caption = (
        f"{REAL}{THROTTLED}t_d = 0.2 s, {lab.TUNING_WORKERS} workers, {lab.TUNING_HZ:.0f} tuples/s of each stream: "
        f"{without.delay_s:.2f} s without (5 to 15 s after the start, and growing), {tuned.delay_s:.2f} s with fine "
        "tuning. Paper: 48 s and about 2 s with 4 workers after 10 minutes."
    )
    with drawing(
        path, "Delay with and without fine tuning, real processes (figure 8 / 7.8b)", caption, height=3
    ) as axis:
        axis.bar(["without", "with fine tuning"], [without.delay_s, tuned.delay_s], color=["#d1495b", "#1b6ca8"])
        axis.set_ylabel("mean production delay (s)")
    return [lab.row_of(without), lab.row_of(tuned)]


def communication_by_rate(path: Path) -> Rows:
    found = lab.communication_over_rate()
    spreads = {known: [lab.spread(lab.received(one)) for one in points] for known, points in found.items()}
    caption = (
        f"{REAL}{IDLE}{CAPPED}4 workers. Left: all are served at the slot's start, one after the other, and each waits "
        f"from then on, as in the papers: max - min grows from {spreads[False][0]:.3f} to {spreads[False][-1]:.3f}. "
        "Right: each knows its turn (k/4 of the slot) and joins until then, so that wait is taken off: "
        f"{spreads[True][0]:.3f} to {spreads[True][-1]:.3f}. Paper: the divergence grows with the rate; no numbers."
    )
    title = "Communication time of the workers, real processes (figure 12 / 7.10)"
    with drawing(path, title, caption, panels=2) as axes:
        for axis, known, name in zip(axes, (False, True), ("turns not known", "turns known"), strict=True):
            shares = [lab.received(one) for one in found[known]]
            for place, (label, of) in enumerate((("max", max), ("mean", _mean), ("min", min))):
                line(axis, _rates(found[known]), [of(one) for one in shares], label, place)
            axis.set_ylim(0, 0.65)
            labelled(axis, RATE, "communication (share of the time)", name)
    return [lab.row_of(one) for known in (False, True) for one in found[known]]


def window_sizes(path: Path) -> Rows:
    points = lab.communication_over_rate()[True]
    means = [_mean(one.windows) for one in points]
    ratio = max(max(one.windows) / min(one.windows) for one in points)
    caption = (
        f"{REAL}{IDLE}The runs of figure 7.10, 4 workers. Linear: R² = {lab.square(_rates(points), means):.4f}; "
        f'max/min at most {ratio:.2f}. Paper: windows grow with the rate, their deviation "is not very high".'
    )
    with drawing(path, "Windows of the workers, real processes (figure 7.11)", caption, height=3.6) as axis:
        for place, (label, of) in enumerate((("max", max), ("mean", _mean), ("min", min))):
            line(axis, _rates(points), [of(one.windows) / 1e3 for one in points], label, place)
        axis.set_ylim(0)
        labelled(axis, RATE, "window and index of a worker (KB)")
    return [lab.row_of(one) for one in points]


def communication_by_workers(path: Path) -> Rows:
    found = dict(sorted(lab.communication_over_workers().items()))
    workers, sums = [float(n) for n in found], [sum(one.communication) for one in found.values()]
    caption = (
        f"{REAL}{IDLE}{CAPPED}{lab.LINK_HZ:.0f} tuples/s; turns not known, as in the papers. The sum rises by "
        f"{lab.slope(workers, sums):.2f} per worker (R² = {lab.square(workers, sums):.4f}). Paper: per worker it "
        'falls, the aggregate "increases linearly"; no numbers.'
    )
    with drawing(path, "Communication over workers, real processes (figure 11 / 7.13)", caption, height=3.6) as axis:
        line(axis, workers, [total / n for n, total in zip(workers, sums, strict=True)], "per worker", 0)
        line(axis, workers, sums, "all workers together", 1)
        axis.set_ylim(0)
        axis.set_xticks(workers)
        labelled(axis, "workers", "communication (share of the time)")
    return [lab.row_of(one) for one in found.values()]


def delay_by_epoch(path: Path) -> Rows:
    found = dict(sorted(lab.over_epochs().items()))
    epochs, delays = list(found), [one.delay_s for one in found.values()]
    caption = (
        f"{REAL}{THROTTLED}3 workers, {lab.LINK_HZ:.0f} tuples/s. Slope {lab.slope(epochs, delays):.2f}: a row waits "
        "half an epoch for its slot, and then for the rows that came with it. Paper: rises with t_d; no numbers."
    )
    with drawing(
        path, "Delay over the distribution epoch, real processes (figure 13 / 7.15a)", caption, height=3.6
    ) as axis:
        line(axis, epochs, delays, "delay", 0)
        axis.set_ylim(0)
        labelled(axis, "t_d (s)", "mean production delay (s)")
    return [lab.row_of(one) for one in found.values()]


def communication_by_epoch(path: Path) -> Rows:
    found = dict(sorted(lab.over_epochs().items()))
    caption = (
        f"{REAL}{THROTTLED}3 workers, {lab.LINK_HZ:.0f} tuples/s, the runs of figure 13; the link is not "
        "capped, so this is the cost of messages, which other work on the machine makes larger. Paper: falls with t_d; "
        "no numbers."
    )
    title = "Communication over the distribution epoch, real processes (figure 14 / 7.15b)"
    with drawing(path, title, caption, height=3.6) as axis:
        line(axis, list(found), [_mean(one.communication) for one in found.values()], "per worker", 0)
        axis.set_ylim(0)
        labelled(axis, "t_d (s)", "communication (share of the time)")
    return [lab.row_of(one) for one in found.values()]


def gateway_buffer(path: Path) -> Rows:
    found = dict(sorted(lab.gateway_buffer().items()))
    off = max(abs(one.peak_bytes / lab.expected_peak(one) - 1) for one in found.values())
    caption = (
        f"{REAL}{IDLE}Uniform keys, {lab.BUFFER_HZ:.0f} tuples/s, t_d = {lab.BUFFER_T_D_S:g} s, one worker in each "
        f"sub-group. The peak of the mini-buffers is at most {off:.1%} from r·t_d/2·(1 + 1/n_g)."
    )
    with drawing(path, "The gateway's buffer, real processes (section V.B)", caption, height=3.6) as axis:
        line(axis, list(found), [one.peak_bytes / 1e3 for one in found.values()], "measured peak", 0)
        line(axis, list(found), [lab.expected_peak(one) / 1e3 for one in found.values()], "r·t_d/2·(1 + 1/n_g)", 5,
             marker="", linestyle=":")  # fmt: skip
        axis.set_ylim(0)
        labelled(axis, "n_g (sub-groups)", "rows not yet sent (KB)")
    return [lab.row_of(one) for one in found.values()]


def _rates(points: Sequence[Point]) -> list[float]:
    return [one.rate_hz for one in points]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
