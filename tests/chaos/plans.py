"""A chaos run is a function of its seed: the query, the rows that each producer pushes, and the harm that is done.

What the seed cannot fix is the exact moment at which a signal meets a process. So a failing seed is run again with the
same query, rows and faults, and the interleaving differs a little each time: replay it a few times.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

GRACE_S = 0.4
"""No harm is done in the first moments: a run that never began tells nothing."""
EPOCH_S = 1.0
"""t_r; a worker that is silent for one and a half of it is lost."""
MOST_KILLS = 7
"""Of one process; `children.MOST_CRASHES` in a minute are too many by design."""
LONG_S, LONG_FAULTS = 50.0, 30
"""The long run."""
KINDS = ("inner", "left", "right", "full", "semi", "anti")
MOMENTS: Mapping[str, tuple[str, ...]] = {
    "any": ("worker", "worker", "worker", "gateway", "gateway", "collector", "collector", "redis", "redis", "watcher"),
    "move": ("worker", "worker", "gateway", "collector", "redis"),
    "handover": ("worker", "worker", "gateway", "collector", "redis"),
    "checkpoint": ("worker", "worker", "redis"),
    "commit": ("collector", "collector", "redis"),
    "record": ("gateway", "gateway", "redis"),
    "rewrite": ("redis", "redis", "gateway"),
    "start": ("gateway", "collector", "worker", "redis"),
    "end": ("collector", "collector", "gateway", "redis", "worker"),
}
"""When a fault happens, and whom it may meet. rewrite: Redis makes its file anew; end: every producer has ended."""
INSIDE = (*("any",) * 4, "move", "move", "handover", "handover", "checkpoint", "commit", "record", "rewrite")
"""How often each moment is drawn, between start and end."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Processes that are killed, or stopped for a while, together."""

    at_s: float
    """Since the first rows were recorded; at the start and at the end it says nothing."""
    victims: tuple[str, ...]
    """gateway, collector, redis, watcher, worker-N."""
    stop_s: float | None
    """SIGSTOP, and SIGCONT after so long; None: kill -9."""
    moment: str = "any"
    """What must be under way (`MOMENTS`)."""
    delay_s: float = 0.0
    """After the moment was seen."""
    settles: bool = True
    """Whether the run may come back before the next fault."""

    def __str__(self) -> str:
        how = "kill" if self.stop_s is None else f"stop for {self.stop_s:.2f} s"
        when = "" if self.moment == "any" else f" at a {self.moment} + {self.delay_s * 1000:.0f} ms"
        then = "" if self.settles else "; the next one does not wait"
        return f"{self.at_s:6.2f} s {how} {', '.join(self.victims)}{when}{then}"


@dataclass(frozen=True, slots=True)
class Ordered:
    """Groups that are told to move, or a number of workers that is wanted, at some time."""

    at_s: float
    moves: int = 0
    replicas: int | None = None

    def __str__(self) -> str:
        return f"{self.at_s:6.2f} s " + (f"{self.moves} moves" if self.replicas is None else f"{self.replicas} workers")


@dataclass(frozen=True, slots=True)
class Feed:
    """What one producer pushes."""

    stream: str
    name: str
    seed: int
    rows: int
    chunk: int
    """Rows in a batch."""
    leaves: tuple[float, ...] = ()
    """Shares of its batches after which it hangs up without a word and comes back under its name."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a run does."""

    seed: int
    span_ms: int
    """Of the event times; rows are pushed as fast as their times say."""
    lateness_ms: int
    keys: int
    spec: dict[str, Any]
    feeds: tuple[Feed, ...]
    faults: tuple[Fault, ...]
    ordered: tuple[Ordered, ...]
    subscribes: bool

    def __str__(self) -> str:
        spec = self.spec
        windows = ", ".join(str(stream["window"]) for stream in spec["streams"])
        shape = (
            f"{spec['join']['type']} join ({spec['join']['method']}), windows {windows}, {spec['partitions']} groups, "
            f"{spec['replicas']} workers, {spec['epochs']['subgroups']} sub-groups, "
            f"checkpoints every {spec['checkpoint']['interval']}"
        )
        feeds = ", ".join(f"{one.name} {one.rows} rows, leaves {len(one.leaves)} times" for one in self.feeds)
        lines = [f"seed {self.seed}: {shape}", f"  {self.span_ms / 1000:g} s; {feeds}"]
        lines.append(f"  {'with' if self.subscribes else 'without'} a subscriber")
        return "\n".join([*lines, *(f"  {one}" for one in in_turn(self))])


def _when(one: Fault | Ordered) -> float:
    return one.at_s


def in_turn(plan: Plan) -> list[Fault | Ordered]:
    """All that is done, in its order."""
    todo: list[Fault | Ordered] = [*plan.faults, *plan.ordered]
    return sorted(todo, key=_when)


def draw_long(seed: int) -> Plan:
    """Many faults, with workers that can take over from each other."""
    return draw(seed, seconds=LONG_S, faults=LONG_FAULTS, workers=3)


def draw(seed: int, *, seconds: float = 7.0, faults: int | None = None, workers: int | None = None) -> Plan:
    """The plan of a seed."""
    dice = random.Random(f"chaos {seed}")
    lateness, replicas = dice.choice((0, 40, 150)), workers or dice.choice((1, 2, 2, 3, 3))
    rate = dice.choice((300, 800, 1500, 4000))
    feeds, spec = _feeds(dice, int(seconds * rate)), _spec(dice, replicas, lateness)
    wanted = dice.randint(3, 6) if faults is None else faults
    harm = _faults(dice, wanted, replicas, seconds)
    ordered = tuple(_ordered(dice, replicas, seconds))
    return Plan(
        seed=seed,
        span_ms=int(seconds * 1000),
        lateness_ms=lateness,
        keys=max(20, int(_rows_in_windows(spec, rate) / dice.choice((0.2, 1.0, 4.0)))),
        spec=spec,
        feeds=feeds,
        faults=harm,
        ordered=ordered,
        subscribes=dice.random() < 0.5,
    )


