"""What a schedule's query asks, in the oracle's words; written from the YAML, without the product's parser."""

from collections.abc import Sequence
from typing import Any, Final

from joinery.model import quantities
from tests.oracle.conditions import Phrase, phrases
from tests.oracle.recorded import Count, JoinType, Question, Time, Unbounded, Window
from tests.simulation.queries import COLUMNS, Query

UNIT_NS: Final = {"ms": 1_000_000, "us": 1_000, "ns": 1}
_UNBOUNDED_NS: Final = 2**62


def question_of(query: Query) -> Question:
    """The question of a query that `random_query` drew."""
    streams = tuple(stream["name"] for stream in query["streams"])
    kind: JoinType = query["join"]["type"]
    shown = streams[:1] if kind in ("semi", "anti") else streams
    where = _phrase(query["join"].get("where"), streams)
    filter_ = _phrase(query.get("filter"), shown)
    return Question(
        streams=streams,
        columns=(COLUMNS,) * len(streams),
        keys=(("k",),) * len(streams),
        windows=tuple(_window(stream["window"]) for stream in query["streams"]),
        type=kind,
        where=where and where.holds,
        filter=filter_ and filter_.holds,
        select=None if "select" not in query else tuple(_selected(text) for text in query["select"]),
    )


def time_unit_ns(stream: dict[str, Any]) -> int | None:
    """Nanoseconds of one step of the time column; None: the time of arrival counts."""
    return UNIT_NS[stream["time"]["unit"]] if "time" in stream else None


def in_oracles_words(windows: Sequence[quantities.Window]) -> tuple[Window, ...]:
    """The windows of a recorded change."""
    found: list[Window] = []
    for window in windows:
        if isinstance(window, quantities.CountWindow):
            found.append(Count(window.rows))
        else:
            found.append(Unbounded() if window.length_ns >= _UNBOUNDED_NS else Time(window.length_ns))
    return tuple(found)


def _window(text: Any) -> Window:
    if isinstance(text, dict):
        return Count(text["count"])
    return Unbounded() if text == "unbounded" else Time(int(text.removesuffix("ms")) * UNIT_NS["ms"])


def _phrase(text: str | None, streams: Sequence[str]) -> Phrase | None:
    return None if text is None else next(phrase for phrase in phrases(streams) if phrase.sql == text)


def _selected(text: str) -> tuple[str, str, str | None]:
    source, _, name = text.partition(" as ")
    stream, _, column = source.partition(".")
    return stream, column, name or None
