"""From a schedule that fails to a small one that fails in the same way: leave out whatever is not needed for it.

Greedy: parts are left out by halves, then one by one, and a part that is not missed stays out. What counts as the same
failure is the kind of a complaint (`missing`, `stuck` ...). The number of runs is bounded; the best found so far wins.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from joinery.simulate.schedule import MS, Batch, Crash, MoveGroup, Pause, Role, Schedule, Script

V = TypeVar("V")
Complaints = Callable[[Schedule], list[str]]

BUDGET: Final = 250
"""Runs at most."""
OPTIONAL: Final = ("select", "filter", "alignment", "worker", "results", "scaling", "fineTuning", "output", "sinks")
PLAIN_BYTES: Final = 1 << 25
PLAIN_EPOCHS: Final = {"distribution": "5ms", "reorganization": "50ms", "subgroups": 1}


def kinds_of(complaints: Sequence[str]) -> set[str]:
    """The kinds of complaints."""
    return {text.partition(":")[0] for text in complaints}


@dataclass(slots=True)
class Shrinker:
    """Tries smaller schedules as long as there is budget."""

    complaints: Complaints
    wanted: set[str]
    budget: int = BUDGET

    def still_fails(self, schedule: Schedule) -> bool:
        """Whether it fails in the wanted way; no, once the budget is used up."""
        if self.budget <= 0:
            return False
        self.budget -= 1
        return bool(kinds_of(self.complaints(schedule)) & self.wanted)

    def smallest(self, schedule: Schedule) -> Schedule:
        """As small as the budget allows."""
        while True:
            smaller = self._once(schedule)
            if smaller is schedule or self.budget <= 0:
                return smaller
            schedule = smaller

    def _once(self, schedule: Schedule) -> Schedule:
        for part in ("faults", "steps"):
            schedule = self._fewer(schedule, getattr(schedule, part), lambda s, kept, p=part: replace(s, **{p: kept}))
        schedule = self._fewer(schedule, schedule.scripts, _with_scripts)
        for place in range(len(schedule.scripts)):
            schedule = self._fewer_batches(schedule, place)
        for candidate in _simpler(schedule):
            if self.still_fails(candidate):
                return candidate
        return schedule

    def _fewer_batches(self, schedule: Schedule, place: int) -> Schedule:
        *sending, last = schedule.scripts[place].batches
        if last.rows is not None:
            sending, last = [*sending, replace(last, end=False)], Batch(last.at_ns, None, end=True)

        def with_batches(before: Schedule, kept: tuple[Batch, ...]) -> Schedule:
            script = replace(before.scripts[place], batches=(*kept, last), again=())
            return replace(before, scripts=(*before.scripts[:place], script, *before.scripts[place + 1 :]))

        return self._fewer(schedule, tuple(sending), with_batches)

    def _fewer(
        self, schedule: Schedule, parts: tuple[V, ...], build: Callable[[Schedule, tuple[V, ...]], Schedule | None]
    ) -> Schedule:
        """Leave out as many of the parts as possible, halves first."""
        size = len(parts)
        while size and self.budget > 0:
            start = 0
            while start < len(parts):
                kept = parts[:start] + parts[start + size :]
                candidate = build(schedule, kept)
                if candidate is not None and self.still_fails(candidate):
                    schedule, parts = candidate, kept
                else:
                    start += size
            size //= 2
        return schedule


def shrink(schedule: Schedule, complaints: Complaints, found: Sequence[str], budget: int = BUDGET) -> Schedule:
    """A smaller schedule with a complaint of the first kind that was found."""
    return Shrinker(complaints, kinds_of(found[:1]), budget).smallest(schedule)


def _with_scripts(schedule: Schedule, kept: tuple[Script, ...]) -> Schedule | None:
    """Only some producers, at least one of each stream; crash points name their places, so those may move."""
    if {script.stream for script in kept} != set(range(len(schedule.query["streams"]))):
        return None
    places = {script.name: place for place, script in enumerate(kept)}
    faults = []
    for fault in schedule.faults:
        if isinstance(fault, Crash | Pause) and fault.at.role is Role.PRODUCER:
            place = places.get(schedule.scripts[fault.at.ordinal].name)
            if place is None:
                continue
            fault = replace(fault, at=replace(fault.at, ordinal=place))
        faults.append(fault)
    return replace(schedule, scripts=kept, faults=tuple(faults))


def _simpler(schedule: Schedule) -> Iterator[Schedule]:
    """Candidates that are simpler in one respect."""
    query = schedule.query
    for name in OPTIONAL:
        if name in query:
            yield _with_query(schedule, {key: value for key, value in query.items() if key != name})
    for name in ("where", "method"):
        if name in query["join"]:
            join = {key: value for key, value in query["join"].items() if key != name}
            yield _with_query(schedule, query | {"join": join})
    if query["epochs"] != PLAIN_EPOCHS:
        yield _with_query(schedule, query | {"epochs": PLAIN_EPOCHS})
    plain = {"retain_bytes": PLAIN_BYTES, "subscribers": 0, "is_operated": False, "jump_ns": 3 * MS}
    for name, value in plain.items():
        if getattr(schedule, name) != value:
            yield replace(schedule, **{name: value})
    if schedule.workers > 1:
        yield _with_query(replace(schedule, workers=schedule.workers - 1), query | {"replicas": schedule.workers - 1})
    if query["partitions"] > 1:
        fewer = query["partitions"] - 1
        steps = tuple(step for step in schedule.steps if not isinstance(step, MoveGroup) or step.group < fewer)
        yield _with_query(replace(schedule, steps=steps), query | {"partitions": fewer})
    for place, script in enumerate(schedule.scripts):
        for turn, batch in enumerate(script.batches):
            if batch.rows is not None and batch.rows.num_rows > 1:
                half = batch.rows.num_rows // 2
                yield _with_rows(schedule, place, turn, batch.rows.slice(0, half))
                yield _with_rows(schedule, place, turn, batch.rows.slice(half))


def _with_query(schedule: Schedule, query: dict[str, Any]) -> Schedule:
    return replace(schedule, query=query)


def _with_rows(schedule: Schedule, place: int, turn: int, rows: Any) -> Schedule:
    script = schedule.scripts[place]
    batches = (*script.batches[:turn], replace(script.batches[turn], rows=rows), *script.batches[turn + 1 :])
    scripts = (*schedule.scripts[:place], replace(script, batches=batches, again=()), *schedule.scripts[place + 1 :])
    return replace(schedule, scripts=scripts)
