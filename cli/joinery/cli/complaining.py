"""How a command refuses: found, wanted, remedy on standard error, and exit code 2. What is our fault is not hidden.

Ctrl-C, where a command has nothing better to say about it, is code 1.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import typer

from joinery.model.errors import UserMustAct

P = ParamSpec("P")
R = TypeVar("R")


def complaining(command: Callable[P, R]) -> Callable[P, R]:
    """A command that explains bad input instead of a traceback."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except UserMustAct as refused:
            for line in str(refused).splitlines():
                typer.echo(line, err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:  # Typer would end with 130, without a word
            typer.echo("stopped", err=True)
            raise typer.Exit(1) from None

    return run
