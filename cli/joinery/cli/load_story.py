"""What `joinery simulate load` shows: decisions, delay and degree as text; the run as JSON; a picture of it."""

import json
from collections import Counter
from importlib.util import find_spec
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import Final

from rich.console import Console

from joinery.adapters.extras import how_to_get
from joinery.cli.load_request import Request
from joinery.join.results import Kind
from joinery.model.errors import BadSpec, Complaint
from joinery.simulate.load_result import DecisionRow, DelaySummary, LoadRun
from joinery.simulate.outcome import Outcome

DELAY_PARTS: Final = 60
_COLOURS: Final = ("#1b6ca8", "#d1495b", "#3a7d44", "#edae49")


def tell(run: LoadRun, request: Request, *, every: bool) -> None:
    """Print the story."""
    console = Console(soft_wrap=True, highlight=False)
    settings = request.settings
    console.print(
        f"[bold]{request.title}[/bold]: {settings.until_ns / 1e9:g} s simulated, rule {settings.rule}, "
        f"{settings.method} join, t_d {settings.epoch_ns / 1e9:g} s, t_r {settings.reorganization_ns / 1e9:g} s"
    )
    rows = [row for row in run.decisions if every or row.action in ("grow", "shrink")]
    rows = rows if every else _with_new_blocks(run, rows)
    for line in _lines(rows) if rows else ["no decision changed the degree"]:
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    degrees = [degree for _, degree in run.degrees()]
    delay = run.delay()
    console.print(f"delay: {'no result came out' if isnan(delay.mean) else _shown(delay)}")
    if degrees:
        console.print(
            f"degree: {degrees[0]} at first, {min(degrees)} to {max(degrees)}, {sum(degrees) / len(degrees):.2f} in "
            f"the mean, {degrees[-1]} at the end; changes of direction: {run.turns()}"
        )
    pauses = [move.pause_ns / 1e6 for move in run.moves]
    longest = f", longest pause {max(pauses):.1f} ms" if pauses else ""
    console.print(f"moves: {len(run.moves)}{longest}")
    totals = run.totals()
    if totals.wall:
        console.print(
            f"workers' time: busy {totals.busy / totals.wall:.0%}, "
            f"communication {totals.communication / totals.wall:.1%}, "
            f"idle {totals.idle_share:.0%}"
        )
    if run.samples and run.samples[-1].waiting_bytes > 2 * settings.buffer_bytes:
        late = run.samples[-1].waiting_bytes / 2**20
        console.print(f"[red]not keeping up:[/red] {late:.1f} MiB wait at the gateway at the end")


def tell_results(outcome: Outcome) -> None:
    """What a run of the machines brought out, and when it was over."""
    rows = Counter[Kind]()
    for part in next(iter(outcome.sinks.values())):
        rows[part.kind] += part.rows.num_rows
    late = f", late rows: {rows[Kind.LATE]}" if rows[Kind.LATE] else ""
    Console(soft_wrap=True, highlight=False).print(
        f"results: {rows[Kind.RESULT]}{late}, all committed after {outcome.virtual_ns / 1e9:.1f} s"
    )


def check_place(option: str, path: Path | None) -> None:
    """Refuse a file that could not be written, or a picture that could not be drawn, before anything is simulated."""
    if path is not None and not path.parent.is_dir():
        found, remedy = f"{path}, and there is no folder {path.parent}", f"make it: mkdir -p {path.parent}"
        raise BadSpec([Complaint(option, found, "a file that can be written", remedy)])
    if path is not None and option == "--plot" and find_spec("matplotlib") is None:
        remedy = f"{how_to_get('plots')}; or leave --plot out"
        raise BadSpec([Complaint(option, "matplotlib is not installed", "matplotlib", remedy)])


def write_json(path: Path, run: LoadRun, request: Request) -> None:
    """The whole run."""
    about = {"query": request.title, "rule": request.settings.rule.value, "beta": request.settings.scaling.beta}
    _write(path, json.dumps(about | run.to_dict(), indent=1, allow_nan=False, default=str).encode())


