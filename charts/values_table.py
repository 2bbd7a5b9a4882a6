"""The table of values in the chart's README, made from the `# --` lines of values.yaml.

`python charts/values_table.py` writes it anew; a test fails when it is old.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

CHART: Final = Path(__file__).parent / "joinery"
BEGIN: Final = "<!-- values: made by charts/values_table.py -->\n"
END: Final = "<!-- end of values -->\n"
_KEY: Final = re.compile(r"^( *)([A-Za-z]+):")


class Value(NamedTuple):
    """One that a user may set."""

    path: str
    default: Any
    about: str


def values_of(text: str) -> Iterator[Value]:
    """Every value that has a `# --` line, in order."""
    tree, above, about = yaml.safe_load(text), list[tuple[int, str]](), ""
    for line in text.splitlines():
        if line.lstrip().startswith("# --"):
            about = line.lstrip().removeprefix("# --").strip()
        elif found := _KEY.match(line):
            depth = len(found[1])
            above = [*(one for one in above if one[0] < depth), (depth, found[2])]
            if about:
                yield Value(".".join(key for _, key in above), _at(tree, [key for _, key in above]), about)
            about = ""


def _at(tree: Any, keys: list[str]) -> Any:
    for key in keys:
        tree = tree[key]
    return tree


def readme_of(readme: str, values: str) -> str:
    """The README with the table as the values are now."""
    head, rest = readme.split(BEGIN)
    rows = [f"| `{one.path}` | `{json.dumps(one.default)}` | {one.about} |\n" for one in values_of(values)]
    return "".join([head, BEGIN, "| value | default | what it does |\n|---|---|---|\n", *rows, END, rest.split(END)[1]])


def main() -> None:
    """Write it."""
    readme = CHART / "README.md"
    readme.write_text(readme_of(readme.read_text(), (CHART / "values.yaml").read_text()))


if __name__ == "__main__":
    main()
