"""Each of ten planted bugs is found within a thousand schedules, drawn as all others are.

`python -m tests.simulation --planted` says after how many each was found, and by what.
"""

import os
from collections.abc import Callable

import pytest

from tests.simulation.mutations import MUTATIONS
from tests.simulation.runs import first_failure, judge

WITHIN = int(os.environ.get("SCHEDULES_PER_BUG", "1000"))


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_planted_bug_is_found(name: str, record_property: Callable[[str, object], None]) -> None:
    with MUTATIONS[name]():
        found = first_failure(range(WITHIN))
    assert found is not None, f"{name} was not found by {WITHIN} schedules"
    record_property("schedules", found.seed + 1)
    record_property("complaint", found.complaints[0])
    assert () == judge(found.seed).complaints, "the schedule that found it fails without it"