def write_plot(path: Path, run: LoadRun, request: Request) -> None:
    """Rate, degree, N_sup and N_con, delay over time."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - only a plot needs it
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(9, 8), layout="constrained")
    FigureCanvasAgg(figure)
    rate, degree, roles, delay = figure.subplots(4, 1, sharex=True)
    times = [sample.at_ns / 1e9 for sample in run.samples]
    for stream in range(len(request.profiles)):
        rate.plot(
            times, [one.rates_hz[stream] for one in run.samples], color=_COLOURS[stream % 4], label=f"stream {stream}"
        )
    degree.step(times, [one.degree for one in run.samples], where="post", color=_COLOURS[0], label="asked for")
    degree.step(
        times, [len(one.workers) for one in run.samples], where="post", color=_COLOURS[3], ls=":", label="Ready"
    )
    roles.step(times, [one.n_sup for one in run.samples], where="post", color=_COLOURS[1], label="N_sup")
    roles.step(times, [one.n_con for one in run.samples], where="post", color=_COLOURS[2], label="N_con")
    parts = run.delay_over_time(max(1, run.until_ns // DELAY_PARTS))
    delay.plot([at_ns / 1e9 for at_ns, _ in parts], [one.mean for _, one in parts], color=_COLOURS[0], label="mean")
    delay.plot(
        [at_ns / 1e9 for at_ns, _ in parts], [one.p95 for _, one in parts], color=_COLOURS[1], ls=":", label="p95"
    )
    delay.set_yscale("log")
    named = ((rate, "rows/s"), (degree, "workers"), (roles, "workers"), (delay, "delay (s)"))
    for axis, name in named:
        axis.set_ylabel(name)
        axis.grid(color="#dddddd", linewidth=0.7)
        axis.legend(loc="upper right", frameon=False, fontsize=8)
    for axis in (degree, roles):
        axis.yaxis.get_major_locator().set_params(integer=True)
        axis.set_ylim(bottom=0)
    delay.set_xlabel("time (s)")
    settings = request.settings
    figure.suptitle(f"{request.title}, rule {settings.rule}, β = {settings.scaling.beta:g} (simulated)")
    try:
        figure.savefig(path, dpi=100)
    except (OSError, ValueError) as failed:
        raise BadSpec([Complaint("--plot", str(failed), "a file that can be written", "try out.png")]) from None


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as failed:
        raise BadSpec(
            [Complaint(str(path), failed.strerror or "an error", "a file that can be written", "try another")]
        ) from None


def _with_new_blocks(run: LoadRun, acting: list[DecisionRow]) -> list[DecisionRow]:
    """What acted, and where something began to stand in the way of a change."""
    began = [
        later
        for earlier, later in pairwise(run.decisions)
        if later.blocked_by and later.blocked_by != earlier.blocked_by
    ]
    return sorted([*acting, *began], key=lambda row: row.at_ns)


def _lines(rows: list[DecisionRow]) -> list[str]:
    """Plain lines, the reason last: it may be long, and nothing after it has to be aligned."""
    cells = [("time", "N_sup", "N_con", "β", "busy", "action", "degree", "because")]
    for row in rows:
        action = f"{row.action} by {row.by}" if row.by else row.action
        blocked = f" [blocked by {', '.join(row.blocked_by)}]" if row.blocked_by else ""
        time = f"{round(row.at_ns / 1e9, 1):g} s"
        cells.append(
            (
                time, str(row.n_sup), str(row.n_con), f"{row.beta:g}", f"{row.busy:.2f}", action, str(row.degree),
                row.because + blocked,
            )
        )  # fmt: skip
    widths = [max(len(line[place]) for line in cells) for place in range(7)]
    return [
        "  ".join([cell.rjust(width) for cell, width in zip(line, widths, strict=False)] + [line[7]]) for line in cells
    ]


def _shown(delay: DelaySummary) -> str:
    return f"mean {delay.mean:.3g} s, median {delay.p50:.3g} s, p95 {delay.p95:.3g} s, p99 {delay.p99:.3g} s"
