"""docs/cli.md, made from the commands: `python -m docs._site.cli_reference` writes it, a test holds it to them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer

from joinery.cli.main import app

PAGE: Final = Path(__file__).parents[1] / "cli.md"
HEAD: Final = Path(__file__).with_name("cli_head.md")


def commands(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All that can be said, by the words that say it; groups before what is in them."""
    if name:
        yield name, command
    for inner, one in getattr(command, "commands", {}).items():
        yield from commands(one, f"{name} {inner}".strip())


def reference() -> str:
    """The page."""
    parts = [HEAD.read_text()]
    for name, command in commands(typer.main.get_command(app)):
        parts.append(f"\n## joinery {name}\n\n{_text(command)}\n")
        if not hasattr(command, "commands"):
            parts.append(f"\n```text\njoinery {name} {_usage(command)}\n```\n")
            parts.append(_table(command))
    return "".join(parts)


def _text(command: Any) -> str:
    """Its help: examples as code, the rest as it is."""
    out: list[str] = []
    for block in re.split(r"\n\n", re.sub(r"\[/?bold\]", "**", command.help or "").replace("\b\n", "").strip()):
        lines = block.splitlines()
        is_code = lines[0].startswith("  ")
        out.append("\n".join(["```text", *(line[2:] for line in lines), "```"]) if is_code else block)
    return "\n\n".join(out)


def _usage(command: Any) -> str:
    words = [_argument(one) for one in command.params if one.param_type_name == "argument"]
    return " ".join([*words, *(["[OPTIONS]"] if options(command) else [])])


def _argument(one: Any) -> str:
    text = one.metavar or one.name.upper()
    return text if one.required else f"[{text}]"


def options(command: Any) -> list[Any]:
    """What a command may be told by options."""
    return [one for one in command.params if one.param_type_name == "option" and "--help" not in one.opts]


def _table(command: Any) -> str:
    rows = []
    for one in options(command):
        names = ", ".join(f"`{name}`" for name in one.opts)
        rows.append(f"| {names} | {_default(one.default)} | {_escaped(one.help or '')} |")
    return "\n| option | default | what it does |\n|---|---|---|\n" + "\n".join(rows) + "\n" if rows else ""


def _default(value: Any) -> str:
    if value is None or value is False or callable(value) or value == "":
        return ""
    return f"`{value}`"


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(reference())
