"""Random steps of an operator, and random faults.

`POINTS` says before which effects a process of each role can die, and how far to count them: a crash before the 40th
commit of a run that has 20 would test nothing. `test_schedules.py` holds the list against the effects that the
machines really have.
"""

from typing import Any, Final

from joinery.machine.effects import Effect
from joinery.machine.messages import ChangeSpec
from joinery.model.quantities import parse_window
from joinery.simulate.schedule import (
    MS,
    AddWorker,
    BreakConnection,
    Change,
    Crash,
    CrashPoint,
    DrainLast,
    Fault,
    MoveGroup,
    Pause,
    Role,
    Script,
    Step,
    StoreDown,
)
from tests.simulation.draws import Draw
from tests.simulation.queries import (
    DEFAULT_IDLE_NS,
    Query,
    has_count,
    idle_ns,
    lateness_ms,
    random_idle,
    random_lateness_ms,
    random_windows,
)

FOREVER_NS: Final = 2**63 - 1

POINTS: Final[dict[Role, dict[Effect, int]]] = {
    Role.GATEWAY: {
        Effect.OPEN: 2,
        Effect.APPEND: 16,
        Effect.ACKNOWLEDGE: 16,
        Effect.SEND: 40,
        Effect.EXCHANGE: 24,
        Effect.MAP: 5,
        Effect.TRIM: 6,
        Effect.TIMER: 40,
        Effect.STOP: 1,
    },
    Role.COLLECTOR: {
        Effect.OPEN: 3,
        Effect.SEND: 24,
        Effect.TAKE: 20,
        Effect.STAGE: 12,
        Effect.COMMIT: 12,
        Effect.FINISH: 1,
        Effect.STOP: 1,
    },
    Role.WORKER: {
        Effect.SEND: 24,
        Effect.JOIN: 24,
        Effect.EMIT: 16,
        Effect.BLOCK: 6,
        Effect.HEAD: 6,
        Effect.READ: 6,
        Effect.TRIM: 5,
        Effect.TIMER: 24,
        Effect.STOP: 1,
    },
    Role.PRODUCER: {Effect.SEND: 8, Effect.STOP: 1},
}
IN_A_MOVE: Final[dict[Role, tuple[str, ...]]] = {
    Role.GATEWAY: ("CheckpointNow", "Preload", "Owners", "Release", "Assign"),
    Role.COLLECTOR: ("Vector", "Vector", "Resume", "CollectorHello"),
    Role.WORKER: ("Checkpointed", "Preloaded", "Holding", "WorkerHello"),
}
"""Messages of a planned move, and of a new owner: crashes just before one of them."""
ANY_EFFECT: Final = 120
"""Crashes before the n-th effect of any kind: up to this n."""
ROLES: Final = {Role.GATEWAY: 0.32, Role.WORKER: 0.34, Role.COLLECTOR: 0.26, Role.PRODUCER: 0.08}


def random_steps(
    draw: Draw, query: Query, horizon_ms: int, workers: int, *, is_operated: bool = False
) -> tuple[Step, ...]:
    """What an operator does during the run; workers come and go by steps only if its machine does not decide that."""
    steps: list[Step] = []
    if draw.chance(0.75):
        for _ in range(draw.between(1, 6)):
            at_ns = draw.between(5, horizon_ms) * MS
            kind = "move" if is_operated else draw.weighted({"move": 0.6, "add": 0.22, "drain": 0.18})
            if kind == "add":
                steps.append(AddWorker(at_ns))
            elif kind == "drain":
                steps.append(DrainLast(at_ns))
            else:
                group = draw.between(0, query["partitions"] - 1)
                steps.append(MoveGroup(at_ns, group, draw.between(0, workers)))
    if draw.chance(0.4):
        steps += _changes(draw, query, horizon_ms)
    return tuple(sorted(steps, key=lambda step: step.at_ns))


def _changes(draw: Draw, query: Query, horizon_ms: int) -> list[Step]:
    moments = sorted(draw.between(10, horizon_ms) for _ in range(draw.weighted({1: 0.6, 2: 0.3, 3: 0.1})))
    windows = [stream["window"] for stream in query["streams"]]
    late = [lateness_ms(stream) for stream in query["streams"]]
    idle = [idle_ns(stream) for stream in query["streams"]]
    changes: list[Step] = []
    for version, at in enumerate(moments, start=FIRST_VERSION + 1):
        what = draw.weighted({"windows": 0.55, "lateness": 0.15, "idle": 0.05, "all": 0.25})
        if what in ("windows", "all"):
            windows = random_windows(draw, len(windows), has_count(query))
        if what in ("lateness", "all"):
            late = [_lateness(draw, query, stream) for stream in query["streams"]]
        if what in ("idle", "all"):
            idle = [_idle(draw, stream) for stream in query["streams"]]
        changes.append(Change(at * MS, _spec(version, windows, late, idle)))
    return changes


