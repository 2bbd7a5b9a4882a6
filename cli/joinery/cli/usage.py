"""A command line that cannot be read is refused as all else is: found, wanted, remedy, on standard error, code 2.

Typer says what is wrong in words of its own, in a box. Here its words are taken apart; those that are not known stand
as they are.
"""

import re
import sys
from typing import Any, Final

import typer
from typer.core import TyperGroup

from joinery.model.errors import Complaint

USAGE_ERROR: Final[Any] = typer.BadParameter.__mro__[1]
"""The root of all that Typer (or the Click in or below it, as its version is) complains about."""
_NOT: Final = re.compile(r"(?:Value error, )?('.*?') is not (.*?)\.?", re.DOTALL)
_COMMAND: Final = re.compile(r"No such command ('.*?')\.(?: Did you mean (.*)\?)?", re.DOTALL)
_EXTRA: Final = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", re.DOTALL)


class Commands(TyperGroup):
    """The commands; what is wrong with a command line is told in our words."""

    def main(
        self,
        args: Any = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **more: Any,
    ) -> Any:
        """Run what the command line asks for, and exit; not `standalone_mode`: raise, or return the exit code."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, windows_expand_args, **more)
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **more)
        except USAGE_ERROR as error:
            given = list(sys.argv[1:] if args is None else args)
            if type(error).__name__ != "NoArgsIsHelpError":  # which has shown the help, and is all that it says
                typer.echo(str(complaint_of(error, self._path(error, given))), err=True)
            sys.exit(error.exit_code)
        except typer.Abort:
            typer.echo("stopped", err=True)
            sys.exit(1)
        sys.exit(code if isinstance(code, int) else 0)

    def _path(self, error: Any, given: list[str]) -> str:
        """The command that was meant; an option without its value is told without it."""
        if error.ctx is not None:
            return str(error.ctx.command_path)
        known = next((word for word in given if word in self.commands), "")
        return f"{self.name or 'joinery'} {known}".strip()


def complaint_of(error: Any, path: str) -> Complaint:
    """What Typer found, in our words."""
    usage = error.ctx.get_usage().removeprefix("Usage: ") if error.ctx is not None else path
    more = f"{path} --help tells more"
    kind, text = type(error).__name__, str(error.message)
    if kind == "NoSuchOption":
        near = ", ".join(sorted(error.possibilities or ()))
        return Complaint(path, error.option_name, "one of its options", f"did you mean {near}?" if near else more)
    if kind == "MissingParameter":
        return Complaint(path, f"no {_name(error)}", usage, more)
    if kind == "BadParameter":
        found, wanted = _value(error, text)
        return Complaint(f"{path} {_name(error)}", found, wanted, more)
    if kind == "BadOptionUsage" and "requires" in text:
        return Complaint(path, f"{error.option_name} without a value", f"{error.option_name} VALUE", more)
    if kind == "BadOptionUsage":
        return Complaint(path, f"a value of {error.option_name}", f"{error.option_name} alone", more)
    if match := _COMMAND.fullmatch(text):
        near = f"did you mean {match[2]}?" if match[2] else more
        return Complaint(path, f"the command {match[1]}", f"one of {', '.join(_commands(error))}", near)
    if match := _EXTRA.fullmatch(text):
        return Complaint(path, f"{match[1]} too many", usage, more)
    return Complaint(path, text.rstrip("."), usage, more)


def _commands(error: Any) -> list[str]:
    return [] if error.ctx is None else list(error.ctx.command.list_commands(error.ctx))


def _name(error: Any) -> str:
    """The argument or option that it is about, as it is typed."""
    return str(error.param_hint or "value") if error.param is None else str(max(error.param.opts, key=len))


def _value(error: Any, text: str) -> tuple[str, str]:
    """What was given, and what it should have been."""
    if match := _NOT.fullmatch(text):
        return match[1], match[2]
    wanted = text.removeprefix("Value error, ").removeprefix("Input should be ").rstrip(".")
    for cause in (error.__cause__, error.__context__):
        if (told := getattr(cause, "errors", None)) is not None:
            return repr(told()[0]["input"]), wanted.split(", unable to")[0]
    return "another value", wanted
