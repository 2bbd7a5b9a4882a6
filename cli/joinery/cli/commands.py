"""The commands of `joinery`; only those are loaded that are wanted, for all of them take two seconds.

Of the others the name and a sentence are known: enough for `joinery --help`, and for whoever mistypes a name.
"""

from collections.abc import Container
from importlib import import_module
from typing import Any, Final

import typer

from joinery.cli.completion import able_to_complete
from joinery.cli.usage import Commands

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
SENTENCES: Final = {
    "run": "Run a query on this machine, with the workers that it needs.",
    "verify": "Run a query and hold its output to what its input gives by the rules: missing 0, extra 0, duplicate 0.",
    "push": "Push rows from a file, or from standard input, into a stream of a running query.",
    "load": "Send generated rows to a running query at a rate that rises and falls, by Spark.",
    "tail": "Print the committed results of a running query: those that are kept and, with --follow, those to come.",
    "change": "Change a running query: edit its file, then give it to this command.",
    "stop": "Stop a query that runs on this machine.",
    "top": "Watch a running query: rate, delay, workers with their roles, moves, watermarks, the last decision.",
    "explain": "Why this many workers? The last decisions with the load that each was made from.",
    "where": "Where is record n? The stations of its rows, group by group, from the log to the commit.",
    "doctor": "Look at this machine: what works here, what is missing, and how to get it.",
    "figures": "Draw the papers' figures, simulated and with real processes, as PNG and CSV.",
    "completion": "Print what makes TAB complete joinery's commands and options in your shell.",
    "version": "Print the version.",
    "simulate": "Run Joinery under a virtual clock, in seconds instead of minutes.",
}
"""Every command, and the first sentence of its help. Each is a module of this name, with a function or an app in it."""


def made(wanted: Container[str]) -> typer.Typer:
    """The command line; of those that are not wanted there is only the sentence."""
    app = typer.Typer(
        name="joinery",
        cls=Commands,
        help="Elastic, exact sliding-window stream joins.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    app.callback(help=HELP)(_joinery)
    for name, sentence in SENTENCES.items():
        if name in wanted:
            _add(app, name)
        else:
            app.command(name, help=sentence)(_joinery)
    able_to_complete()
    return app


def started(wanted: Container[str]) -> None:
    """The command line, run."""
    command = typer.main.get_command(made(wanted))
    bare_flags(command)
    command()


def bare_flags(command: Any) -> None:
    """A flag takes no value, so the help of a command shows none (Typer would say `--end <bool>`)."""
    for option in command.get_params(typer.Context(command)):
        if getattr(option, "is_flag", False):
            option.metavar = ""
    for inner in getattr(command, "commands", {}).values():
        bare_flags(inner)


def _add(app: typer.Typer, name: str) -> None:
    module = import_module(f"joinery.cli.{name}")
    if hasattr(module, "app"):
        app.add_typer(module.app, name=name)
    else:
        app.command(name, help=getattr(module, f"{name.upper()}_HELP"))(getattr(module, name))


def _joinery() -> None:
    """Elastic, exact sliding-window stream joins."""
