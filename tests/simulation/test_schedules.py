"""The whole protocol under random schedules: exact, every time; and nothing that can be hit is left out.

`SCHEDULES_IN_TEST` says how many; `make simulate N=10000` runs more. A failure prints the schedule made small, and
the command that replays it.
"""

import os
from collections import Counter

import pytest

from joinery.simulate.schedule import Role
from tests.simulation.disturbances import POINTS
from tests.simulation.runs import judge, tell

SCHEDULES_IN_TEST = int(os.environ.get("SCHEDULES_IN_TEST", "800"))
CHUNKS = 20
SHRINKING_RUNS = 120


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_schedule_is_exact(chunk: int) -> None:
    for seed in range(chunk, SCHEDULES_IN_TEST, CHUNKS):
        if judge(seed).complaints:
            pytest.fail(f"make simulate SEED={seed}\n{tell(seed, SHRINKING_RUNS)}", pytrace=False)


ENOUGH = 1500
"""Schedules within which every crash point must have fired."""


def test_every_effect_of_every_role_was_a_crash_point_that_fired() -> None:
    wanted = {f"crash of {role} before {effect}" for role in Role for effect in POINTS[role]}
    found: Counter[str] = Counter()
    for seed in range(10_000, 10_000 + ENOUGH):
        found += judge(seed).counted
        if wanted <= found.keys():
            return
    assert set() == wanted - found.keys()
