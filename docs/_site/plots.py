"""`python -m docs._site.plots`: the plots of docs/performance.md, as SVG into docs/images/, from performance.csv.

Whoever measures again edits the CSV and runs this. A bar ends in the middle between the smallest and the greatest
value; the line upon it goes from the one to the other. The dashed mark is the goal, if there is one.
"""

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from docs._site.drawings import IMAGES, WIDTH, Drawing

FIGURES: Final = Path(__file__).with_name("performance.csv")
PLOTS: Final = {
    "peers": ("U1 joined by each engine, both cores: more is better", "million tuples per second"),
    "core": ("The core beside a C program on the same input: more is better", "times the rate of C"),
    "delay": ("Delays on one machine of 2 cores: less is better", "milliseconds"),
    "cpu": ("What a tuple costs, U1 with 2 workers: less is better", "microseconds of CPU per tuple"),
}
"""Title, and what the axis counts."""
KINDS: Final = {"ours": "one", "theirs": "two"}
_LEFT, _RIGHT, _TOP, _STEP, _HIGH = 300, 880, 66, 34, 20


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the CSV."""

    what: str
    least: float
    most: float
    goal: float | None
    kind: str

    @property
    def told(self) -> str:
        """The value as people read it."""
        return f"{self.least:g}" if self.least == self.most else f"{self.least:g} to {self.most:g}"


def rows_of(plot: str) -> list[Row]:
    """The lines of one plot, in their order."""
    with FIGURES.open(newline="", encoding="utf-8") as file:
        return [
            Row(
                one["what"],
                float(one["least"]),
                float(one["most"]),
                float(one["goal"]) if one["goal"] else None,
                one["kind"],
            )
            for one in csv.DictReader(file)
            if one["plot"] == plot
        ]


def drawn(plot: str) -> Drawing:
    """One plot."""
    title, unit = PLOTS[plot]
    rows = rows_of(plot)
    bottom = _TOP + _STEP * len(rows)
    about = "; ".join(f"{row.what} {row.told}" + (f", goal {row.goal:g}" if row.goal else "") for row in rows)
    draw = Drawing(title, f"{about} {unit}.", bottom + 58)
    draw.text(20, 34, title, "bold")
    ticks = _ticks(max(max(row.most, row.goal or 0.0) for row in rows))
    scale = (_RIGHT - _LEFT) / ticks[-1]
    for tick in ticks:
        draw.line("thin", (_LEFT + tick * scale, _TOP - 8), (_LEFT + tick * scale, bottom))
        draw.text(_LEFT + tick * scale, bottom + 18, f"{tick:g}", "small", "middle", "quiet")
    draw.text((_LEFT + _RIGHT) / 2, bottom + 40, unit, "small", "middle", "quiet")
    for place, row in enumerate(rows):
        _bar(draw, row, _TOP + place * _STEP, scale)
    if any(row.goal is not None for row in rows):
        draw.line("mark", (WIDTH - 92, 22), (WIDTH - 92, 40))
        draw.text(WIDTH - 82, 35, "goal", "small", colour="quiet")
    return draw


def _bar(draw: Drawing, row: Row, y: float, scale: float) -> None:
    middle = y + _HIGH / 2
    draw.text(_LEFT - 12, middle + 5, row.what, "small", "end")
    draw.bar(_LEFT, y, max(1.0, (row.least + row.most) / 2 * scale), _HIGH, KINDS[row.kind])
    if row.least != row.most:
        draw.line("line", (_LEFT + row.least * scale, middle), (_LEFT + row.most * scale, middle))
    if row.goal is not None:
        at = _LEFT + row.goal * scale
        draw.line("mark", (at, y - 4), (at, y + _HIGH + 4))
    right = _LEFT + row.most * scale + 8
    is_in_the_way = row.goal is not None and right - 4 < _LEFT + row.goal * scale < right + 8 * len(row.told)
    draw.text(_LEFT + row.goal * scale + 8 if row.goal and is_in_the_way else right, middle + 5, row.told, "small")


def _ticks(greatest: float) -> list[float]:
    """Four to eight round numbers from zero to a little above the greatest."""
    step = 10.0 ** math.floor(math.log10(greatest / 2))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if greatest * 1.05 / (step * factor) <= 7)
    return [round(step * n, 9) for n in range(math.ceil(greatest * 1.05 / step) + 1)]


if __name__ == "__main__":
    for name in PLOTS:
        (IMAGES / f"performance-{name}.svg").write_text(str(drawn(name)))
