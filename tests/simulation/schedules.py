"""Random schedules: a query, its producers, what an operator does, and what goes wrong, all from one seed.

`kinds` names what a schedule exercises; the tests hold that nothing is left out of a few hundred of them.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from joinery.simulate.schedule import MS, Batch, Change, Crash, Fault, Pause, Role, Schedule, Script
from tests.simulation.disturbances import FOREVER_NS, random_faults, random_steps
from tests.simulation.draws import Draw
from tests.simulation.queries import random_query
from tests.simulation.traffic import TAIL_FROM_NS, random_traffic

JUMPS_MS: Final = (50, 500, 2_000, 40_000)
"""How far clocks jump at most in some schedules."""
AGAIN: Final = 500_000
"""Added to the numbers of rows that a producer sends when it is started again, if they are others."""
DEADLINE_NS: Final = 5_000 * MS
"""A run takes about a second of virtual time; one that is not over by then is stuck."""


def random_schedule(seed: int) -> Schedule:
    """The schedule of a seed."""
    draw = Draw(seed)
    query = random_query(draw)
    traffic, scripts = random_traffic(draw, query)
    workers = draw.weighted({1: 0.2, 2: 0.4, 3: 0.3, 4: 0.1})
    query["replicas"] = workers
    is_operated = draw.chance(0.12)
    if is_operated:
        query["scaling"] = _eager_scaling(draw)
    subscribers = draw.weighted({0: 0.85, 1: 0.1, 2: 0.05})
    faults = random_faults(draw, scripts, traffic.horizon_ms, workers, subscribers)
    schedule = Schedule(
        seed=seed,
        query=query,
        scripts=_with_other_rows(draw, scripts, faults),
        workers=workers,
        steps=random_steps(draw, query, traffic.horizon_ms, workers, is_operated=is_operated),
        faults=faults,
        retain_bytes=draw.pick((0, 200, 1000)) if draw.chance(0.3) else 1 << 25,
        subscribers=subscribers,
        is_operated=is_operated,
        jump_ns=draw.pick(JUMPS_MS) * MS if draw.chance(0.15) else 3 * MS,
        deadline_ns=DEADLINE_NS,
    )
    if draw.chance(0.1):
        query["sinks"] = [{"file": {"path": "results.parquet"}}, {"count": {}}]
    return schedule


def _eager_scaling(draw: Draw) -> dict[str, Any]:
    """The degree follows what little load there is, with next to no patience."""
    patience = {"stabilization": f"{draw.pick((0, 30, 100))}ms"}
    return {
        "supplierThreshold": draw.pick((0.005, 0.02)),
        "consumerThreshold": 0.0,
        "rule": draw.pick(("guarded", "paper")),
        "target": draw.pick((0.05, 0.3, 0.8)),
        "max": 5,
        "scaleUp": patience,
        "scaleDown": patience,
    }


def _with_other_rows(draw: Draw, scripts: tuple[Script, ...], faults: tuple[Fault, ...]) -> tuple[Script, ...]:
    """Some producers that are started again send other rows under the same numbers of batches."""
    struck = {f.at.ordinal for f in faults if isinstance(f, Crash | Pause) and f.at.role is Role.PRODUCER}
    chosen = {place for place in sorted(struck) if draw.chance(0.5)}
    return tuple(
        replace(script, again=tuple(map(_renumbered, script.batches))) if place in chosen else script
        for place, script in enumerate(scripts)
    )


def _renumbered(batch: Batch) -> Batch:
    if batch.rows is None:
        return batch
    place = batch.rows.schema.get_field_index("n")
    numbers = pa.array([number + AGAIN for number in batch.rows.column("n").to_pylist()], pa.int64())
    return replace(batch, rows=batch.rows.set_column(place, "n", numbers))


def kinds(schedule: Schedule) -> set[str]:
    """What a schedule exercises, in words."""
    query = schedule.query
    return {
        f"join {query['join']['type']}",
        f"method {query['join'].get('method', 'hash')}",
        f"streams {len(query['streams'])}",
        f"workers {schedule.workers}",
        f"faults {len(schedule.faults)}",
        *(
            word
            for word in ("filter", "select", "output", "alignment", "worker", "results", "scaling", "sinks")
            if word in query
        ),
        *(["few results kept"] if schedule.retain_bytes <= 1000 else []),
        *([f"subscribers {schedule.subscribers}"] if schedule.subscribers else []),
        *(["operated"] if schedule.is_operated else []),
        *([f"clocks jump by {schedule.jump_ns // MS} ms"] if schedule.jump_ns > 3 * MS else []),
        *(["where"] if "where" in query["join"] else []),
        *(["exact order"] if query.get("output", {}).get("disorder") == 0 else []),
        *(f"key {stream['schema']['k']}" for stream in query["streams"]),
        *(word for stream in query["streams"] for word in _stream_kinds(stream)),
        *(word for step in schedule.steps for word in _step_kinds(step)),
        *(word for fault in schedule.faults for word in _fault_kinds(fault)),
        *_traffic_kinds(schedule),
    }


def _stream_kinds(stream: dict[str, Any]) -> Iterator[str]:
    window = stream["window"]
    if isinstance(window, dict):
        yield "window count"
    elif window == "unbounded":
        yield "window unbounded"
    else:
        length = int(window.removesuffix("ms"))
        yield "window zero" if length == 0 else "window small" if length <= 40 else "window large"
    if "time" not in stream:
        yield "arrival time"
        return
    yield "lateness zero" if stream["time"]["lateness"] == "0ms" else "lateness"
    if stream["time"]["idleTimeout"] == "never":
        yield "never idle"


def _step_kinds(step: object) -> Iterator[str]:
    yield f"step {type(step).__name__}"
    if isinstance(step, Change) and FOREVER_NS in step.spec.idle_timeout_ns:
        yield "step to never idle"


def _fault_kinds(fault: object) -> Iterator[str]:
    yield f"fault {type(fault).__name__}"
    if isinstance(fault, Crash | Pause):
        yield f"fault {type(fault).__name__} of {fault.at.role}"
        yield f"{fault.at.role} before {fault.at.message or fault.at.effect or 'any effect'}"
    if isinstance(fault, Pause):
        yield "pause with a replacement" if fault.replaced_after_ns is not None else "pause without a replacement"


def _traffic_kinds(schedule: Schedule) -> Iterator[str]:
    for stream in range(len(schedule.query["streams"])):
        own = [script for script in schedule.scripts if script.stream == stream]
        yield f"producers {len(own)}"
        if any(script.batches[0].at_ns > own[0].batches[0].at_ns + 40 * MS for script in own):
            yield "a producer joins later"
    for script in schedule.scripts:
        rows = [batch.rows for batch in script.batches if batch.rows is not None]
        if not script.is_named:
            yield "a producer without a name"
        if script.again:
            yield "a producer with other rows"
        if len(script.batches) > 2 and script.batches[-2].at_ns > TAIL_FROM_NS:
            yield "a long tail"
        yield "end alone" if script.batches[-1].rows is None else "end with rows"
        if any(one.column("k").null_count for one in rows):
            yield "null keys"
        yield from (f"rows {one.num_rows}" for one in rows)
