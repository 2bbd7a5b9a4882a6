"""`joinery`: one command, a group of subcommands for each thing that it does."""

from importlib.metadata import version as installed_version

import typer

from joinery.cli import change, doctor, explain, load, push, run, simulate, stop, tail, top, verify, where

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


@app.callback()
def joinery() -> None:
    """Elastic, exact sliding-window stream joins."""


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"joinery {installed_version('joinery')}")
