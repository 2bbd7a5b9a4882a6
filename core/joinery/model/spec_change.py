"""What may be changed of a query that runs, and how each change takes effect (docs/design.md §3, spec changes).

    LOGGED      an entry of the log: holds from the record after it on, the same for every replay
    AT_ONCE     cannot change a result: applied as soon as it is stored, and kept for whoever starts later
    RESTART     read when a process starts: refused while the query runs, taken from the file when it is started again
    NEW_QUERY   decides what a result is, or where what is stored lies: refused

`WAYS` says it for every field; a name that ends a way (`join`) stands for all below it. A change is taken whole or not
at all: one refused field refuses it, and all that is refused is told at once.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from joinery.model.complaints import MAX_SHOWN, printable
from joinery.model.errors import Bug, Complaint
from joinery.model.quantities import TimeWindow
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_sections import RedisSpec, StreamSpec


class Way(StrEnum):
    """How a change of a field takes effect."""

    LOGGED = "logged"
    AT_ONCE = "at once"
    RESTART = "restart"
    NEW_QUERY = "new query"


WAYS: Final = {
    "streams[].name": Way.NEW_QUERY,
    "streams[].schema": Way.NEW_QUERY,
    "streams[].window": Way.LOGGED,
    "streams[].time.column": Way.NEW_QUERY,
    "streams[].time.unit": Way.NEW_QUERY,
    "streams[].time.lateness": Way.LOGGED,
    "streams[].time.idleTimeout": Way.LOGGED,
    "streams[].source": Way.NEW_QUERY,
    "streams[].table": Way.NEW_QUERY,
    "join": Way.NEW_QUERY,
    "filter": Way.NEW_QUERY,
    "select": Way.NEW_QUERY,
    "sinks": Way.NEW_QUERY,
    "late": Way.NEW_QUERY,
    "output": Way.NEW_QUERY,
    "results": Way.RESTART,
    "alignment": Way.AT_ONCE,
    "epochs": Way.AT_ONCE,
    "partitions": Way.NEW_QUERY,
    "replicas": Way.AT_ONCE,
    "scaling": Way.AT_ONCE,
    "worker.buffer": Way.AT_ONCE,
    "worker.memory": Way.AT_ONCE,
    "worker.speed": Way.RESTART,
    "worker.resources": Way.AT_ONCE,
    "fineTuning.enabled": Way.AT_ONCE,
    "fineTuning.theta": Way.AT_ONCE,
    "fineTuning.block": Way.RESTART,
    "checkpoint.interval": Way.AT_ONCE,
    "checkpoint.durability": Way.NEW_QUERY,
    "redis": Way.RESTART,
    "access": Way.RESTART,
    "pods": Way.AT_ONCE,
    "engine": Way.NEW_QUERY,
}
"""By the names of YAML, below `spec`."""
_REMEDIES: Final = {
    Way.NEW_QUERY: "put it back, or run this as a new query",
    Way.RESTART: "put it back, or stop the run and start it again: it is read at the start",
}
_INDEX: Final = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that changes."""

    field: str
    found: str
    wanted: str


