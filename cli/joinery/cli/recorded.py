"""`joinery simulate recorded`: the decisions of a recorded run, made again; and a sweep of settings on its load."""

import json as js
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table

from joinery.adapters.scaling_record import read_scaling
from joinery.cli.complaining import complaining
from joinery.cli.load_story import check_place
from joinery.cli.settings_asked import change_of, sweep_of
from joinery.cli.words import counted
from joinery.elastic.guarded import Wish
from joinery.model.errors import BadSpec, Complaint, UserMustAct
from joinery.model.quantities import parse_duration
from joinery.simulate.recorded import Difference, Outcome, RecordedRun, as_recorded, repeat, what_if

RECORDED_HELP = """Make every decision of a recorded run again, and try other settings on its load.

\b
  joinery run query.yaml --record record/
  joinery simulate recorded record/
  joinery simulate recorded record/ --sweep beta=0.2,0.5,0.8 --plot out.png
  joinery simulate recorded record/ --sweep th_sup=0.3,0.5 --sweep t_r=2s,10s

The operator's machine is told what it was told in the run, and must decide
the same: "N decisions, N equal".

[bold]--sweep[/bold] tells the load to the same machine with other settings,
one at a time: beta, th_sup, th_con, t_r, s_low, step, target, min, max,
rule, scale_up, scale_down. As long as it asks for the same workers, reports
are as recorded. From the first difference on the load is modelled: the whole
demand is divided evenly over the workers there would be (u = demand /
workers; f = 0 below u = 1, else 1), a new worker is Ready after
--start-delay, a drain takes one epoch, moves are not played. A longer t_r is
the mean of the reports in it; a shorter one cannot be had from a recording
and is refused. For loads and settings far from the recorded ones use
[bold]joinery simulate load[/bold].

Exit codes: 0 every decision is equal, 1 one is not, 2 there is no such
recording, or a setting does not fit.
"""
_COLOURS: Final = ("#1b6ca8", "#d1495b", "#3a7d44", "#edae49", "#8d6cab", "#5b8e7d", "#bc4b51", "#6c757d")
_ASIDE: Final = 0.08
"""Of a worker: lines that would lie upon each other are drawn side by side."""
_SHOWN: Final = 5


@complaining
def recorded(
    record: Annotated[
        Path, typer.Argument(help="Folder of joinery run --record, or its scaling.jsonl.", show_default=False)
    ],
    sweep: Annotated[
        list[str] | None, typer.Option("--sweep", help="NAME=VALUE,VALUE...; repeatable.", show_default=False)
    ] = None,
    start_delay: Annotated[str, typer.Option("--start-delay", help="Until a new worker is Ready.")] = "5s",
    plot: Annotated[Path | None, typer.Option("--plot", help="Demand and workers over time as PNG.")] = None,
    json: Annotated[Path | None, typer.Option("--json", help="All of it as JSON.")] = None,
) -> None:
    """Repeat, sweep, tell."""
    sweeps = [sweep_of(one) for one in sweep or ()]
    if plot is not None and not sweeps:
        raise UserMustAct("--plot: found no --sweep, wanted one; say for example --sweep beta=0.2,0.5,0.8")
    start_ns = parse_duration(start_delay)
    for option, path in (("--plot", plot), ("--json", json)):
        check_place(option, path)
    runs = read_scaling(record)
    console = Console(soft_wrap=True, highlight=False)
    differences = [one for run in runs for one in repeat(run)]
    count = sum(len(run.decisions) for run in runs)
    console.print(f"{counted(count, 'decision')}, {max(0, count - len(differences))} equal", markup=False)
    for line in _differences(differences):
        console.print(line, markup=False)
    run = runs[-1]
    if sweeps and not run.decisions:
        raise UserMustAct(f"--sweep: found no decision in {record}, wanted some; record a run with scaling.mode Auto")
    swept = [(name, _swept(run, name, values, start_ns)) for name, values in sweeps]
    base = as_recorded(run) if sweeps else None
    for name, outcomes in swept:
        console.print(_table(name, outcomes, base))
    if json is not None:
        json.write_text(js.dumps(_plain(count, differences, swept), allow_nan=False, indent=1))
    if plot is not None and base is not None:
        write_plot(plot, base, swept)
    if differences:
        raise typer.Exit(1)


