"""Random schedules: a query, its producers, what an operator does, and what goes wrong, all from one seed.

`kinds` names what a schedule exercises; the tests hold that nothing is left out of a few hundred of them.
"""

from collections.abc import Iterator
from typing import Any, Final

from joinery.simulate.schedule import MS, Change, Crash, Pause, Schedule
from tests.simulation.disturbances import FOREVER_NS, random_faults, random_steps
from tests.simulation.draws import Draw
from tests.simulation.queries import random_query
from tests.simulation.traffic import random_traffic

DEADLINE_NS: Final = 5_000 * MS
"""A run takes about a second of virtual time; one that is not over by then is stuck."""


def random_schedule(seed: int) -> Schedule:
    """The schedule of a seed."""
    draw = Draw(seed)
    query = random_query(draw)
    traffic, scripts = random_traffic(draw, query)
    workers = draw.weighted({1: 0.2, 2: 0.4, 3: 0.3, 4: 0.1})
    query["replicas"] = workers
    schedule = Schedule(
        seed=seed,
        query=query,
        scripts=scripts,
        workers=workers,
        steps=random_steps(draw, query, traffic.horizon_ms, workers),
        faults=random_faults(draw, scripts, traffic.horizon_ms, workers),
        retain_bytes=draw.pick((0, 200, 1000)) if draw.chance(0.3) else 1 << 25,
        deadline_ns=DEADLINE_NS,
    )
    if draw.chance(0.1):
        query["sinks"] = [{"file": {"path": "results.parquet"}}, {"count": {}}]
    return schedule


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
        yield f"{fault.at.role} before {fault.at.effect or 'any effect'}"
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
        yield "end alone" if script.batches[-1].rows is None else "end with rows"
        if any(one.column("k").null_count for one in rows):
            yield "null keys"
        yield from (f"rows {one.num_rows}" for one in rows)
