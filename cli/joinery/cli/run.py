"""`joinery run FILE`: a query on this machine, from its sources to its sinks, with the workers that it needs."""

import signal
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from joinery.cli.complaining import complaining
from joinery.cli.local import LocalRun
from joinery.elastic.beta import Grow, Shrink
from joinery.model.errors import BadSpec, Complaint, UserMustAct
from joinery.model.spec import JoinQuery, JoinQuerySpec

RUN_HELP = """Run a query on this machine: embedded Redis, gateway, collector and workers as processes.

It stops when every source has ended and everything is committed; a query with a pushed stream runs until its producers
say that they have ended. Ctrl-C stops it earlier. Paths in the query are relative to its file.

  joinery run query.yaml

Exit codes: 0 all results are committed, 1 something failed or was stopped, 2 the query file cannot run.
"""


@complaining
def run(query: Annotated[Path, typer.Argument(help="A JoinQuery file.", show_default=False)]) -> None:
    """Read, check, run, tell."""
    spec = read_query(query)
    console = Console(stderr=True)
    begun = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends in order, as Ctrl-C does
    try:
        with LocalRun(query.resolve(), spec) as running, Live(console=console, refresh_per_second=4) as live:
            ended = running.wait(lambda one: live.update(_table(one)))
            failed, decisions = running.failed, len([d for d in running.operator.history if _acts(d)])
    except KeyboardInterrupt:
        console.print("stopped; results that were not committed are lost")
        raise typer.Exit(1) from None
    if not ended:
        console.print(f"[bold red]failed[/]: {failed}")
        raise typer.Exit(1)
    console.print(f"done in {time.monotonic() - begun:.1f} s; {decisions} changes of the degree")


def read_query(path: Path) -> JoinQuerySpec:
    """The spec of a query file that can run here, or every complaint."""
    try:
        text = path.read_text()
    except OSError as error:
        raise UserMustAct(f"{path}: found {error.strerror}, wanted a query file; check the path") from error
    spec = JoinQuery.parse_yaml(text).spec
    if spec.checkpoint.durability == "wal":
        raise BadSpec(
            [Complaint("spec.checkpoint.durability", "wal", "memory", "wal is not yet there; write durability: memory")]
        )
    _refuse_overwriting(spec, path.parent)
    return spec


def _refuse_overwriting(spec: JoinQuerySpec, folder: Path) -> None:
    """A sink must not replace what a source reads."""
    read = {(folder / s.source.file.path).resolve() for s in spec.streams if s.source and s.source.file}
    for number, sink in enumerate(spec.sinks):
        if sink.file is not None and (folder / sink.file.path).resolve() in read:
            field = f"spec.sinks[{number}].file.path"
            raise BadSpec([Complaint(field, f"{sink.file.path}, a source", "another file", "choose a new name")])


def _acts(decision: object) -> bool:
    return isinstance(decision, Grow | Shrink)


def _table(running: LocalRun) -> Table:
    """Who is there, and what the rule said last."""
    table = Table(title=f"{running.query.name}: {len(running.workers)} workers", title_justify="left")
    for column in ("worker", "role", "f", "busy", "memory", "groups"):
        table.add_column(column, justify="left" if column in ("worker", "role") else "right")
    load = running.load
    for report, role in zip(load.reports, load.roles, strict=True) if load else ():
        table.add_row(
            report.worker, role.value, f"{report.occupancy:.2f}", f"{report.busy:.0%}",
            f"{report.memory_bytes / 2**20:.1f} Mi", str(len(report.groups)),
        )  # fmt: skip
    decision = running.operator.last_decision
    if decision is not None:
        table.caption = f"{type(decision).__name__.lower()}: {decision.because}"
    return table
