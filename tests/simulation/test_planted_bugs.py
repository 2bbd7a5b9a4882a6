"""Each of nine planted bugs is found within a thousand schedules, drawn as all others are."""

import os

import pytest

from tests.simulation.mutations import MUTATIONS
from tests.simulation.runs import judge

WITHIN = int(os.environ.get("SCHEDULES_PER_BUG", "1000"))


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_planted_bug_is_found(name: str, record_property: pytest.RecordProperty) -> None:
    with MUTATIONS[name]():
        for seed in range(WITHIN):
            if complaints := judge(seed).complaints:
                record_property("schedules", seed + 1)
                record_property("complaint", complaints[0])
                break
        else:
            pytest.fail(f"{name} was not found by {WITHIN} schedules")
    assert () == judge(seed).complaints, "the schedule that found it fails without it"
