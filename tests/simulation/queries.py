"""Random queries for simulated runs: every join type, kind of window, clock and condition, on a scale of milliseconds.

Virtual time is event time: a producer that sends at 120 ms sends rows of about 120 ms. Windows, lateness and silence
are measured on that scale, so that a run of half a second opens, closes and expires all of them.
"""

from collections.abc import Sequence
from typing import Any, Final

from tests.oracle.conditions import phrases
from tests.simulation.draws import Draw

STREAMS: Final = ("orders", "fulfilments", "returns")
TYPES: Final = {"inner": 0.3, "left": 0.16, "full": 0.15, "right": 0.13, "anti": 0.13, "semi": 0.13}
COLUMNS: Final = ("k", "n", "ts", "v")
"""Key, number (unique in its stream), time, value."""
DEFAULT_IDLE_NS: Final = 30_000_000_000
"""What the product takes for a stream of pushed rows that says nothing."""

Query = dict[str, Any]


def random_query(draw: Draw) -> Query:
    """One query, as YAML would hold it."""
    kind = draw.weighted(TYPES)
    count = 3 if kind == "inner" and draw.chance(0.35) else 2
    names = STREAMS[:count]
    key_type = draw.weighted({"int64": 0.8, "string": 0.2})
    arrival = [draw.chance(0.5) for _ in names] if draw.chance(0.2) else [False] * count
    streams = [
        _stream(draw, name, key_type, window, by_arrival)
        for name, window, by_arrival in zip(names, random_windows(draw, count), arrival, strict=True)
    ]
    query: Query = {"streams": streams, "join": _join(draw, kind, names)}
    shown = names[:1] if kind in ("semi", "anti") else names
    if draw.chance(0.15):
        query["filter"] = draw.pick(phrases(shown)).sql
    if draw.chance(0.2):
        query["select"] = _select(draw, shown)
    if draw.chance(0.2):
        query["output"] = {"order": "time", "disorder": draw.pick((0, 0, 1, 3, 8))}
    if draw.chance(0.15):
        longest = max(lateness_ms(stream) for stream in streams)
        query["alignment"] = f"{longest + draw.pick((1, 20, 300))}ms"
    return query | _settings(draw)


def random_windows(draw: Draw, count: int, in_order: bool | None = None) -> list[Any]:
    """Windows as a spec writes them; with a count among them or without one, if asked for."""
    counted = draw.chance(0.25) if in_order is None else in_order
    if not counted:
        if draw.chance(0.3):
            return [_time_window(draw)] * count
        return [_time_window(draw) for _ in range(count)]
    return draw.shuffled([_count_window(draw)] + [_any_window(draw) for _ in range(count - 1)])


def _any_window(draw: Draw) -> Any:
    return _count_window(draw) if draw.chance(0.5) else _time_window(draw)


def _count_window(draw: Draw) -> Any:
    return {"count": draw.pick((1, 2, 3, 5, 8, 20))}


def _time_window(draw: Draw) -> str:
    kind = draw.weighted({"zero": 0.12, "small": 0.4, "large": 0.36, "unbounded": 0.12})
    if kind == "unbounded":
        return "unbounded"
    length = {"zero": 0, "small": draw.between(1, 40), "large": draw.between(60, 400)}[kind]
    return f"{length}ms"


def _stream(draw: Draw, name: str, key_type: str, window: Any, by_arrival: bool) -> dict[str, Any]:
    stream: dict[str, Any] = {
        "name": name,
        "schema": {"k": key_type, "n": "int64", "ts": "int64", "v": "int64"},
        "window": window,
    }
    if not by_arrival:
        stream["time"] = {
            "column": "ts",
            "unit": draw.weighted({"ms": 0.7, "us": 0.15, "ns": 0.15}),
            "lateness": f"{random_lateness_ms(draw)}ms",
            "idleTimeout": random_idle(draw),
        }
    return stream


def random_lateness_ms(draw: Draw) -> int:
    """How far rows may be behind."""
    return draw.pick((0, 0, 3, 10, 30, 80))


def random_idle(draw: Draw) -> str:
    """How long a producer may be silent; at times shorter than the pauses between its batches, at times endless."""
    return "never" if draw.chance(0.1) else f"{draw.between(25, 200)}ms"


def _join(draw: Draw, kind: str, names: Sequence[str]) -> dict[str, Any]:
    join: dict[str, Any] = {"on": ["k"], "type": kind}
    if draw.chance(0.25):
        join["where"] = draw.pick(phrases(names)).sql
    if draw.chance(0.2):
        join["method"] = "nested-loop"
    return join


def _select(draw: Draw, shown: Sequence[str]) -> list[str]:
    every = [f"{stream}.{column}" for stream in shown for column in COLUMNS]
    chosen = draw.shuffled(every)[: draw.between(1, 4)]
    renamed = draw.between(0, 4)
    return [f"{column} as other" if place == renamed else column for place, column in enumerate(chosen)]


def _settings(draw: Draw) -> Query:
    """What must change no result: periods, partitions, sizes of buffers, fine tuning, thresholds of moves."""
    settings: Query = {
        "epochs": {
            "distribution": draw.pick(("auto", "20ms", "5ms", "12ms")),
            "reorganization": f"{draw.pick((20, 50, 120))}ms",
            "subgroups": draw.between(1, 3),
        },
        "partitions": draw.between(2, 6),
        "checkpoint": {"interval": f"{draw.pick((8, 20, 45, 120))}ms"},
    }
    if draw.chance(0.15):
        settings["worker"] = {"buffer": draw.pick(("0.3k", "1k", "4k"))}
    if draw.chance(0.25):
        settings["results"] = {"retain": draw.pick(("0.1k", "1k"))}
    if draw.chance(0.2):
        settings["scaling"] = {"supplierThreshold": 0.02, "consumerThreshold": 0.01, "rule": draw.pick(_RULES)}
    if draw.chance(0.5):
        settings["fineTuning"] = {"theta": draw.pick(("0.5k", "2k")), "block": "0.2k"}
    return settings


_RULES: Final = ("guarded", "paper")


def lateness_ms(stream: dict[str, Any]) -> int:
    """The lateness of a stream of such a query."""
    return int(stream["time"]["lateness"].removesuffix("ms")) if "time" in stream else 0


def idle_ns(stream: dict[str, Any]) -> int | None:
    """The idle timeout of a stream of such a query; None: never."""
    text = stream["time"]["idleTimeout"] if "time" in stream else f"{DEFAULT_IDLE_NS // 10**6}ms"
    return None if text == "never" else int(text.removesuffix("ms")) * 10**6


def has_count(query: Query) -> bool:
    """Whether the query runs in order."""
    return any(isinstance(stream["window"], dict) for stream in query["streams"])
