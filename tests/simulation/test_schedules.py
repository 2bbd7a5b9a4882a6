"""The whole protocol under random schedules: exact, every time; and nothing that can be hit is left out.

`SCHEDULES_IN_TEST` says how many; `make simulate N=10000` runs more. A failure prints the schedule made small, and
the command that replays it.
"""

import os
from collections import Counter
from itertools import count

import pytest

from joinery.machine.effects import Effect
from joinery.simulate.schedule import Crash, Role
from joinery.simulate.world import run
from tests.simulation.disturbances import POINTS
from tests.simulation.runs import counted, judge, tell
from tests.simulation.schedules import random_schedule

SCHEDULES_IN_TEST = int(os.environ.get("SCHEDULES_IN_TEST", "400"))
CHUNKS = 10
SHRINKING_RUNS = 120
ENOUGH = 400
"""Runs within which every crash point must have fired."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_schedule_is_exact(chunk: int) -> None:
    for seed in range(chunk, SCHEDULES_IN_TEST, CHUNKS):
        if judge(seed).complaints:
            pytest.fail(f"make simulate SEED={seed}\n{tell(seed, SHRINKING_RUNS)}", pytrace=False)


@pytest.mark.parametrize("role", Role)
def test_every_effect_of_a_role_is_a_crash_point_that_fires(role: Role) -> None:
    wanted = {f"crash of {role} before {effect}": effect for effect in POINTS[role]}
    fired: Counter[str] = Counter()
    effects: set[Effect] = set()
    runs = 0
    for seed in count(10_000):
        schedule = random_schedule(seed)
        aimed = {f.at.effect for f in schedule.faults if isinstance(f, Crash) and f.at.role is role}
        if not aimed & {effect for name, effect in wanted.items() if name not in fired}:
            continue
        outcome = run(schedule)
        fired += counted(outcome)
        effects |= {effect for of, effect in outcome.effects if of is role}
        runs += 1
        if wanted.keys() <= fired.keys() or runs == ENOUGH:
            break
    assert set() == wanted.keys() - fired.keys()
    assert effects == set(POINTS[role]), "what the machines do is not what is drawn from"
