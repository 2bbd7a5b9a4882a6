"""`python docs/_site/drawings.py`: the drawings of docs/concepts.md, as SVG into docs/images/.

Each has its own ground and follows the system's light or dark scheme, so that it can be read wherever it is shown.
What can be computed is: the slots by `joinery.flow.slot`, the picture of the rule by `joinery.elastic.beta`.
"""

from html import escape
from pathlib import Path
from typing import Final

from joinery.elastic.beta import BetaRule, DegreeInputs, Grow, Shrink, decide
from joinery.flow.slot import SlotSchedule
from joinery.model.ids import MapVersion, WorkerId

IMAGES: Final = Path(__file__).parents[1] / "images"
WIDTH: Final = 960
STYLE: Final = """
:root { color-scheme: light dark; }
.ground { fill: #ffffff; } .ink { fill: #1b2430; } .quiet { fill: #56616f; } text.small { font-size: 12px; }
.bold { font-weight: 600; }
text { font: 14px system-ui, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif; }
.box { fill: #ffffff; stroke: #6b7785; } .frame { fill: #eef2f6; stroke: #b9c3ce; }
.store { fill: #f7efdc; stroke: #b08d3c; }
.line { stroke: #56616f; fill: none; stroke-width: 1.5; } .thin { stroke: #b9c3ce; fill: none; }
.dash { stroke-dasharray: 5 4; }
.tip { fill: #56616f; } .one { fill: #9cc9ef; stroke: #0b6bb8; } .two { fill: #f7c48d; stroke: #a8550a; }
.three { fill: #b9dfa9; stroke: #3f7a2c; } .bad { fill: #f5b7ae; stroke: #b3261e; }
.pale { fill: #dfe6ee; stroke: #8894a3; }
.curve { stroke: #0b6bb8; fill: none; stroke-width: 2; }
.mark { stroke: #b3261e; stroke-width: 1.5; stroke-dasharray: 4 3; }
@media (prefers-color-scheme: dark) {
  .ground { fill: #171d24; } .ink { fill: #e6ebf1; } .quiet { fill: #a5b1bf; }
  .box { fill: #1f2730; stroke: #8b98a8; } .frame { fill: #222c37; stroke: #46535f; }
  .store { fill: #3a3220; stroke: #c9a552; }
  .line { stroke: #a5b1bf; } .thin { stroke: #46535f; } .tip { fill: #a5b1bf; }
  .one { fill: #1f5a8a; stroke: #7fbcff; } .two { fill: #8a5415; stroke: #ffb877; }
  .three { fill: #3d6b2c; stroke: #a5dd93; }
  .bad { fill: #7d2f2a; stroke: #ff9a90; } .pale { fill: #333f4b; stroke: #8b98a8; } .curve { stroke: #7fbcff; }
  .mark { stroke: #ff9a90; }
}
""".strip()


class Drawing:
    """Shapes on a ground."""

    def __init__(self, title: str, about: str, height: int) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t d">',
            f'<title id="t">{escape(title)}</title><desc id="d">{escape(about)}</desc>',
            f"<style>{STYLE}</style>",
            '<defs><marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
            'orient="auto-start-reverse">'
            '<path class="tip" d="M0 0L10 5L0 10z"/></marker></defs>',
            f'<rect class="ground" width="{WIDTH}" height="{height}" rx="12"/>',
        ]

    def box(self, x: float, y: float, w: float, h: float, *lines: str, kind: str = "box") -> None:
        """A box with lines of text in its middle; the first is bold."""
        self._parts.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="6"/>')
        for number, line in enumerate(lines):
            at = y + h / 2 + 5 + (number - (len(lines) - 1) / 2) * 17
            self.text(
                x + w / 2, at, line, "bold" if number == 0 and len(lines) > 1 else "small" if number else "", "middle"
            )

    def bar(self, x: float, y: float, w: float, h: float, kind: str) -> None:
        """A box without text."""
        self._parts.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="3"/>')

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start", colour: str = "ink") -> None:
        """One line."""
        self._parts.append(
            f'<text class="{colour} {kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'
        )

    def arrow(self, x1: float, y1: float, x2: float, y2: float, kind: str = "", both: bool = False) -> None:
        """A line with a tip."""
        start = ' marker-start="url(#a)"' if both else ""
        self._parts.append(f'<path class="line {kind}" d="M{x1:g} {y1:g}L{x2:g} {y2:g}" marker-end="url(#a)"{start}/>')

    def line(self, kind: str, *points: tuple[float, float]) -> None:
        """A line through points."""
        path = "L".join(f"{x:g} {y:g}" for x, y in points)
        self._parts.append(f'<path class="{kind}" d="M{path}"/>')

    def __str__(self) -> str:
        return "\n".join([*self._parts, "</svg>", ""])


