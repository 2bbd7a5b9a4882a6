"""`python -m bench.figures`: draw the papers' figures into build/figures/ (and with --docs into docs/figures/)."""

import argparse
import csv
import sys
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from PIL import Image

from bench.figures.catalogue import CATALOGUE

ROOT: Final = Path(__file__).parents[2]


def main(arguments: Sequence[str]) -> int:
    """Draw what is asked for."""
    asked = _parser().parse_args(arguments)
    wanted = [figure for figure in CATALOGUE if fnmatchcase(figure.name, asked.only)]
    if not wanted:
        names = ", ".join(figure.name for figure in CATALOGUE)
        print(f"--only {asked.only}: found no figure of that name; there are {names}", file=sys.stderr)
        return 2
    start = time.perf_counter()
    for number, figure in enumerate(wanted, 1):
        print(
            f"[{time.perf_counter() - start:4.0f} s] {number}/{len(wanted)} {figure.name} ({figure.paper})", flush=True
        )
        path = asked.into / f"{figure.name}.png"
        write_csv(path.with_suffix(".csv"), figure.make(path))
        if asked.docs:
            copy = ROOT / "docs" / "figures" / path.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            with Image.open(path) as picture:  # 48 colours are enough for lines, and a third of the bytes
                picture.convert("RGB").quantize(48).save(copy, optimize=True)
    print(f"[{time.perf_counter() - start:4.0f} s] {len(wanted)} figures as PNG and CSV in {asked.into}")
    return 0


def write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """The numbers of a figure."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.figures",
        description="Draw the papers' figures: from the load simulator (two minutes), and those whose names begin with "
        "real- with real processes (five minutes; other work on the machine disturbs them).",
    )
    add = parser.add_argument
    names = ", ".join(figure.name for figure in CATALOGUE)
    add("--only", metavar="PATTERN", default="*", help=f"figures to draw, with * and ?; there are {names}")
    add("--into", type=Path, default=ROOT / "build" / "figures", metavar="FOLDER", help="default build/figures")
    add(
        "--docs", action="store_true", help="also write the pictures to docs/figures/, where docs/figures.md shows them"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