@dataclass(frozen=True, slots=True)
class SpecChanges:
    """All that is different between two specs of one query, by the way it takes effect."""

    logged: tuple[FieldChange, ...] = ()
    at_once: tuple[FieldChange, ...] = ()
    refused: tuple[Complaint, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do, and nothing to refuse."""
        return not (self.logged or self.at_once or self.refused)


@dataclass(frozen=True, slots=True)
class KeptSpec:
    """The spec that is in force, as it is kept beside the log for whoever starts later."""

    version: int
    """How many changes the log holds, or will hold when the last one is recorded."""
    spec: JoinQuerySpec


def changes(old: JoinQuerySpec, new: JoinQuerySpec) -> SpecChanges:
    """What is different, sorted by its way; `restarted(old, new)` as the old one: as before a start."""
    if names := _other_streams(old, new):
        return SpecChanges(refused=(names,))
    before, after = dict(_leaves(old.to_dict(), "")), dict(_leaves(new.to_dict(), ""))
    by_way: dict[Way, list[FieldChange]] = {way: [] for way in Way}
    for field in [*before, *(name for name in after if name not in before)]:
        was, becomes = before.get(field), after.get(field)
        if was != becomes:
            shown = (_shown(was), _shown(becomes)) if field != "redis.url" else ("one url", "another")  # has a password
            by_way[way_of(field)].append(FieldChange(f"spec.{field}", *shown))
    refused = [_refused(one, Way.NEW_QUERY) for one in by_way[Way.NEW_QUERY]]
    refused += [_refused(one, Way.RESTART) for one in by_way[Way.RESTART]]
    refused += _other_kinds(old, new)
    return SpecChanges(tuple(by_way[Way.LOGGED]), tuple(by_way[Way.AT_ONCE]), tuple(refused))


def way_of(field: str) -> Way:
    """How a change of a field (`streams[0].window`) takes effect."""
    pattern = _INDEX.sub("[]", field)
    found = [way for name, way in WAYS.items() if pattern == name or pattern.startswith(f"{name}.")]
    if len(found) != 1:
        raise Bug(f"nobody has said how a change of spec.{field} takes effect")
    return found[0]


def restarted(kept: JoinQuerySpec, file: JoinQuerySpec) -> JoinQuerySpec:
    """What a process runs with that is started with this file: what is kept, but for what is read at the start."""
    worker = kept.worker.model_copy(update={"speed": file.worker.speed})
    tuning = kept.fine_tuning.model_copy(update={"block": min(file.fine_tuning.block, kept.fine_tuning.theta)})
    update = {
        "results": file.results,
        "worker": worker,
        "fine_tuning": tuning,
        "redis": file.redis,
        "access": file.access,
    }
    return kept.model_copy(update=update)


def write_spec(spec: JoinQuerySpec, *, whole: bool = False) -> str:
    """A spec as a text; where its Redis is, and with which password, is in it only if it must be `whole`."""
    return json.dumps((spec if whole else spec.model_copy(update={"redis": RedisSpec()})).to_dict())


def read_spec(text: str) -> JoinQuerySpec:
    """The spec of such a text; `BadSpec` if it is none."""
    return JoinQuerySpec.parse(json.loads(text))


# --- fields


def _leaves(value: Any, field: str) -> Iterator[tuple[str, Any]]:
    """Every field with its value; a window, and a list but that of the streams, is one."""
    pattern = _INDEX.sub("[]", field)
    if isinstance(value, dict) and WAYS.get(pattern) is not Way.LOGGED:
        for name, inner in value.items():
            yield from _leaves(inner, f"{field}.{name}" if field else name)
    elif isinstance(value, list) and field == "streams":
        for place, inner in enumerate(value):
            yield from _leaves(inner, f"{field}[{place}]")
    else:
        yield field, value


def _other_streams(old: JoinQuerySpec, new: JoinQuerySpec) -> Complaint | None:
    was, becomes = ([stream.name for stream in spec.streams] for spec in (old, new))
    if was == becomes:
        return None
    return Complaint("spec.streams", ", ".join(becomes), ", ".join(was), _REMEDIES[Way.NEW_QUERY])


def _other_kinds(old: JoinQuerySpec, new: JoinQuerySpec) -> Iterator[Complaint]:
    """Windows whose change would change how the whole query works."""
    if old.has_count_window != new.has_count_window:
        found, wanted = ("no count window", "a count window")[:: 1 if old.has_count_window else -1]
        remedy = "with a count window the whole query runs in order; run this as a new query"
        yield Complaint("spec.streams", found, wanted, remedy)
    if old.output.order == "none":
        return
    for place, (was, becomes) in enumerate(zip(old.streams, new.streams, strict=True)):
        if _ends(was) != _ends(becomes):
            found, wanted = (json.dumps(one.model_dump(mode="json")["window"]) for one in (becomes, was))
            remedy = "output in order relies on whether a window ends; run this as a new query"
            yield Complaint(f"spec.streams[{place}].window", found, wanted, remedy)


def _ends(stream: StreamSpec) -> bool:
    return isinstance(stream.window, TimeWindow) and not stream.window.is_unbounded


def _refused(one: FieldChange, way: Way) -> Complaint:
    return Complaint(one.field, one.wanted, one.found, _REMEDIES[way])


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = printable(value if isinstance(value, str) else json.dumps(value))
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