def way_of_a_tuple() -> Drawing:
    """Eight stations in four processes, and what is kept in Redis."""
    draw = Drawing(
        "The way of a tuple",
        "Producer, gateway with stations 1 to 3, workers with 4 to 6, collector, sink; Redis below.",
        356,
    )
    draw.box(10, 92, 94, 66, "producers", "Arrow frames")
    for shift in (12, 6, 0):
        draw.bar(440 + shift, 48 - shift, 254, 140, "frame")
    draw.bar(150, 48, 254, 140, "frame")
    draw.bar(746, 48, 96, 140, "frame")
    for x, name in ((277, "gateway"), (567, "workers"), (794, "collector")):
        draw.text(x, 68, name, "bold", "middle")
    stations = (
        (158, "1 ingest", "time, late?", "number"), (240, "2 mini-", "buffer for", "each group"),
        (322, "3 slot", "each worker", "in turn"),
        (448, "4 buffer", "its fill", "is f"), (530, "5 window", "rows that", "may match"),
        (612, "6 join", "insert, then", "probe"),
        (755, "7 take,", "commit", "once"), (878, "8 sink", "file, Redis", "subscriber"),
    )  # fmt: skip
    for x, *lines in stations:
        draw.box(x, 84, 78, 84, *lines)
    draw.arrow(104, 116, 156, 116)
    draw.arrow(156, 138, 104, 138, "dash")
    draw.text(128, 108, "push", "small", "middle", "quiet")
    draw.text(129, 204, "acknowledge:", "small", "middle", "quiet")
    draw.text(129, 219, "it is recorded", "small", "middle", "quiet")
    draw.line("thin", (129, 192), (129, 142))
    draw.arrow(402, 126, 446, 126)
    draw.text(423, 204, "batch (a, b]", "small", "middle", "quiet")
    draw.text(423, 219, "of a group", "small", "middle", "quiet")
    draw.line("thin", (423, 192), (423, 130))
    draw.arrow(692, 126, 753, 126)
    draw.text(722, 204, "results", "small", "middle", "quiet")
    draw.text(722, 219, "of (a, b]", "small", "middle", "quiet")
    draw.line("thin", (722, 192), (722, 130))
    draw.arrow(835, 126, 876, 126)
    draw.bar(150, 262, 692, 76, "frame")
    draw.text(496, 355 - 10, "Redis", "small", "middle", "quiet")
    draw.box(162, 272, 230, 52, "the log", "records 0, 1, 2 ...: all that decides", kind="store")
    draw.box(452, 272, 230, 52, "checkpoints", "increments of each group", kind="store")
    draw.box(704, 272, 126, 52, "commits", "c, {group: b}", kind="store")
    draw.arrow(277, 190, 277, 270, both=True)
    draw.arrow(567, 190, 567, 270, both=True)
    draw.arrow(794, 190, 794, 270, both=True)
    return draw


