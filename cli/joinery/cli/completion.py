"""`joinery completion`: what a shell must know to complete our commands and options."""

from enum import StrEnum
from typing import Annotated, Final

import typer
from typer._completion_classes import completion_init
from typer._completion_shared import get_completion_script

COMPLETION_HELP = """Print what makes TAB complete joinery's commands and options in your shell.

\b
  source <(joinery completion bash)                               now
  joinery completion bash >> ~/.bashrc                            always
  joinery completion zsh > ~/.zfunc/_joinery                      zsh
  joinery completion fish > ~/.config/fish/completions/joinery.fish

Exit codes: 0 it is printed, 2 the shell is not known.
"""
VARIABLE: Final = "_JOINERY_COMPLETE"


class KnownShell(StrEnum):
    """Shells that can be taught."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[KnownShell, typer.Argument(help="bash, zsh or fish.", show_default=False)]) -> None:
    """Print the script."""
    typer.echo(get_completion_script(prog_name="joinery", complete_var=VARIABLE, shell=shell.value))


def able_to_complete() -> None:
    """Answer a shell that asks what could come next; before the command line is read."""
    completion_init()
