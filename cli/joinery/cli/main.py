"""`joinery`: one command, a group of subcommands for each thing that it does."""

from importlib.metadata import version as installed_version

import typer

from joinery.cli import (
    change,
    completion,
    doctor,
    explain,
    figures,
    load,
    push,
    run,
    simulate,
    stop,
    tail,
    top,
    verify,
    where,
)

app = typer.Typer(
    name="joinery",
    help="Elastic, exact sliding-window stream joins.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.add_typer(simulate.app, name="simulate")
app.command(help=run.RUN_HELP)(run.run)
app.command(help=verify.VERIFY_HELP)(verify.verify)
app.command(help=push.PUSH_HELP)(push.push)
app.command(help=load.LOAD_HELP)(load.load)
app.command(help=tail.TAIL_HELP)(tail.tail)
app.command(help=change.CHANGE_HELP)(change.change)
app.command(help=stop.STOP_HELP)(stop.stop)
app.command(help=top.TOP_HELP)(top.top)
app.command(help=explain.EXPLAIN_HELP)(explain.explain)
app.command(help=where.WHERE_HELP)(where.where)
app.command(help=doctor.DOCTOR_HELP)(doctor.doctor)
app.command(help=figures.FIGURES_HELP)(figures.figures)
app.command(help=completion.COMPLETION_HELP)(completion.completion)
completion.able_to_complete()

HELP = """Elastic, exact sliding-window stream joins.

\b
  joinery run query.yaml                run a query on this machine
  joinery run query.yaml --verify       and hold its output to the truth
  joinery push query.yaml orders FILE   rows into it
  joinery tail query.yaml --follow      results out of it
  joinery top query.yaml                watch it
  joinery explain query.yaml            why this many workers
  joinery COMMAND --help                each teaches with examples

Exit codes of every command: 0 done; 1 it did not work out: something cannot
be reached, was stopped, or is not as it should be; 2 the command, a file or
a setting cannot be used, with what was found, what is wanted and the remedy.
"""


@app.callback(help=HELP)
def joinery() -> None:
    """Elastic, exact sliding-window stream joins."""


VERSION_HELP = """Print the version.

\b
  joinery version

Exit codes: 0 it is printed.
"""


@app.command(help=VERSION_HELP)
def version() -> None:
    """Print the version."""
    typer.echo(f"joinery {installed_version('joinery')}")
