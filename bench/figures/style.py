"""How figures look: one size, one palette, units on every axis, the paper's values as black crosses."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

COLOURS: Final = ("#1b6ca8", "#d1495b", "#3a7d44", "#edae49", "#6a4c93", "#4f5d75", "#00798c", "#a23b72")
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "h")
_STYLE: Final = {
    "figure.dpi": 100,
    "savefig.dpi": 100,
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.7,
    "lines.markersize": 5,
    "legend.frameon": False,
    "legend.fontsize": 9,
}
_CAPTION_COLUMNS: Final = 152


@contextmanager
def drawing(path: Path, title: str, caption: str, *, panels: int = 1, height: float = 4.0) -> Iterator[Any]:
    """Axes to draw on; the picture is written when they are done."""
    lines = textwrap.wrap(caption, _CAPTION_COLUMNS)
    foot = 0.17 * len(lines) + 0.12
    with mpl.rc_context(_STYLE):
        figure, axes = plt.subplots(1, panels, figsize=(8.0, height + foot), squeeze=False)
        try:
            yield axes[0] if panels > 1 else axes[0][0]
            figure.suptitle(title, fontsize=12, fontweight="bold", x=0.02, ha="left")
            figure.text(0.02, 0.015, "\n".join(lines), fontsize=7.5, color="#444444", va="bottom", linespacing=1.25)
            figure.tight_layout(rect=(0, foot / (height + foot), 1, 0.98))
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, metadata={"Software": None})
        finally:
            plt.close(figure)


def line(axis: Any, xs: Sequence[float], ys: Sequence[float], label: str, place: int, **more: Any) -> None:
    """One curve with its marks."""
    style = {"marker": MARKERS[place % len(MARKERS)], "color": COLOURS[place % len(COLOURS)], "label": label} | more
    axis.plot(xs, ys, **style)


def paper_points(axis: Any, points: Iterable[tuple[float, float]], label: str = "the paper's value") -> None:
    """What the paper's text says."""
    xs, ys = zip(*points, strict=True)
    axis.plot(
        xs, ys, linestyle="none", marker="x", color="black", markersize=9, markeredgewidth=2, label=label, zorder=5
    )


def labelled(axis: Any, x: str, y: str, title: str = "", **legend: Any) -> None:
    """Names and units."""
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    if title:
        axis.set_title(title)
    axis.legend(**legend)
