"""A JoinQuery as a plan of Spark Structured Streaming: frames in, frame out.

Rule 1: a pair stands within its windows iff t2 - t1 <= W1 and t1 - t2 <= W2 (docs/design.md §2). That is judged on
        nanoseconds. The same bounds on Spark's event times, a little wider, let Spark forget rows and tell the
        unmatched.
        What is judged stands in one expression of both sides, and the last row of a source (`inputs`, rule 3) is no
        match in it: a part that concerns one side alone Spark would apply before it has seen the time of that row.
Rule 2: watermarks are the lateness, rounded up: no row that the service takes is late for Spark (`inputs`, rule 1).
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import from_arrow_type

from joinery.join.plan import JoinPlan, JoinType
from joinery.model.quantities import TimeWindow
from joinery.model.spec import JoinQuerySpec
from joinery.spark.conditions import condition
from joinery.spark.inputs import EVENT_TIME, IS_ROW, TIME_NS
from joinery.spark.outputs import column_name

_KINDS: Final = {
    JoinType.INNER: "inner", JoinType.LEFT: "left_outer", JoinType.RIGHT: "right_outer", JoinType.FULL: "full_outer",
    JoinType.SEMI: "left_semi",
}  # fmt: skip
_NS_PER_MS: Final = 1_000_000


def joined(spec: JoinQuerySpec, inputs: tuple[DataFrame, DataFrame]) -> DataFrame:
    """The joined rows of these streams (`inputs`); `outputs` makes results of them."""
    plan = JoinPlan.of(spec)
    left, right = (_prepared(spec, number, frame) for number, frame in enumerate(inputs))
    return left.join(right, _condition(spec, plan), _KINDS[plan.type])


def _prepared(spec: JoinQuerySpec, number: int, frame: DataFrame) -> DataFrame:
    """Columns by the stream's number, and its watermark (rule 2)."""
    named = frame.select([F.col(f"`{name}`").alias(column_name(number, name)) for name in frame.columns])
    delay_ms = -(-spec.streams[number].lateness // _NS_PER_MS) + 1
    return named.withWatermark(column_name(number, EVENT_TIME), f"{delay_ms} milliseconds")


def _condition(spec: JoinQuerySpec, plan: JoinPlan) -> Column:
    both = [form.key.columns for form in plan.formats]
    made, judged = F.lit(True), F.lit(True)
    for column, form in enumerate(plan.formats[0].key.forms):
        sides = []
        for number, names in enumerate(both):
            own = plan.formats[number].schema.field(names[column]).type
            key = F.col(f"`{column_name(number, names[column])}`")
            sides.append(key if own == form else key.cast(from_arrow_type(form)))
        made = made & (sides[0] == sides[1])
        judged = judged & sides[0].isNotNull() & sides[1].isNotNull()  # a full join of Spark finds null equal to null
    for number, other in ((0, 1), (1, 0)):
        window = plan.windows[number]
        if isinstance(window, TimeWindow) and not window.is_unbounded:
            made = made & _nearly_within(number, other, window.length_ns)
            judged = judged & _within(number, other, window.length_ns)
    if spec.join.where is not None and plan.type is not JoinType.INNER:
        columns = {
            (form.name, field.name): F.col(f"`{column_name(form.index, field.name)}`")
            for form in plan.formats
            for field in form.schema
        }
        judged = judged & condition(spec.join.where, spec.column_types, columns)
    are_rows = F.col(column_name(0, IS_ROW)) + F.col(column_name(1, IS_ROW)) == F.lit(2)
    return made & F.when(are_rows, judged).otherwise(F.lit(False))


def _within(number: int, other: int, length_ns: int) -> Column:
    """The other row is at most this much later (rule 1)."""
    return F.col(column_name(other, TIME_NS)) - F.col(column_name(number, TIME_NS)) <= F.lit(length_ns)


def _nearly_within(number: int, other: int, length_ns: int) -> Column:
    """The same in Spark's times; in this form Spark knows what it may forget."""
    wide_ms = -(-length_ns // _NS_PER_MS) + 1
    own, later = column_name(number, EVENT_TIME), column_name(other, EVENT_TIME)
    return F.expr(f"{own} >= {later} - INTERVAL {wide_ms} MILLISECONDS")
