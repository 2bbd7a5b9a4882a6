"""`joinery stop`: a run on this machine ends, at once or when all that is recorded is joined."""

import os
import signal
import time
from typing import Annotated, Final

import typer

from joinery.cli.asking import ask
from joinery.cli.complaining import complaining
from joinery.cli.running import Running, all_running, running_at, running_of
from joinery.client import Unreachable
from joinery.machine.messages import EndStreams, StreamsEnded

STOP_HELP = """Stop a query that runs on this machine.

\b
  joinery stop query.yaml           at once, as Ctrl-C; --state goes on later
  joinery stop 127.0.0.1:7400       that one, if there are two of a name
  joinery stop query.yaml --drain   every stream ends where it is; what is
                                    recorded is joined, committed and in the
                                    sinks; then the run ends, with code 0

Exit codes: 0 the run has ended, 1 it has not in --wait seconds, 2 there is
no such run.
"""
LOOK_S: Final = 0.1


@complaining
def stop(
    query: Annotated[str, typer.Argument(help="Query file, name of the query, or HOST:PORT.", show_default=False)],
    drain: Annotated[bool, typer.Option("--drain", help="Join all that is recorded first.")] = False,
    wait: Annotated[float, typer.Option("--wait", help="Seconds to wait for the end.")] = 600.0,
) -> None:
    """Ask, wait, tell."""
    until_s = time.monotonic() + wait
    found = running_of(query) or running_at(query)
    if drain:
        _drain(found, wait)
    else:
        os.kill(found.pid, signal.SIGTERM)
    while not _is_gone(found):
        if time.monotonic() > until_s:
            typer.echo(f"{found.name} still runs after {wait:g} s, as process {found.pid}", err=True)
            raise typer.Exit(1)
        time.sleep(LOOK_S)
    typer.echo(f"{found.name} has ended")


def _drain(found: Running, wait_s: float) -> None:
    try:
        answer = ask(found.gateway, EndStreams(), wait_s)
    except Unreachable as error:
        if _is_gone(found):
            return
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    if isinstance(answer, StreamsEnded):
        typer.echo(f"every stream has ended with record {answer.record}; what is recorded is being joined")


def _is_gone(found: Running) -> bool:
    """It takes its announcement away when it ends; a process that waits to be reaped has ended."""
    return not found.is_alive or all(one.pid != found.pid for one in all_running())
