"""The pages that users read, their fenced blocks, and the commands in them."""

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PLACES: Final = ("*.md", "docs/**/*.md", "examples/*/README.md", "charts/joinery/README.md", "helm/README.md")
PAGES: Final = sorted(
    str(path.relative_to(ROOT))
    for place in PLACES
    for path in ROOT.glob(place)
    if path.name != "CHANGELOG.md" and "_site" not in path.parts
)
SHELL: Final = ("console", "sh", "bash")
_FENCE: Final = re.compile(r"^([ ]*)```([^\n]*)\n(.*?)^[ ]*```[ ]*$", re.MULTILINE | re.DOTALL)
_COMMENT: Final = re.compile(r"(?:^|\s+)#\s.*$", re.MULTILINE)
_NOT_YET: Final = re.compile(r"^Not yet: .*$", re.MULTILINE)
_INLINE: Final = re.compile(r"(?<!`)`((?:\.venv/bin/)?(?:joinery|make|python -m) [^`]+)`(?!`)")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: str) -> Iterator[Block]:
    """Those of a page, in order; also those within lists."""
    text = (ROOT / page).read_text()
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, found[2].strip(), textwrap.dedent(found[3]))


def commands(block: Block) -> list[str]:
    """The commands of a block for a shell, without prompts and comments; a command may go over several lines.

    In a block with prompts (`$ `) what follows a command is its output.
    """
    text, prompted = _COMMENT.sub("", block.text), block.text.lstrip().startswith("$ ")
    found: list[str] = []
    begun = ""
    for line in text.splitlines():
        if begun:
            begun += "\n" + line
        elif line.startswith("$ "):
            begun = line.removeprefix("$ ")
        elif line.strip() and not prompted:
            begun = line
        if begun and _is_whole(begun):
            found.append(begun.strip())
            begun = ""
    assert not begun, f"{block}: this command does not end: {begun}"
    return found


def _is_whole(command: str) -> bool:
    try:
        shlex.split(command)
    except ValueError:
        return False
    return not command.endswith("\\")


def page_commands(page: str) -> list[tuple[Block, str]]:
    """All commands of a page in order."""
    return [(block, one) for block in blocks(page) if block.language in SHELL for one in commands(block)]


def inline_commands(page: str) -> list[str]:
    """Commands of ours that a page names in its sentences, but for those that it calls missing."""
    text = _NOT_YET.sub("", _FENCE.sub("", (ROOT / page).read_text()))
    return [" ".join(found.split()) for found in _INLINE.findall(text)]
