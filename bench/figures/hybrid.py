"""Figures 6.5-6.13 of the thesis: the hybrid join, hash- and range-partitioned, beside MESHJOIN."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from bench.figures.hybrid_experiments import METHODS, RATES, curve, point
from bench.figures.style import COLOURS, drawing, labelled, line
from joinery.hybrid.costs import HybridCosts
from joinery.hybrid.replay import Replay

Rows = list[Mapping[str, object]]
RATE: Final = "rate of the stream (tuples/s)"
NAMES: Final = {"range": "range-partitioned", "hash": "hash-partitioned", "meshjoin": "MESHJOIN"}
MEMORIES: Final = (20, 30, 40, 60, 80, 100)
BIASES: Final = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75)
READS_MB: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
SCALE: Final = (
    "Simulated (S), the thesis' scale: |R| = 200 MB, M = 40 MB, θ = 1 MB, 64- and 128-byte tuples, runs of 48 minutes "
    f"measured after 6. One fitted constant: {HybridCosts().fetch_ns} ns to fetch a tuple from memory (MESHJOIN bears "
    "about 1200/s). Chosen: PQRS 0.7, 0.2, 0.05, 0.05 over a relation of even keys, τ = 10,000 rows, disk 8 ms and "
    "20 MB/s. "
)


def buffered(path: Path) -> Rows:
    """Figure 6.5."""
    rates = (1000.0, 1500.0, 2000.0)
    caption = (
        f'{SCALE}Rows in the input buffer, at every 30 s. Thesis: "very low" for both partitioned joins; large for '
        "MESHJOIN at 1500/s."
    )
    with drawing(path, "Buffered tuples over time (figure 6.5)", caption, panels=3) as axes:
        for axis, method in zip(axes, METHODS, strict=True):
            for place, rate in zip((3, 1, 4), rates, strict=True):  # colours that stay apart in thin lines
                values = point(method, rate).buffered[::30]
                minutes = [at / 2 for at in range(len(values))]
                axis.plot(minutes, values, color=COLOURS[place], label=f"{rate:.0f}/s", linewidth=1.1)
            labelled(axis, "time (min)", "buffered tuples" if method == "range" else "", NAMES[method])
    return [
        {"method": method, "rate_hz": rate, "time_s": at, "buffered": int(point(method, rate).buffered[at])}
        for method in METHODS
        for rate in rates
        for at in range(0, point(method, rate).buffered.size, 30)
    ]


def read_buffer(path: Path) -> Rows:
    """Figure 6.6."""
    runs = {size: point("meshjoin", read_mb=size) for size in READS_MB}
    best = min(runs, key=lambda size: runs[size].disk_s)
    caption = f"{SCALE}1000 tuples/s. Least at {best:g} MB; thesis: within 1-2 MB."
    with drawing(path, "Disk time of MESHJOIN over its read buffer (figure 6.6)", caption, height=3.6) as axis:
        line(axis, READS_MB, [run.disk_s for run in runs.values()], NAMES["meshjoin"], 2)
        axis.set_ylim(0)
        labelled(axis, "read buffer d (MB)", "disk time (s of 2520 s)")
    return [_row("meshjoin", run, read_mb=size) for size, run in runs.items()]


def delay_by_rate(path: Path) -> Rows:
    """Figure 6.7."""
    caption = (
        f"{SCALE}MESHJOIN falls, then rises from about 1200/s as in the thesis, and is at least ten times range. NOT "
        "REPRODUCED: in the thesis range passes above hash at about 1500/s; ours stays below (see docs/hybrid.md)."
    )
    return _by_rate(path, "Delay over rate (figure 6.7)", caption, "mean delay of output tuples (s)", _delay, log=True)


def disk_by_rate(path: Path) -> Rows:
    """Figure 6.8."""
    most = [point(method, RATES[-1]).disk_s for method in ("hash", "range")]
    caption = (
        f"{SCALE}At {RATES[-1]:.0f}/s hash needs the disk {most[0] / most[1]:.0f} times as long as range; thesis: "
        'more "by an order of magnitude". MESHJOIN is flat once it is overloaded.'
    )
    return _by_rate(path, "Disk time over rate (figure 6.8)", caption, "disk time (s of 2520 s)", _disk, log=True)


def processed_by_rate(path: Path) -> Rows:
    """Figure 6.9."""
    caption = f"{SCALE}Thesis: MESHJOIN levels off around 1200/s and is almost fixed beyond 1500/s."
    title = "Processed tuples over rate (figure 6.9)"
    return _by_rate(path, title, caption, "processed tuples (million)", lambda run: run.processed / 1e6)


def cpu_by_rate(path: Path) -> Rows:
    """Figure 6.10."""
    caption = (
        f"{SCALE}NOT REPRODUCED: range below hash. Range joins nine of ten rows at once, each with a scan of its "
        "own; hash lets half of them wait and shares scans. The thesis' reason, thrashed caches, is not in the model."
    )
    return _by_rate(path, "Processor time over rate (figure 6.10)", caption, "CPU time (s of 2520 s)", _cpu)


def total_by_rate(path: Path) -> Rows:
    """Figure 6.11."""
    caption = (
        f"{SCALE}Processor and disk. Both partitioned joins are below MESHJOIN. NOT REPRODUCED: range below hash, as "
        "in figure 6.10."
    )
    title = "Total time over rate (figure 6.11)"
    return _by_rate(path, title, caption, "CPU + disk time (s of 2520 s)", lambda run: run.cpu_s + run.disk_s)


def delay_by_memory(path: Path) -> Rows:
    """Figure 6.12."""
    runs = {(method, memory): point(method, memory_mb=memory) for method in METHODS for memory in MEMORIES}
    caption = (
        f"{SCALE}1000 tuples/s, wait buffer 4 MB throughout. MESHJOIN rises and range falls as in the thesis. "
        "NOT REPRODUCED: hash falls; ours is flat, its wait buffer is full with any of these memories."
    )
    with drawing(path, "Delay over memory (figure 6.12)", caption) as axis:
        for place, method in enumerate(METHODS):
            line(axis, MEMORIES, [runs[method, memory].delay_s for memory in MEMORIES], NAMES[method], place)
        axis.set_yscale("log")
        labelled(axis, "memory M (MB)", "mean delay of output tuples (s)")
    return [_row(method, run, memory_mb=memory) for (method, memory), run in runs.items()]


def delay_by_bias(path: Path) -> Rows:
    """Figure 6.13."""
    runs = {(method, bias): point(method, bias=bias) for method in METHODS for bias in BIASES}
    caption = (
        f"{SCALE}1000 tuples/s. MESHJOIN rises as in the thesis. NOT REPRODUCED: range falls; ours stays within a "
        "tenth of its mean."
    )
    with drawing(path, "Delay over the bias of arrivals (figure 6.13)", caption) as axis:
        for place, method in enumerate(METHODS):
            line(axis, BIASES, [runs[method, bias].delay_s for bias in BIASES], NAMES[method], place)
        axis.set_yscale("log")
        labelled(axis, "bias b of the b-model", "mean delay of output tuples (s)")
    return [_row(method, run, bias=bias) for (method, bias), run in runs.items()]


def _by_rate(
    path: Path, title: str, caption: str, label: str, value: Callable[[Replay], float], *, log: bool = False
) -> Rows:
    curves = {method: curve(method) for method in METHODS}
    with drawing(path, title, caption) as axis:
        for place, (method, runs) in enumerate(curves.items()):
            line(axis, RATES, [value(run) for run in runs], NAMES[method], place)
        if log:
            axis.set_yscale("log")
        else:
            axis.set_ylim(0)
        labelled(axis, RATE, label)
    return [
        _row(method, run, rate_hz=rate)
        for method, runs in curves.items()
        for rate, run in zip(RATES, runs, strict=True)
    ]


def _delay(run: Replay) -> float:
    return run.delay_s


def _disk(run: Replay) -> float:
    return run.disk_s


def _cpu(run: Replay) -> float:
    return run.cpu_s


def _row(method: str, run: Replay, **what: float) -> dict[str, Any]:
    return {
        "method": method,
        **what,
        "delay_mean_s": round(run.delay_s, 3),
        "cpu_s": round(run.cpu_s, 2),
        "disk_s": round(run.disk_s, 2),
        "reads": run.reads,
        "processed": run.processed,
        "hot_share": round(run.hot_share, 4),
    }
