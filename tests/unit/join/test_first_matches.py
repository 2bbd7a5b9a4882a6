"""A semi row's time must not depend on where a batch is cut (ordered_output rule 1 builds on it)."""

from joinery.join.logic import WindowJoin
from joinery.window.sliding import Marks
from tests.unit.machine.building import plan_of, tuples

PLAN = plan_of(kind="semi")
A, B = tuples(PLAN, 0, (1, 10)), tuples(PLAN, 1, (1, 20), (1, 30))


def times(*batches):
    join = WindowJoin(PLAN)
    return [t for one in batches for part in join.on_batch(one, Marks((0, 0))) for t in part.times.tolist()]


def test_the_time_of_a_semi_row_does_not_depend_on_where_batches_are_cut():
    assert times([A, B]) == times([B], [A])
