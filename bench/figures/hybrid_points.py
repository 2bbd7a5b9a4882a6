"""Chapter 6, not simulated alone: figures 6.7 and 6.8 with real processes, 6.10 and 6.11 with our kernels."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from bench.figures.hybrid import NAMES, RATE, Rows
from bench.figures.hybrid_experiments import RATES
from bench.figures.hybrid_kernels import SCALE as KERNEL_SCALE
from bench.figures.hybrid_kernels import TURNS, measured_cpu
from bench.figures.hybrid_real import METHODS, RATE_HZ, RealPoint, real_points
from bench.figures.hybrid_scaled import SCALE, SPAN, simulated
from bench.figures.style import COLOURS, drawing, labelled, line
from joinery.hybrid.replay import Replay

KERNEL_RATES: Final = (500.0, 1000.0, 2000.0)
MEASURED_S: Final = (SPAN.until_ns - SPAN.start_ns) / 1e9
REAL: Final = (
    f"Points: real processes (R); lines: simulated (S), the same rows. Time, memory, keys and blocks are the thesis' "
    f"divided by {SCALE}: |R| = 3.1 MB, M = 640 KB, θ = 16 KB, N_invoke = 46, runs of 20 s measured after 3.3; rates "
    "and tuples stay. Segments are read from a slowed disk: 0.125 ms and 20 MB/s, one at a time. The processor is not "
    "slowed, and nothing is fitted here. "
)


def delay(path: Path) -> Rows:
    """Figure 6.7."""
    ranged, hashed = (real_points()[method] for method in METHODS)
    caption = (
        f"{REAL}Delay until a row is joined, as the thesis measures it: {ranged.delay_s:.2f} s range, "
        f"{hashed.delay_s:.2f} s hash; simulated {_simulated('range').delay_s:.2f} and "
        f"{_simulated('hash').delay_s:.2f} s. Thesis: range below hash at this rate. (Told in the order of messages, "
        f"with no maxWait: {ranged.told_s:.0f} and {hashed.told_s:.0f} s.)"
    )
    title = "Delay over rate, real processes (figure 6.7)"
    return _drawn(path, title, caption, "mean delay of output tuples (s)", lambda one: one.delay_s)


def disk(path: Path) -> Rows:
    """Figure 6.8."""
    ranged, hashed = (real_points()[method] for method in METHODS)
    caption = (
        f"{REAL}By the clock of the reader: {ranged.disk_s:.3f} s for {ranged.reads} reads by range, "
        f"{hashed.disk_s:.2f} s for {hashed.reads} by hash, {hashed.disk_s / ranged.disk_s:.0f} times; simulated "
        f"{_simulated('range').disk_s:.3f} and {_simulated('hash').disk_s:.2f} s. Sleeps end late on a busy machine. "
        'Thesis: more "by an order of magnitude".'
    )
    title = "Disk time over rate, real processes (figure 6.8)"
    label = f"disk time (s of {MEASURED_S:.1f} s)"
    return _drawn(path, title, caption, label, lambda one: one.disk_s)


def kernels(path: Path) -> Rows:
    """Figures 6.10 and 6.11."""
    turns = {"range": TURNS, "hash": TURNS, "meshjoin": 1}
    runs = {method: [measured_cpu(method, rate, turns[method]) for rate in KERNEL_RATES] for method in NAMES}
    times = [hashed.cpu_s / ranged.cpu_s for hashed, ranged in zip(runs["hash"], runs["range"], strict=True)]
    caption = (
        f"Our own kernels (real), median of {TURNS} turns of processor time (MESHJOIN: one); the disk of 6.11 is "
        f"modelled (S). Time, memory and keys are the thesis' divided by {KERNEL_SCALE}, the processor is ours, "
        f"nothing is fitted. Hash takes {min(times):.1f} to {max(times):.1f} times range, as it reads and indexes more "
        "segments; thesis: range is least, for its caches. MESHJOIN's is probably the cost of a call per piece: no "
        "ratio to quote."
    )
    title = "Processor and total time over rate, our kernels (figures 6.10, 6.11)"
    with drawing(path, title, caption, panels=2) as axes:
        for place, (method, found) in enumerate(runs.items()):
            line(axes[0], KERNEL_RATES, [one.cpu_s for one in found], NAMES[method], place)
            line(axes[1], KERNEL_RATES, [one.cpu_s + one.disk_s for one in found], NAMES[method], place)
        for axis, name in zip(axes, ("CPU time (s of 90 s)", "CPU + modelled disk time (s of 90 s)"), strict=True):
            axis.set_yscale("log")
            labelled(axis, RATE, name)
    return [
        {"method": method, "rate_hz": rate, "cpu_s": round(one.cpu_s, 4), "disk_s": round(one.disk_s, 4),
         "reads": one.reads, "turns": " ".join(f"{turn:.3f}" for turn in one.turns)}
        for method, found in runs.items()
        for rate, one in zip(KERNEL_RATES, found, strict=True)
    ]  # fmt: skip


def _simulated(method: str) -> Replay:
    return simulated(method, RATE_HZ)


def _drawn(path: Path, title: str, caption: str, label: str, value: Callable[[Replay | RealPoint], float]) -> Rows:
    curves = {method: [simulated(method, rate) for rate in RATES] for method in METHODS}
    points = real_points()
    with drawing(path, title, caption) as axis:
        for place, (method, runs) in enumerate(curves.items()):
            line(axis, RATES, [value(run) for run in runs], f"{NAMES[method]}, simulated", place)
            axis.plot(
                [points[method].rate_hz], [value(points[method])], linestyle="none", marker="*", markersize=17,
                color=COLOURS[place], markeredgecolor="black", label=f"{NAMES[method]}, real", zorder=5,
            )  # fmt: skip
        axis.set_yscale("log")
        labelled(axis, RATE, label)
    rows: list[Mapping[str, object]] = [_real_row(one) for one in points.values()]
    return rows + [
        _simulated_row(method, rate, run)
        for method, runs in curves.items()
        for rate, run in zip(RATES, runs, strict=True)
    ]


def _real_row(one: RealPoint) -> Mapping[str, object]:
    told = {"told_mean_s": round(one.told_s, 3), "load_average": round(one.load, 1)}
    return _row("real", one.method, one.rate_hz, one) | told


def _simulated_row(method: str, rate_hz: float, run: Replay) -> Mapping[str, object]:
    return _row("simulated", method, rate_hz, run) | {"told_mean_s": "", "load_average": ""}


def _row(kind: str, method: str, rate_hz: float, run: Replay | RealPoint) -> dict[str, Any]:
    return {
        "kind": kind,
        "method": method,
        "rate_hz": round(rate_hz, 1),
        "delay_mean_s": round(run.delay_s, 4),
        "disk_s": round(run.disk_s, 4),
        "reads": run.reads,
    }
