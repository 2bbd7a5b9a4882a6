"""Random producers: who sends which rows when. Every row has a number that is unique in its stream.

Row 2007 of a stream is the eighth row of its producer 2, so that a reader of a story knows where it came from.

The first producer of a stream is there from the beginning and ends last, so that its stream is still open when the
others come. They may join in the middle of the run, fall silent for longer than the idle timeout, return (with rows of
the time in which they were silent, or of now) and end early.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from joinery.model.ids import ProducerId
from joinery.simulate.process import START_NS
from joinery.simulate.schedule import MS, Batch, Script
from tests.simulation.draws import Draw
from tests.simulation.queries import Query, idle_ns, lateness_ms

PER_MS: Final = {"ms": 1, "us": 1_000, "ns": 1_000_000}
ORIGIN_MS: Final = START_NS // MS
"""What clocks show when a run begins: event times are near the times of arrival."""
TAIL_MS, TAIL_ROWS = 1500, 18
TAIL_FROM_NS: Final = 1200 * MS
KEYS: Final = (3, 7, 11, 20, 42, 5, 8, 1000)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the producers of one schedule have in common."""

    horizon_ms: int
    """When about all is sent."""
    keys: tuple[int, ...]
    """Drawn from with repetition: few are frequent."""
    null_keys: float
    speed: int
    """Event time runs so many times faster than the clock."""
    late: float
    """Share of rows that come after their time."""


def random_traffic(draw: Draw, query: Query) -> tuple[Traffic, tuple[Script, ...]]:
    """The producers of a query."""
    by_arrival = any("time" not in stream for stream in query["streams"])
    pool = draw.shuffled(KEYS)[: draw.between(1, len(KEYS))]
    traffic = Traffic(
        horizon_ms=draw.between(120, 500),
        keys=tuple(key for place, key in enumerate(pool) for _ in range(max(1, 6 - 2 * place))),
        null_keys=0.08 if draw.chance(0.3) else 0.0,
        speed=1 if by_arrival else draw.pick((1, 1, 1, 2, 5)),
        late=0.06 if draw.chance(0.5) else 0.0,
    )
    rows = draw.between(40, 90)
    shares = [draw.pick((1, 1, 2, 4)) for _ in query["streams"]]
    scripts: list[Script] = []
    has_tail = draw.chance(0.1)
    for place, stream in enumerate(query["streams"]):
        scripts += _stream(draw, traffic, place, stream, max(3, rows * shares[place] // sum(shares)), has_tail)
    return traffic, tuple(scripts)


def _stream(
    draw: Draw, traffic: Traffic, place: int, stream: dict[str, Any], rows: int, has_tail: bool
) -> list[Script]:
    count = draw.weighted({1: 0.5, 2: 0.35, 3: 0.15})
    scripts = [_producer(draw, traffic, place, stream, number, max(1, rows // count)) for number in range(count)]
    last = max(script.batches[-1].at_ns for script in scripts)
    first, tail = scripts[0], _tail(draw, traffic, stream, last // MS) if has_tail else []
    end = Batch((tail[-1].at_ns if tail else last) + draw.between(5, 60) * MS, None, end=True)
    scripts[0] = Script(place, first.name, (*first.batches[:-1], *tail, end))
    return [replace(script, is_named=not draw.chance(0.08)) for script in scripts]


def _tail(draw: Draw, traffic: Traffic, stream: dict[str, Any], after: int) -> list[Batch]:
    """A row now and then, when all else is over: what was begun must end while the query goes on."""
    batches, before = [], after
    for number in range(TAIL_ROWS):
        at = before + TAIL_MS // TAIL_ROWS
        times = _times(draw, traffic, stream, before, at, 1)
        batches.append(Batch(at * MS, _rows(draw, traffic, stream, times, 900 + number)))
        before = at
    return batches


def _producer(draw: Draw, traffic: Traffic, place: int, stream: dict[str, Any], number: int, rows: int) -> Script:
    """One script; its last batch is nothing but the end, or (not of the first producer) rows and the end."""
    start = draw.between(0, 20) if number == 0 or draw.chance(0.6) else draw.between(20, traffic.horizon_ms)
    end = max(start + 20, traffic.horizon_ms)
    lag = draw.pick((0, 0, 5, 40)) if number else 0
    sizes: list[int] = []
    while sum(sizes) < rows:
        sizes.append(min(draw.small(8), rows - sum(sizes)))
    moments = sorted(draw.between(start, end) for _ in sizes)
    moments[0] = start
    silence = _silence(draw, stream)
    quiet_from = draw.between(1, len(moments)) if silence else len(moments)
    behind = draw.chance(0.4)
    batches, sent, before = [], 0, start
    for turn, (size, at) in enumerate(zip(sizes, moments, strict=True)):
        shift = silence if turn >= quiet_from else 0
        reached = at + (0 if behind else shift)
        times = _times(draw, traffic, stream, before, reached - lag, size)
        batches.append(Batch((at + shift) * MS, _rows(draw, traffic, stream, times, number * 1000 + sent)))
        sent, before = sent + size, reached - lag
    return Script(place, ProducerId(f"{stream['name']}-{number}"), tuple(_ended(draw, batches, number)))


def _silence(draw: Draw, stream: dict[str, Any]) -> int:
    idle = idle_ns(stream)
    if not draw.chance(0.3):
        return 0
    return 120 if idle is None or idle > 1000 * MS else idle // MS + draw.between(5, 80)


def _ended(draw: Draw, batches: list[Batch], number: int) -> list[Batch]:
    last = batches[-1]
    if number and draw.chance(0.5):
        return [*batches[:-1], Batch(last.at_ns, last.rows, end=True)]
    return [*batches, Batch(last.at_ns + draw.between(1, 80) * MS, None, end=True)]


def _times(draw: Draw, traffic: Traffic, stream: dict[str, Any], after: int, upto: int, size: int) -> list[int]:
    """Event times of a batch in ms: rising on the whole, out of order within the lateness, now and then late."""
    after, upto = after * traffic.speed, max(after, upto) * traffic.speed
    lateness = lateness_ms(stream)
    times = []
    for time in sorted(draw.between(after, upto) for _ in range(size)):
        behind = draw.between(0, lateness // 2) if lateness and draw.chance(0.4) else 0
        if draw.chance(traffic.late):
            behind = lateness + draw.between(1, 120)
        times.append(ORIGIN_MS + time - behind)
    return times


def _rows(draw: Draw, traffic: Traffic, stream: dict[str, Any], times: list[int], first: int) -> pa.RecordBatch:
    unit = PER_MS[stream["time"]["unit"]] if "time" in stream else 1
    fine = draw.between(0, unit - 1) if unit > 1 and draw.chance(0.5) else 0
    keys = [None if draw.chance(traffic.null_keys) else draw.pick(traffic.keys) for _ in times]
    texts = stream["schema"]["k"] == "string"
    return pa.RecordBatch.from_pydict(
        {
            "k": pa.array([str(key) if texts and key is not None else key for key in keys], _KEY[texts]),
            "n": pa.array(range(first, first + len(times)), pa.int64()),
            "ts": pa.array([time * unit + fine for time in times], pa.int64()),
            "v": pa.array([draw.pick((0, 1, 2, 3, None)) for _ in times], pa.int64()),
        }
    )


_KEY: Final = {False: pa.int64(), True: pa.string()}
