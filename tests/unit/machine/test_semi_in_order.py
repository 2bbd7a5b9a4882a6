"""semi + output.order time: a batch that is made again with other cuts loses a row (or tells it twice)."""

from joinery.join.logic import WindowJoin
from joinery.machine.ordered_output import OrderedOutput
from joinery.machine.ports import Commit
from joinery.model.ids import RecordNo
from joinery.window.sliding import Marks
from tests.unit.machine.building import plan_of, tuples, vector

PLAN = plan_of(kind="semi", partitions=1, lateness=100)
RECORDS = [
    [tuples(PLAN, 0, (2, 50), (5, 0)), tuples(PLAN, 1, (2, 50), (5, 0), (1, 20), (1, 30))],
    [tuples(PLAN, 0, (1, 10), place=2)],
    [tuples(PLAN, 0, (3, 125), place=3), tuples(PLAN, 1, (4, 125), place=4)],
]
MARKS = [Marks((-50, -50)), Marks((-50, -50)), Marks((25, 25))]
FOREVER = 2**63 - 1


def give(out, join, after, upto):
    batches = [b for n in range(after + 1, upto + 1) for b in RECORDS[n]]
    batches = sorted(batches, key=lambda b: b.stream)
    parts = list(join.on_batch(batches, MARKS[upto]))
    out.take(vector(0), vector(after), RecordNo(upto), MARKS[upto], parts)


def places(draft):
    return [p for part in draft.parts for p in part.members[0].tolist()]


def test_every_semi_row_is_given_out_once():
    zero = Commit(0, vector(-1), (), vector(-1))
    first, join = OrderedOutput(zero, 0, ()), WindowJoin(PLAN)
    for n in range(3):
        give(first, join, n - 1, n)
    draft = first.draft(vector(2), vector(-1))
    told = places(draft)
    commit = Commit(1, draft.committed, (), draft.seen, draft.before_ns)
    after = int(draft.committed[0])
    assert after == -1
    second, again = OrderedOutput(commit, 0, ()), WindowJoin(PLAN)
    give(second, again, -1, 2)  # recovery: the same records in one batch, which ends at seen
    end = Marks((FOREVER, FOREVER))
    second.take(vector(0), vector(2), RecordNo(3), end, list(again.on_batch([], end)))
    told += places(second.draft(vector(3), draft.committed))
    assert [0, 1, 2] == sorted(told)
