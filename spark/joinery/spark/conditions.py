"""`where` as a condition of Spark's join, where that means the same; what might not is refused (`join.fitness`).

An inner join needs none of this: its pairs are held to `where` afterwards, by the service's own code. Of the others the
condition decides who stays alone, so Spark must judge it: comparisons, and, or, not, is, in, of columns and literals
whose types compare alike in both. Both have SQL's three values; in both NaN equals itself and is above all numbers.
"""

from collections.abc import Mapping
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from joinery.model.expression import parse
from joinery.model.expression_tree import Column as Named
from joinery.model.expression_tree import Compare, In, Is, Literal, Logic, Node, Not
from joinery.model.types import ColumnType, Family

Types = Mapping[tuple[str, str], ColumnType]


def condition(text: str, types: Types, columns: Mapping[tuple[str, str], Column]) -> Column:
    """The expression over these columns; `fitness.differences` has found none."""
    return _Translation(types, columns).of(parse(text).root)


class _Translation:
    def __init__(self, types: Types, columns: Mapping[tuple[str, str], Column]) -> None:
        self._types, self._columns = types, columns

    def of(self, node: Node) -> Column:
        match node:
            case Named():
                return self._columns[node.stream, node.column]
            case Literal():
                return F.lit(node.value)
            case Not():
                return ~self.of(node.operand)
            case Logic():
                return self._logic(node)
            case Is():
                return self._is(node)
            case Compare():
                left, right = self._sides(node.left, node.right)
                return _compared(node.operator, left, right)
            case In():
                return self._one_of(node)
        raise AssertionError(f"a {type(node).__name__} was not refused")

    def _logic(self, node: Logic) -> Column:
        first, *others = (self.of(one) for one in node.operands)
        for other in others:
            first = (first & other) if node.operator == "and" else (first | other)
        return first

    def _is(self, node: Is) -> Column:
        operand = self.of(node.operand)
        found = operand.isNull() if node.wanted is None else operand.eqNullSafe(F.lit(node.wanted))
        return ~found if node.negated else found

    def _one_of(self, node: In) -> Column:
        sides = [self._sides(node.operand, item) for item in node.items]
        first, *others = (left == right for left, right in sides)
        for other in others:
            first = first | other
        return first

    def _sides(self, left: Node, right: Node) -> tuple[Column, Column]:
        """Both sides of a comparison; a number beside a float is one."""
        named = [self._types[n.stream, n.column].family for n in (left, right) if isinstance(n, Named)]
        made = [
            F.lit(float(node.value))
            if Family.FLOAT in named and isinstance(node, Literal) and isinstance(node.value, int | Decimal)
            else self.of(node)
            for node in (left, right)
        ]
        return made[0], made[1]


def _compared(operator: str, left: Column, right: Column) -> Column:
    match operator:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
    return left >= right