def _spec(dice: random.Random, replicas: int, lateness_ms: int) -> dict[str, Any]:
    kind = dice.choice(KINDS)
    windows: list[Any] = [f"{dice.choice((0, 50, 120, 300, 700))}ms" for _ in "ab"]
    if kind == "inner" and dice.random() < 0.2:
        windows[dice.randrange(2)] = {"count": dice.choice((10, 300))}
    streams = [
        {
            "name": name,
            "schema": {"k": "int64", "n": "int64", "s": "string", "ts": "int64"},
            "window": window,
            "time": {"column": "ts", "unit": "ms", "lateness": f"{lateness_ms}ms", "idleTimeout": "10m"},
        }
        for name, window in zip("ab", windows, strict=True)
    ]
    spec: dict[str, Any] = {
        "streams": streams,
        "join": {"on": ["k"], "type": kind, "method": dice.choice(("hash", "hash", "nested-loop"))},
        "sinks": [{"file": {"path": "results.parquet"}}],
        "late": {"sink": {"file": {"path": "late.parquet"}}},
        "epochs": {"reorganization": f"{EPOCH_S}s", "subgroups": dice.choice((1, 2))},
        "partitions": dice.choice((6, 16, 60)),
        "replicas": replicas,
        "scaling": {"min": 1, "max": 4},
        "checkpoint": {"interval": f"{dice.choice((100, 200, 300))}ms", "durability": "wal"},
    }
    if dice.random() < 0.15:
        spec["output"] = {"order": "time"}
    return spec


def _rows_in_windows(spec: dict[str, Any], rate: int) -> float:
    """Of both streams; over the number of keys, how many partners a row has."""
    windows = [stream["window"] for stream in spec["streams"]]
    return sum(one["count"] if isinstance(one, dict) else rate * int(one[:-2]) / 1000 for one in windows)


def _feeds(dice: random.Random, rows: int) -> tuple[Feed, ...]:
    found = []
    for stream in "ab":
        producers = dice.choice((1, 2, 3))
        for number in range(producers):
            leaves = tuple(sorted(dice.uniform(0.1, 0.9) for _ in range(dice.choice((0, 0, 1, 2)))))
            chunk = dice.choice((20, 60, 150))
            found.append(Feed(stream, f"{stream}-{number}", dice.randrange(2**32), rows // producers, chunk, leaves))
    return tuple(found)


@dataclass(slots=True)
class _Kills:
    """How often each process may still be killed."""

    left: dict[str, int] = field(default_factory=dict)

    def may(self, name: str) -> bool:
        name = "redis" if name == "watcher" else name
        self.left.setdefault(name, MOST_KILLS)
        self.left[name] -= 1
        return self.left[name] >= 0


def _faults(dice: random.Random, wanted: int, replicas: int, seconds: float) -> tuple[Fault, ...]:
    kills = _Kills()
    times = sorted(dice.uniform(GRACE_S, seconds) for _ in range(wanted))
    moments = [one for one in INSIDE if replicas > 1 or one not in ("move", "handover")]
    found = [(at_s, dice.choice(moments)) for at_s in times]
    if dice.random() < 0.25:
        found[0] = (0.0, "start")
    if dice.random() < 0.5:
        found[-1] = (seconds, "end")
    return tuple(_fault(dice, at_s, moment, replicas, kills) for at_s, moment in found)


def _fault(dice: random.Random, at_s: float, moment: str, replicas: int, kills: _Kills) -> Fault:
    roles = {dice.choice(MOMENTS[moment])}
    while dice.random() < 0.2:
        roles.add(dice.choice(MOMENTS["any"]))
    victims = [f"worker-{dice.randrange(replicas)}" if role == "worker" else role for role in sorted(roles)]
    if "worker" in roles and dice.random() < 0.15:
        victims = [name for name in victims if not name.startswith("worker")]
        victims += [f"worker-{ordinal}" for ordinal in range(replicas)]
    if dice.random() < 0.08:
        victims = ["gateway", "collector", "redis", *(f"worker-{ordinal}" for ordinal in range(replicas))]
    stop_s = dice.choice((0.1, 0.5, 2.2, 3.0)) if dice.random() < 0.35 else None
    if stop_s is not None and not any(name.startswith("worker") for name in victims):
        stop_s = min(stop_s, 1.0)
    if stop_s is None:
        victims = [name for name in victims if kills.may(name)] or ["worker-0"]
    delays = {"start": (0.1, 0.8, 2.0, 3.0), "end": (0.0, 0.02, 0.1, 0.3, 0.6)}.get(
        moment, (0.0, 0.0, 0.003, 0.02, 0.1)
    )
    return Fault(round(at_s, 2), tuple(victims), stop_s, moment, dice.choice(delays), dice.random() < 0.75)


def _ordered(dice: random.Random, replicas: int, seconds: float) -> list[Ordered]:
    found = [Ordered(round(dice.uniform(0.2, seconds), 2), moves=dice.randint(1, 4)) for _ in range(int(seconds / 2))]
    if dice.random() < 0.5:
        turn = dice.uniform(0.3, 0.6) * seconds
        found.append(Ordered(round(turn, 2), replicas=replicas - 1 if replicas > 1 else 2))
        found.append(Ordered(round(turn + dice.uniform(0.2, 0.4) * seconds, 2), replicas=replicas))
    return sorted(found, key=_when)
