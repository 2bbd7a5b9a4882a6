"""`joinery change`: an edited query file becomes the running query."""

from pathlib import Path
from typing import Annotated

import typer

from joinery.cli.asking import ask
from joinery.cli.complaining import complaining
from joinery.cli.query_file import read_query
from joinery.cli.running import gateway_of
from joinery.client import Unreachable
from joinery.machine.messages import ChangeQuery, QueryChanged
from joinery.model.errors import BadSpec, Bug

CHANGE_HELP = """Change a running query: edit its file, then give it to this command.

\b
  joinery change query.yaml
  joinery change query.yaml --gateway 127.0.0.1:7400

Windows, lateness and idleTimeout are changed by an entry of the log: rows
recorded after it are joined by the new ones, and the results stay exact.
Thresholds, beta, replicas, epochs, fine tuning and the like hold at once.
What decides what a result is (on, type, where, select, sinks ...) is
refused, each field with the reason; then nothing is changed.

The change outlives every process of the query. It is done when the command
ends with 0.

Exit codes: 0 the query is as the file says, 1 it cannot be reached, 2 the
file cannot run, or is refused.
"""


@complaining
def change(
    query: Annotated[Path, typer.Argument(help="The edited query file.", show_default=False)],
    gateway: Annotated[str | None, typer.Option("--gateway", help="HOST:PORT, if it runs elsewhere.")] = None,
    tls: Annotated[Path | None, typer.Option("--tls", help="Folder with ca.crt, tls.crt, tls.key.")] = None,
    wait: Annotated[float, typer.Option("--wait", help="Seconds to wait for the gateway.")] = 30.0,
) -> None:
    """Read, ask, tell."""
    spec = read_query(query)
    try:
        answer = ask(gateway or gateway_of(str(query)), ChangeQuery(spec), wait, tls)
    except Unreachable as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    if not isinstance(answer, QueryChanged):
        raise Bug(f"a gateway answered with {type(answer).__name__}")
    if answer.changes.refused:
        raise BadSpec(list(answer.changes.refused))
    for line in told(answer):
        typer.echo(line)


def told(answer: QueryChanged) -> list[str]:
    """What was changed, a line for each field."""
    ways = ((answer.changes.logged, f"after record {answer.record}"), (answer.changes.at_once, "at once"))
    lines = [f"{one.field}: {one.found} -> {one.wanted}, {how}" for part, how in ways for one in part]
    return lines or ["nothing to change: the query is as the file says"]
