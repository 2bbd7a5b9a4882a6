"""One schedule from its seed to a verdict, and many of them over processes."""

import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from joinery.machine import facts, messages, orders
from joinery.simulate.schedule import Role, Schedule
from joinery.simulate.story import FAULT
from joinery.simulate.world import run
from tests.simulation.check import verify
from tests.simulation.schedules import random_schedule
from tests.simulation.shrink import BUDGET, shrink
from tests.simulation.story import story


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a schedule; small enough to travel between processes."""

    seed: int
    complaints: tuple[str, ...] = ()
    counted: Counter[str] = field(default_factory=Counter)


def examine(schedule: Schedule) -> tuple[Any, list[str]]:
    """Run it: its outcome (None if the world itself broke) and all that is wrong."""
    try:
        outcome = run(schedule)
    except Exception:  # whatever stops a run is a finding
        return None, [f"broken: {traceback.format_exc(limit=-6)}"]
    return outcome, verify(schedule, outcome)


def judge(seed: int) -> Verdict:
    """The verdict of a seed."""
    schedule = random_schedule(seed)
    outcome, complaints = examine(schedule)
    return Verdict(seed, tuple(complaints), Counter() if outcome is None else counted(outcome))


def counted(outcome: Any) -> Counter[str]:
    """What happened in a run, by kind; crashes and pauses also by role and effect."""
    found = Counter(outcome.counts)
    for _, who, mark, what in outcome.story._events:
        if mark == FAULT and " before " in what:
            name = who.partition("/")[0].partition("-")[0]
            role = name if name in set(Role) else Role.PRODUCER
            found[f"{what.partition(' ')[0].lower()} of {role}{what[what.index(' before ') :]}"] += 1
        elif isinstance(what, facts.GroupRestored):
            found["groups loaded"] += 1
        elif isinstance(what, orders.Send) and isinstance(what.message, messages.ResultsLost):
            found["results no longer kept"] += 1
    entries = Counter(type(entry).__name__ for record in outcome.history.records.values() for entry in record.entries)
    found.update({f"entries {name}": number for name, number in entries.items()})
    for part in next(iter(outcome.sinks.values())):
        found[f"rows {part.kind}"] += part.rows.num_rows
    return found


def tell(seed: int, budget: int = BUDGET) -> str:
    """The story of a failing seed, made as small as the budget allows (0: as it is)."""
    schedule = random_schedule(seed)
    outcome, found = examine(schedule)
    if found and budget:
        schedule = shrink(schedule, lambda candidate: examine(candidate)[1], found, budget)
        outcome, found = examine(schedule)
    return story(schedule, outcome, found)


def first_failure(seeds: Iterable[int]) -> Verdict | None:
    """The first of these seeds that is not exact."""
    return next((verdict for verdict in map(judge, seeds) if verdict.complaints), None)


def judge_all(seeds: Iterable[int], jobs: int, chunk: int = 8) -> Iterator[Verdict]:
    """The verdicts of many seeds as they come, in any order."""
    if jobs <= 1:
        yield from map(judge, seeds)
        return
    coming = iter(seeds)
    chunks = iter(lambda: tuple(islice(coming, chunk)), ())
    with ProcessPoolExecutor(jobs) as pool:
        waiting: set[Future[list[Verdict]]] = {pool.submit(judge_some, some) for some in islice(chunks, 3 * jobs)}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            waiting |= {pool.submit(judge_some, some) for some in islice(chunks, len(done))}
            for future in done:
                yield from future.result()


def judge_some(seeds: tuple[int, ...]) -> list[Verdict]:
    """The verdicts of a few seeds."""
    return [judge(seed) for seed in seeds]
