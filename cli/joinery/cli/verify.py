"""`joinery verify`: run a query and hold its output to the truth (`checking`)."""

from pathlib import Path
from typing import Annotated

import typer

from joinery.cli import run
from joinery.cli.complaining import complaining

VERIFY_HELP = """Run a query and hold its output to what its input gives by the rules: missing 0, extra 0, duplicate 0.

\b
  joinery verify query.yaml                  run it, then compare
  joinery verify query.yaml --recorded DIR   what run --record DIR has left
  joinery verify query.yaml --no-run         the output that is there, if its
                                             sources are files or generators
                                             with a time column

Exit codes: 0 exact, 1 it is not (the first wrong rows are shown) or the run
failed, 2 the query cannot be verified.
"""


@complaining
def verify(
    query: Annotated[Path, typer.Argument(help="A JoinQuery file.", show_default=False)],
    recorded: Annotated[Path | None, typer.Option("--recorded", help="Do not run; the recording of a run.")] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="Do not run; read the sources.")] = False,
) -> None:
    """Run, unless told otherwise, and compare."""
    if recorded is not None or no_run:
        raise typer.Exit(run.compared(query, run.read_query(query), recorded))
    run.run(query, verify=True)
