"""The invariant (docs/design.md §2, §3): results depend on the recorded input alone.

Not on where batches are cut, not on which worker holds which group, not on the method. And the results of (a, b] are a
function of the records up to b: at every cut, what has been told so far is the oracle's answer for that prefix.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joinery.join.logic import WindowJoin
from joinery.join.plan import JoinPlan
from joinery.join.results import Kind, ResultPart
from joinery.model.ids import GroupId
from joinery.model.time import TIME_MAX
from joinery.partition.hashing import groups_of
from tests.oracle import naive, recorded
from tests.oracle.compare import compare
from tests.oracle.history import History, prefix, released
from tests.oracle.strategies import histories
from tests.support import driving
from tests.support.driving import Outcome, spec_of

METHODS = ("hash", "nested-loop")
PARTITIONS = 7
QUICK = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))

methods = st.sampled_from(METHODS)
cuts = st.one_of(st.just(range(1000)), st.just(()), st.frozensets(st.integers(0, 40), max_size=8))
owners = st.one_of(st.just((0,) * PARTITIONS), st.tuples(*[st.integers(0, 2)] * PARTITIONS))
tunings = st.tuples(st.sampled_from((None, 150, 1000)), st.sampled_from((1, 100, 4096)))


def plan_of(history: History, method: str, tuning: tuple[int | None, int] = (None, 4096)) -> JoinPlan:
    plan = JoinPlan.of(spec_of(history, join__method=method, partitions=PARTITIONS))
    return replace(plan, theta_bytes=tuning[0], block_bytes=tuning[1])


@dataclass
class Worker:
    """A join over some of the groups, driven through a history in batches of its own."""

    history: History
    plan: JoinPlan
    groups: frozenset[int] = frozenset(range(PARTITIONS))
    outcome: Outcome = field(default_factory=Outcome)
    parts: list[ResultPart] = field(default_factory=list)
    group_of: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.join = WindowJoin(self.plan, [GroupId(group) for group in self.groups])
        self.known = released(self.history) if self.history.question.in_order else None
        self.mine = np.isin(np.arange(PARTITIONS), list(self.groups))

    def steps(self, cuts: Iterable[int]) -> Iterable[int]:
        """Takes batch after batch; gives the record at the end of each."""
        last, after = len(self.history.records) - 1, -1
        changes = {change.record for change in self.history.changes if change.record < last}
        for upto in sorted({*(cut for cut in cuts if cut < last), *changes, last}):
            batches = []
            for batch in driving.batches(self.history, self.plan, after, upto, self.known):
                groups = groups_of(batch.hashes, PARTITIONS)
                self.group_of |= {
                    (batch.stream, place): group
                    for place, group in zip(batch.places.tolist(), groups.tolist(), strict=True)
                }
                batches.append(batch.take(self.mine[groups]))
            for part in self.join.on_batch(batches, driving.marks(self.history, upto)):
                self.outcome.add(self.history.question, part)
                self.parts.append(part)
            yield upto
            driving.change_windows(self.join, self.history, upto)
            after = upto

    def all(self, cuts: Iterable[int]) -> Outcome:
        for _ in self.steps(cuts):
            pass
        return self.outcome


@QUICK
@given(
    history=histories(max_rows=48, with_changes=True), cut=st.tuples(cuts, cuts, cuts, cuts), owner=owners,
    ways=st.tuples(methods, methods, methods, methods), tuning=tunings,
)  # fmt: skip
def test_neither_cuts_nor_owners_nor_methods_change_the_results(
    history: History, cut: tuple[Iterable[int], ...], owner: tuple[int, ...], ways: tuple[str, ...],
    tuning: tuple[int | None, int],
) -> None:  # fmt: skip
    alone = Worker(history, plan_of(history, ways[3])).all(cut[3])
    parts = [
        Worker(
            history,
            plan_of(history, ways[who], tuning),
            frozenset(group for group in range(PARTITIONS) if owner[group] == who),
        ).all(cut[who])
        for who in set(owner)
    ]
    assert Counter(alone.results) == Counter(one for part in parts for one in part.results)
    assert Counter(alone.late) == Counter(one for part in parts for one in part.late)
    assert "missing 0, extra 0, duplicate 0" == str(
        compare([tuple(row.items()) for part in parts for row in part.rows], [tuple(row.items()) for row in alone.rows])
    )


@QUICK
@given(history=histories(max_rows=36, with_changes=True), cut=cuts, method=methods, tuning=tunings)
def test_what_is_told_up_to_a_cut_is_the_truth_about_the_records_up_to_it(
    history: History, cut: Iterable[int], method: str, tuning: tuple[int | None, int]
) -> None:
    worker = Worker(history, plan_of(history, method, tuning))
    for record in worker.steps(cut):
        known = prefix(history, record)
        truth = naive.join(history.question, known.rows, known.changes, known.final)
        found = compare(worker.outcome.results, naive.filtered(history.question, known.rows, truth))
        assert "missing 0, extra 0, duplicate 0" == str(found), f"after record {record}: {found}"
        assert sorted(naive.late(known.rows)) == sorted(worker.outcome.late), f"after record {record}"


@QUICK
@given(history=histories(max_rows=36), cut=cuts, method=methods)
def test_a_result_says_its_group_and_its_time(history: History, cut: Iterable[int], method: str) -> None:
    worker = Worker(history, plan_of(history, method))
    worker.all(cut)
    times = {(row.stream, row.position): row.time for row in history.rows}
    for part in worker.parts:
        for at in range(part.rows.num_rows):
            members = [(stream, int(places[at])) for stream, places in enumerate(part.members) if places is not None]
            assert {int(part.groups[at])} == {worker.group_of[member] for member in members}
            latest = max(times[member] for member in members)
            if part.kind is Kind.RESULT and len(members) < len(history.question.streams):
                latest = closing_time(history.question.windows[members[0][0]], latest)
            assert latest == part.times[at]


def closing_time(window: recorded.Window, time: int) -> int:
    """An unmatched row is told with the end of its window; with its own time if that is no time."""
    return min(time + window.ns, TIME_MAX) if isinstance(window, recorded.Time) else time
