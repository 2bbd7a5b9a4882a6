"""A failed run as a person wants to read it: the query, who sent what, the faults, what happened, what is wrong."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from joinery.simulate.schedule import (
    MS,
    AddWorker,
    Batch,
    BreakConnection,
    Change,
    Crash,
    CrashPoint,
    DrainLast,
    MoveGroup,
    Pause,
    Role,
    Schedule,
    StoreDown,
)

MAX_BATCHES: Final = 40
MAX_EVENTS: Final = 60
SHOWN: Final = 25
"""The last events of a run that is stuck."""
MAX_WIDTH: Final = 170


def story(schedule: Schedule, outcome: Any, complaints: Sequence[str]) -> str:
    """All of it, in a screen or two."""
    events = [] if outcome is None else [str(event) for event in outcome.story]
    parts = [
        ("query", query_lines(schedule)),
        ("sent", list(_sent(schedule))),
        ("done to it", [*map(step_text, schedule.steps), *map(fault_text, schedule.faults)]),
        ("events", [event[:MAX_WIDTH] for event in relevant(events, complaints)]),
        ("wrong", list(complaints)),
    ]
    blocks = [f"{name}:\n" + "\n".join(f"  {line}" for line in lines) for name, lines in parts if lines]
    return f"seed {schedule.seed}\n" + "\n".join(blocks)


def query_lines(schedule: Schedule) -> list[str]:
    """The query in a few lines."""
    query = schedule.query
    lines = []
    for stream in query["streams"]:
        time = stream.get("time")
        clock = f"lateness {time['lateness']}, idle after {time['idleTimeout']}" if time else "arrival time"
        lines.append(f"{stream['name']}: window {stream['window']}, {clock}")
    join = query["join"]
    said = [f"{join['type']} join on k", *(f"{key} {join[key]}" for key in ("where", "method") if key in join)]
    said += [f"{key} {query[key]}" for key in ("filter", "select", "output", "alignment") if key in query]
    lines.append(", ".join(said))
    settings = {key: query[key] for key in ("worker", "scaling", "fineTuning", "results") if key in query}
    kept = f", {schedule.retain_bytes} bytes of results kept" if schedule.retain_bytes <= 1000 else ""
    lines.append(
        f"{schedule.workers} workers, {query['partitions']} partitions, epochs {query['epochs']['distribution']} and "
        f"{query['epochs']['reorganization']}, checkpoint every {query['checkpoint']['interval']}{kept}"
        + (f", {settings}" if settings else "")
        + (", the operator's machine decides the degree" if schedule.is_operated else "")
        + (f", {schedule.subscribers} subscribers" if schedule.subscribers else "")
        + (f", clocks jump by up to {schedule.jump_ns // MS} ms" if schedule.jump_ns > 3 * MS else "")
    )
    return lines


def _sent(schedule: Schedule) -> Iterator[str]:
    batches = sorted(
        ((batch.at_ns, script.name, batch) for script in schedule.scripts for batch in script.batches),
        key=lambda one: one[:2],
    )
    for at_ns, name, batch in batches[:MAX_BATCHES]:
        yield f"{at_ns / MS:7.1f} ms {name}: {_batch_text(batch)}"
    if len(batches) > MAX_BATCHES:
        yield f"... and {len(batches) - MAX_BATCHES} more batches"


def _batch_text(batch: Batch) -> str:
    rows = [] if batch.rows is None else batch.rows.to_pylist()
    texts = [f"n={row['n']} k={row['k']} ts={row['ts']} v={row['v']}" for row in rows]
    return "; ".join([*texts, *(["end"] if batch.end else [])])


def step_text(step: object) -> str:
    """What an operator does."""
    match step:
        case AddWorker():
            return f"{step.at_ns / MS:7.1f} ms a worker is added"
        case DrainLast():
            return f"{step.at_ns / MS:7.1f} ms the last worker is drained"
        case MoveGroup():
            return f"{step.at_ns / MS:7.1f} ms group {step.group} is to move to worker-{step.ordinal}"
        case Change():
            spec = step.spec
            windows = ", ".join(map(str, spec.windows))
            late = ", ".join(f"{ns // MS}ms" for ns in spec.lateness_ns)
            return f"{step.at_ns / MS:7.1f} ms change {spec.version}: windows {windows}; lateness {late}"
    return str(step)


def fault_text(fault: object) -> str:
    """What goes wrong."""
    match fault:
        case Crash():
            return f"crash {_point_text(fault.at)}, down for {fault.down_ns / MS:.0f} ms"
        case Pause():
            after = fault.replaced_after_ns
            new = "not replaced" if after is None else f"replaced after {after / MS:.0f} ms"
            return f"pause {_point_text(fault.at)}, for {fault.for_ns / MS:.0f} ms, {new}"
        case BreakConnection():
            return f"{fault.at_ns / MS:7.1f} ms the connection of {fault.one} and {fault.other} breaks"
        case StoreDown():
            return f"{fault.at_ns / MS:7.1f} ms Redis is down for {fault.for_ns / MS:.0f} ms"
    return str(fault)


def _point_text(point: CrashPoint) -> str:
    who = f"{point.role} {point.ordinal}" if point.role in (Role.WORKER, Role.PRODUCER) else str(point.role)
    return f"of {who} just before its {point.message or point.effect or 'effect'} no. {point.count}"


def relevant(events: Sequence[str], complaints: Sequence[str]) -> list[str]:
    """The events that matter: faults, changes of owners, and whoever names a row that is complained of; the last ones.

    A run that failed tells its last events itself.
    """
    if any(text.startswith(("failed", "broken")) for text in complaints):
        return []
    events = [event for event in events if not _DULL.search(event)]
    if any(text.startswith("stuck") for text in complaints):
        return [*(event for event in events[:-SHOWN] if _TURNS.search(event)), *events[-SHOWN:]]
    names = "|".join(sorted(set(re.findall(r"\bn=\d+", " ".join(complaints)))))
    named = re.compile(rf"\b({names})\b") if names else None
    chosen = [event for event in events if _TURNS.search(event) or (named and named.search(event))]
    if len(chosen) > MAX_EVENTS:
        return [*chosen[: MAX_EVENTS // 2], f"... {len(chosen) - MAX_EVENTS} more ...", *chosen[-MAX_EVENTS // 2 :]]
    return chosen


_DULL: Final = re.compile(r"> (TakeIncrements|MeasureState)|< (IncrementsTaken increments=\[\]|StateMeasured)")
_TURNS: Final = re.compile(
    r" ! |> WriteMap|> gateway: ResultsLost|< \w+: Assign|GatewayOpened|CollectorOpened|entries=.*SpecChange"
)