def _swept(run: RecordedRun, name: str, values: list[str], start_ns: int) -> list[tuple[str, Outcome]]:
    """With a bar on a terminal: a long recording with many values takes a while."""
    console = Console(stderr=True)
    made = []
    for value in track(values, description=name, console=console, transient=True, disable=not console.is_terminal):
        made.append((value, what_if(run, change_of({name: value}), start_ns=start_ns)))  # noqa: PERF401 - the bar
    return made


def _differences(found: list[Difference]) -> list[str]:
    lines = []
    for one in found[:_SHOWN]:
        was, now = (told.words() if told is not None else "nothing" for told in (one.recorded, one.repeated))
        lines += [f"{_clock(one.at_ns)}  recorded: {was}", f"          repeated: {now}"]
    if len(found) > _SHOWN:
        lines.append(f"and {len(found) - _SHOWN} more")
    return lines


def _table(name: str, outcomes: list[tuple[str, Outcome]], base: Outcome | None) -> Table:
    table = Table(box=SIMPLE, pad_edge=False)
    heads = (name, "differs after", "grew", "shrank", "mean", "most", "worker-s", "overloaded")
    for head in heads:
        table.add_column(head, justify="right")
    for value, one in [*([("recorded", base)] if base is not None else []), *outcomes]:
        first = "-" if one.differs_ns is None else f"{(one.differs_ns - one.points[0].at_ns) / 1e9:.1f} s"
        table.add_row(
            value, first, str(one.acts(Wish.GROW)), str(one.acts(Wish.SHRINK)), f"{one.mean:.2f}",
            str(max((point.workers for point in one.points), default=0)), f"{one.worker_seconds:.0f}",
            f"{one.overloaded:.0%}",
        )  # fmt: skip
    return table


def _plain(
    count: int, differences: list[Difference], swept: list[tuple[str, list[tuple[str, Outcome]]]]
) -> dict[str, Any]:
    return {
        "decisions": count,
        "equal": max(0, count - len(differences)),
        "sweeps": [
            {
                "name": name,
                "value": value,
                "differs_ns": one.differs_ns,
                "grew": one.acts(Wish.GROW),
                "shrank": one.acts(Wish.SHRINK),
                "mean": one.mean,
                "worker_seconds": one.worker_seconds,
                "overloaded": one.overloaded,
                "points": [[point.at_ns, point.workers, point.demand] for point in one.points],
            }
            for name, outcomes in swept
            for value, one in outcomes
        ],
    }


def write_plot(path: Path, base: Outcome, swept: list[tuple[str, list[tuple[str, Outcome]]]]) -> None:
    """Workers over time for each value, with the demand; a picture above the other for each setting."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - only a plot needs it
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(9, 1 + 3 * len(swept)), layout="constrained")
    FigureCanvasAgg(figure)
    begun_ns = base.points[0].at_ns
    lines = [base, *(one for _, outcomes in swept for _, one in outcomes)]
    most = max(point.workers for one in lines for point in one.points)
    times = [(one.at_ns - begun_ns) / 1e9 for one in base.points]
    for axis, (name, outcomes) in zip(figure.subplots(len(swept), 1, squeeze=False)[:, 0], swept, strict=True):
        axis.fill_between(times, [one.demand for one in base.points], color="#dddddd", label="demand (workers' worth)")
        axis.step(times, [one.workers for one in base.points], where="post", color="#222222", lw=2.5, label="recorded")
        for place, (value, one) in enumerate(outcomes):
            own = [(point.at_ns - begun_ns) / 1e9 for point in one.points]
            colour, aside = _COLOURS[place % len(_COLOURS)], _ASIDE * (place + 1)
            workers = [point.workers + aside for point in one.points]
            axis.step(own, workers, where="post", color=colour, label=f"{name} {value}")
        axis.set_ylabel("workers")
        axis.set_ylim(0, 1.5 * most + 1)  # a demand far above them tells no more
        axis.grid(color="#dddddd", linewidth=0.7)
        axis.legend(loc="upper left", frameon=False, fontsize=8)
        axis.set_xlabel("time (s)")
    figure.suptitle("The recorded load with other settings")
    try:
        figure.savefig(path, dpi=100)
    except (OSError, ValueError) as failed:
        raise BadSpec([Complaint("--plot", str(failed), "a file that can be written", "try out.png")]) from None


def _clock(at_ns: int) -> str:
    return f"{datetime.fromtimestamp(at_ns / 1e9):%H:%M:%S}"
