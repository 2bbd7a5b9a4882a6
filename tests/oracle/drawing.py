"""Rows from pictures: what a test draws is what it joins.

A line is a stream, a column a time, a letter a key; a capital letter is a late row, ? a row whose key is null, a dot
is nothing. Several rows of a stream at one time take several lines of it. The line t is a ruler. A picture is a record.

    t: 0123
    a: x..y
    b: .X.?
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from tests.oracle import naive
from tests.oracle.recorded import JoinType, Question, Row, Window, WindowChange

Times = tuple[int | None, ...]

STREAMS: Final = ("a", "b", "c", "d")


def recorded(*records: str) -> list[Row]:
    """The rows of the pictures, record by record."""
    rows: list[Row] = []
    positions: Counter[int] = Counter()
    for record, picture in enumerate(records):
        for line in picture.split("\n"):
            name, _, drawn = line.strip().partition(": ")
            if name not in STREAMS:
                continue
            stream = STREAMS.index(name)
            for time, letter in enumerate(drawn):
                if letter != ".":
                    key = None if letter == "?" else letter.lower()
                    values = {"key": key, "time": time}
                    rows.append(Row(stream, record, positions[stream], time, letter.isupper(), (key,), values))
                    positions[stream] += 1
    return rows


def asked(*windows: Window, type: JoinType = "inner", **more: object) -> Question:  # noqa: A002 - the spec's word
    """The question about such rows: streams a, b ... with columns key and time."""
    count = len(windows)
    return Question(
        streams=STREAMS[:count],
        columns=(("time", "key"),) * count,
        keys=(("key",),) * count,
        windows=windows,
        type=type,
        **more,
    )


def answered(
    question: Question, rows: Sequence[Row], changes: Sequence[WindowChange] = (), final: Sequence[int] | None = None
) -> list[Times]:
    """The first oracle's results, each as the times of its members, in order."""
    times = {(row.stream, row.position): row.time for row in rows}
    results = [
        tuple(None if at is None else times[stream, at] for stream, at in enumerate(result))
        for result in naive.join(question, rows, changes, final)
    ]
    return sorted(results, key=lambda one: [(time is None, time or 0) for time in one])