FIRST_VERSION: Final = 0
"""Of a query before its first change."""


def _spec(version: int, windows: list[Any], late: list[int], idle: list[int | None]) -> ChangeSpec:
    return ChangeSpec(
        version,
        tuple(parse_window(window) for window in windows),
        tuple(ms * MS for ms in late),
        tuple(FOREVER_NS if ns is None else ns for ns in idle),
    )


def _lateness(draw: Draw, query: Query, stream: dict[str, Any]) -> int:
    """With a fixed alignment it stays within it: an alignment below the lateness is refused."""
    if "time" not in stream:
        return 0
    most = int(query["alignment"].removesuffix("ms")) if "alignment" in query else 1000
    return min(most, random_lateness_ms(draw))


def _idle(draw: Draw, stream: dict[str, Any]) -> int | None:
    if "time" not in stream:
        return DEFAULT_IDLE_NS
    text = random_idle(draw)
    return None if text == "never" else int(text.removesuffix("ms")) * MS


def random_faults(
    draw: Draw, scripts: tuple[Script, ...], horizon_ms: int, workers: int, subscribers: int = 0
) -> tuple[Fault, ...]:
    """None to four faults."""
    count = draw.weighted({0: 0.15, 1: 0.35, 2: 0.25, 3: 0.15, 4: 0.1})
    return tuple(_fault(draw, scripts, horizon_ms, workers, subscribers) for _ in range(count))


def _fault(draw: Draw, scripts: tuple[Script, ...], horizon_ms: int, workers: int, subscribers: int) -> Fault:
    match draw.weighted({"crash": 0.48, "move": 0.14, "pause": 0.16, "break": 0.14, "store": 0.08}):
        case "crash":
            return Crash(_point(draw, scripts, workers), draw.between(1, 80) * MS)
        case "move":
            return _in_a_move(draw, workers)
        case "pause":
            replaced = draw.between(5, 100) * MS if draw.chance(0.6) else None
            return Pause(_point(draw, scripts, workers), draw.between(5, 300) * MS, replaced)
        case "break":
            one, other = _connection(draw, scripts, workers, subscribers)
            return BreakConnection(draw.between(1, horizon_ms + 100) * MS, one, other)
        case _:
            return StoreDown(draw.between(1, horizon_ms + 100) * MS, draw.between(2, 120) * MS)


def _in_a_move(draw: Draw, workers: int) -> Fault:
    """A crash, or at times a pause that outlives its replacement, inside a move or while owners change."""
    role = draw.weighted({Role.GATEWAY: 0.35, Role.COLLECTOR: 0.3, Role.WORKER: 0.35})
    ordinal = draw.between(0, workers - 1) if role is Role.WORKER else 0
    at = CrashPoint(role, ordinal, Effect.SEND, draw.small(6), draw.pick(IN_A_MOVE[role]))
    if draw.chance(0.2):
        return Pause(at, draw.between(40, 300) * MS, draw.between(5, 40) * MS)
    return Crash(at, draw.between(1, 80) * MS)


def _point(draw: Draw, scripts: tuple[Script, ...], workers: int) -> CrashPoint:
    """A producer without a name is left alone: when it is started again it sends all its rows again, as another."""
    role = draw.weighted(ROLES)
    named = [place for place, script in enumerate(scripts) if script.is_named]
    if role is Role.PRODUCER and not named:
        role = Role.GATEWAY
    ordinal = draw.between(0, workers - 1) if role is Role.WORKER else 0
    ordinal = draw.pick(named) if role is Role.PRODUCER else ordinal
    if role is not Role.PRODUCER and draw.chance(0.1):
        return CrashPoint(role, ordinal, None, draw.between(1, ANY_EFFECT))
    effect = draw.pick(list(POINTS[role]))
    return CrashPoint(role, ordinal, effect, draw.small(POINTS[role][effect]))


def _connection(draw: Draw, scripts: tuple[Script, ...], workers: int, subscribers: int) -> tuple[str, str]:
    worker = f"worker-{draw.between(0, workers - 1)}"
    return draw.weighted(
        {
            (worker, "gateway"): 0.35,
            (worker, "collector"): 0.35,
            ("collector", "gateway"): 0.15,
            (draw.pick(scripts).name, "gateway"): 0.15,
            **({("subscriber-0", "collector"): 0.5} if subscribers else {}),
        }
    )