def slots() -> Drawing:
    """Two epochs for four workers in two sub-groups, by the schedule's own code."""
    draw = Drawing(
        "Slots of an epoch",
        "Four workers in two sub-groups; each is served once in every epoch, in its slot, in its turn.",
        352,
    )
    names = [WorkerId(f"worker-{number}") for number in range(4)]
    subgroups, epoch = (tuple(names[:2]), tuple(names[2:])), 1000
    plan = SlotSchedule(version=MapVersion(1), subgroups=subgroups, epoch_ns=epoch, start_ns=0)
    left, scale, top, step = 130, 0.39, 62, 34
    x = lambda at: left + at * scale  # noqa: E731
    for number in range(3):
        draw.line("line", (x(number * epoch), 30), (x(number * epoch), 314))
    for number in range(2):
        draw.text(x((number + 0.5) * epoch), 24, f"epoch {number}, t_d long", "bold", "middle")
        for index in range(plan.n_g):
            slot = plan.slot(number, index)
            draw.text(
                x((slot.start_ns + slot.end_ns) / 2), 50, f"slot {index}: sub-group {index}", "small", "middle", "quiet"
            )
            if index:
                draw.line("thin dash", (x(slot.start_ns), 36), (x(slot.start_ns), 314))
    turns: dict[WorkerId, list[int]] = {}
    for row, name in enumerate(names):
        y = top + row * step
        draw.text(20, y + 18, name, "")
        index = next(place for place, members in enumerate(subgroups) if name in members)
        first = plan.turn(name, 0).start_ns
        turns[name] = [first + number * epoch for number in (-1, 0, 1, 2)]
        served = turns[name][1:3]
        for at, until in zip(served, [*served[1:], 2 * epoch], strict=True):
            draw.bar(x(at) + 22, y + 6, (until - at) * scale - 24, 16, "pale")
            draw.bar(x(at), y + 2, 20, 24, "one" if index == 0 else "two")
        draw.text(x(served[0]) + 30, y + 18, "joins what it was given, until its next turn", "small")
    base, high = 306, 110
    draw.text(20, base - 24, "rows not", "")
    draw.text(20, base - 8, "yet sent", "")
    draw.line("thin", (left, base), (x(2 * epoch), base))
    points = []
    for at in range(0, 2 * epoch + 1, 5):
        amount = sum(at - max(t for t in turns[name] if t <= at) for name in names) / (4 * epoch)
        points.append((x(at), base - amount * high))
    draw.line("curve", *points)
    draw.text(
        left,
        338,
        "With n_g sub-groups about r · t_d/2 · (1 + 1/n_g) rows wait at most, instead of r · t_d, "
        "and each worker knows when its turn comes.",
        "small",
        colour="quiet",
    )
    return draw


def a_move() -> Drawing:
    """A planned move of one group, with its preload and its pause."""
    draw = Drawing(
        "A group moves", "The supplier goes on while the consumer preloads; only the hand-over pauses the group.", 372
    )
    left, right = 150, 930
    rows = {"supplier": 60, "checkpoints": 124, "consumer": 188, "other groups": 252}
    for name, y in rows.items():
        draw.text(20, y + 19, name, "bold")
    tell, load, follow, mapped, held = 250, 320, 440, 610, 690
    draw.bar(left, rows["supplier"], mapped - left, 28, "two")
    draw.text(left + 10, rows["supplier"] + 19, "joins the group, and goes on with it meanwhile", "small")
    draw.bar(left, rows["checkpoints"], right - left, 28, "store")
    for at, label in ((tell, "+1"), (follow - 40, "+2"), (follow + 70, "+3"), (mapped - 30, "+4")):
        draw.arrow(at, rows["supplier"] + 30, at, rows["checkpoints"] - 2)
        draw.text(at + 5, rows["checkpoints"] - 14, label, "small", colour="quiet")
    draw.text(left + 10, rows["checkpoints"] + 19, "increments", "small")
    draw.bar(load, rows["consumer"], mapped - load, 28, "pale")
    draw.text(load + 10, rows["consumer"] + 19, "preload, then follows newer increments", "small")
    draw.arrow(load + 8, rows["checkpoints"] + 30, load + 8, rows["consumer"] - 2)
    draw.arrow(follow + 80, rows["checkpoints"] + 30, follow + 80, rows["consumer"] - 2)
    draw.bar(mapped, rows["consumer"], held - mapped, 28, "bad")
    draw.text((mapped + held) / 2, rows["consumer"] + 19, "pause", "small bold", "middle")
    draw.arrow(mapped + 30, rows["checkpoints"] + 30, mapped + 30, rows["consumer"] - 2)
    draw.text(mapped + 38, rows["consumer"] - 10, "the last increment", "small", colour="quiet")
    draw.bar(held, rows["consumer"], right - held, 28, "one")
    draw.text(held + 10, rows["consumer"] + 19, "joins the group", "small")
    draw.bar(left, rows["other groups"], right - left, 28, "three")
    draw.text(left + 10, rows["other groups"] + 19, "are joined by both all the time, and notice nothing", "small")
    for at in (mapped, held):
        draw.line("mark", (at, 44), (at, 290))
    draw.text(mapped - 6, 36, "map version v is durable:", "small", "end")
    draw.text(mapped - 6, 54, "the supplier lets go", "small", "end")
    draw.text(held + 6, 36, "the consumer holds the group under v;", "small")
    draw.text(held + 6, 54, "writes of the old owner are refused", "small")
    draw.arrow(left, 308, right, 308)
    draw.text(right, 326, "time", "small", "end", "quiet")
    draw.text(
        left,
        330,
        "The pause does not wait for the windows to travel: they are in place before it begins. "
        "What the supplier had not",
        "small",
        colour="quiet",
    )
    draw.text(
        left,
        348,
        "committed is made again by the consumer. A lost worker's group takes the same way, from the map version on.",
        "small",
        colour="quiet",
    )
    return draw


