"""`python -m docs._site.sequences`: the drawings of docs/protocol.md, who says what to whom, as SVG into docs/images/.

A drawing is written as lines: `A > B: text` is a message, `A < B: text` an answer, `A = text` what one does by itself,
`A - B: text` a note over both. Those who talk stand above, by their letters.
"""

import re
from typing import Final

from docs._site.drawings import IMAGES, WIDTH, Drawing

_TOP, _STEP, _EDGE = 64, 34, 90
_LINE: Final = re.compile(r"(\w+) (?:([<>-]) (\w+): |= )(.*)")

SEQUENCES: Final = {
    "protocol-batch": (
        "The way of a batch: pushed, recorded, joined, committed, trimmed",
        {"P": "producer", "G": "gateway", "L": "log", "W": "worker", "C": "collector"},
        """
        P > G: Push(sequence 7)
        G > L: append record n (rows, late flags, watermarks)
        G < L: durable
        P < G: Acknowledge(7, n)
        G > W: Exchange(groups, (a, b], marks at b) in its slot
        W = join, then close, then expire
        W > C: Results(groups, a, b, map versions)
        G < W: Credit
        C = take if a = taken and the version is current
        C = every sink stages commit c
        C = one write: c, {group: b}, what of each sink is valid
        W < C: Committed
        G < C: Committed
        G > W: Trim(group: newest tag ≤ committed)
        """,
    ),
    "protocol-move": (
        "A planned move of a group from a supplier to a consumer",
        {"A": "supplier", "G": "gateway", "B": "consumer", "K": "checkpoints", "C": "collector"},
        """
        A < G: CheckpointNow(group)
        A > K: increment, then head under its version
        A > G: Checkpointed(tag)
        G > B: Preload(group)
        B > K: read, claim nothing
        G < B: Preloaded(tag)
        G - G: waits until tag ≤ committed(group)
        G = map version v is durable
        A < G: Release(group)
        G > C: Owners(group: v)
        C = ends its commit, drops what else it took
        G < C: Vector(committed)
        G > B: Assign(group, v, silent up to committed)
        B > K: read the rest, claim under v: A's heads are refused
        G < B: Holding(received = tag)
        G > B: Exchange (tag, committed], joined in silence
        G > B: Exchange (committed, b]
        B > C: Results(a = committed, v)
        """,
    ),
    "protocol-gateway-restart": (
        "A gateway that is started again",
        {"L": "log", "G": "gateway (new)", "C": "collector", "W": "worker"},
        """
        L < G: raise the term, read head, records, map
        G < W: WorkerHello(groups, versions, newest tags, last record received)
        G < C: CollectorHello
        G > C: Owners(versions)
        G < C: Vector(committed)
        G - W: held under the right version: go on after "received"
        G - W: else: a new map version, and the way above
        """,
    ),
    "protocol-collector-restart": (
        "A collector that is started again",
        {"R": "commits", "C": "collector (new)", "W": "worker", "G": "gateway"},
        """
        R < C: raise the term, read the last commit
        C = sinks undo what it does not make valid
        C > G: CollectorHello
        C < G: Owners(versions)
        C < W: WorkerHello
        C > W: Resume(taken = committed)
        C < W: Results that it kept after that
        W > G: ResultsLost(groups) if some are no longer kept
        C - G: those groups are recovered: a new map version, and the way above
        """,
    ),
}  # fmt: skip


def drawn(title: str, names: dict[str, str], text: str) -> Drawing:
    """Those who talk as lines from above, and what they say in its order."""
    lines = [line.strip() for line in text.strip().splitlines()]
    steps = [step for line in lines if (step := _LINE.fullmatch(line))]
    height = _TOP + _STEP * len(steps) + 24
    draw = Drawing(title, "; ".join(lines), height)
    apart = (WIDTH - 2 * _EDGE) / (len(names) - 1)
    places = {letter: _EDGE + apart * number for number, letter in enumerate(names)}
    for letter, name in names.items():
        draw.line("thin", (places[letter], 46), (places[letter], height - 12))
        draw.box(places[letter] - 62, 14, 124, 32, name)
    for number, step in enumerate(steps):
        _draw(draw, places, step, _TOP + _STEP * number + 20)
    return draw


def _draw(draw: Drawing, places: dict[str, float], step: re.Match[str], y: float) -> None:
    first, sign, second, text = step.groups()
    x = places[first]
    if sign is None:
        draw.bar(x - 4, y - 14, 8, 20, "pale")
        left = x > WIDTH - 2 * _EDGE
        draw.text(x - 10 if left else x + 10, y, text, "small", "end" if left else "start")
        return
    other = places[second]
    middle = (x + other) / 2
    if sign == "-":
        half = max(abs(other - x) / 2 + 20, 4 * len(text))
        draw.box(middle - half, y - 17, 2 * half, 24, kind="store")
        draw.text(middle, y, text, "small", "middle")
    else:
        start, end = (x, other) if sign == ">" else (other, x)
        draw.arrow(start, y + 5, end, y + 5)
        wide = 3.2 * len(text)  # half of a text's width, about: it must not leave the ground
        draw.text(min(max(middle, wide + 8), WIDTH - wide - 8), y - 4, text, "small", "middle")


if __name__ == "__main__":
    for name, sequence in SEQUENCES.items():
        (IMAGES / f"{name}.svg").write_text(str(drawn(*sequence)))