def beta_rule() -> Drawing:
    """What the rule says for each number of suppliers and consumers, by the rule's own code."""
    draw = Drawing(
        "The β-rule",
        "Left: a worker's role by its occupancy. Right: what the rule says for each number of suppliers and consumers.",
        372,
    )
    draw.text(24, 34, "1. Each worker has a role, by its occupancy f", "bold")
    rule = BetaRule(beta=0.5, min_suppliers=1)
    low, high, left, wide = 0.01, 0.5, 110, 300
    for row, (f, role, kind) in enumerate(
        ((0.82, "supplier", "two"), (0.61, "supplier", "two"), (0.2, "neutral", "three"), (0.0, "consumer", "one"))
    ):
        y = 66 + row * 44
        draw.text(24, y + 17, f"worker-{row}")
        draw.bar(left, y, wide, 24, "frame")
        draw.bar(left, y, max(f * wide, 5), 24, kind)
        draw.text(left + wide - 8, y + 17, f"f {f:.2f}  {role}", "small", "end")
    for at, name, anchor in ((low, "Th_con", "middle"), (high, "Th_sup", "middle")):
        draw.line("mark", (left + at * wide, 56), (left + at * wide, 240))
        draw.text(left + at * wide, 258, f"{name} {at:g}", "small", anchor)
    draw.text(24, 292, "f: mean fill of the worker's buffer just before", "small", colour="quiet")
    draw.text(24, 310, "its next message is added. Here N_sup = 2, N_con = 1:", "small", colour="quiet")
    draw.text(24, 332, "2 > 0.5 \u00d7 1, so the number of workers grows.", "bold")
    draw.text(500, 34, "2. The numbers decide: β = 0.5, S_low = 1", "bold")
    size, x0, y0, most = 38, 560, 300, 5
    for n_con in range(most + 1):
        draw.text(x0 + n_con * size + size / 2, y0 + 18, str(n_con), "small", "middle")
        for n_sup in range(most + 1):
            inputs = DegreeInputs(
                rule=rule, degree=4, ready=4, n_sup=n_sup, n_con=n_con, busy=0.0, memory=0.0, back_pressure=False
            )
            said = decide(inputs)
            kind, sign = (
                ("two", "+")
                if isinstance(said, Grow)
                else ("one", "\u2212")
                if isinstance(said, Shrink)
                else ("pale", "=")
            )
            y = y0 - (n_sup + 1) * size + size * 0.1
            draw.bar(x0 + n_con * size + 2, y, size - 4, size - 4, kind)
            draw.text(x0 + n_con * size + size / 2, y + 23, sign, "bold", "middle")
    for n_sup in range(most + 1):
        draw.text(x0 - 10, y0 - (n_sup + 1) * size + 27, str(n_sup), "small", "end")
    draw.text(x0 + (most + 1) * size / 2, y0 + 36, "N_con, consumers", "small", "middle", "quiet")
    draw.text(x0 - 10, y0 - (most + 1) * size - 2, "N_sup, suppliers", "small", "middle", "quiet")
    for row, (kind, line, more) in enumerate((
        ("two", "+ grow:", "N_sup > β · N_con"), ("pale", "= keep", ""), ("one", "\u2212 shrink:", "N_sup < S_low"),
    )):  # fmt: skip
        draw.bar(810, 112 + row * 56, 14, 14, kind)
        draw.text(830, 124 + row * 56, line, "small bold")
        draw.text(810, 142 + row * 56, more, "small", colour="quiet")
    draw.text(
        936,
        362,
        "Growing is tested first. The default, guarded, adds: a wish must last, and whoever stays must bear the load.",
        "small",
        "end",
        "quiet",
    )
    return draw


DRAWINGS: Final = {"way-of-a-tuple": way_of_a_tuple, "slots": slots, "a-move": a_move, "beta-rule": beta_rule}

if __name__ == "__main__":
    for name, made in DRAWINGS.items():
        (IMAGES / f"{name}.svg").write_text(str(made()))
