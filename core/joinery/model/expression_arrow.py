"""What an expression means: its types, and its compilation to Arrow compute. One pass does both; nothing is ever
evaluated as code.

- **Nulls** are SQL's: an operation on null is null, `and`, `or`, `not`, `in` follow three-valued logic, and a predicate
  keeps a row only if it is true.
- **Types** meet as `expression_types` says; what does not meet is refused when the query is, never at a row.
- **Arithmetic** is total (`expression_kernels`): integers compute in int64 and overflow to null; `/` is always a float
  division, and x / 0 and x % 0 are null; decimals are exact, up to 76 digits, else the expression is refused; `%` is
  for integers.
- **NaN** equals itself and is greater than all numbers, as in DuckDB.

Where DuckDB differs: it stops the query on overflow (there `try(a + b)` is our a + b), gives infinity for x / 0 (there
`a / nullif(b, 0)`), computes small integers in their own width, and
brings the three of a `between` to one type where SQL and we make two comparisons.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from joinery.model import expression_kernels as kernels
from joinery.model.complaints import did_you_mean, which_column
from joinery.model.errors import BadExpression
from joinery.model.expression import Expr, columns
from joinery.model.expression_functions import FUNCTIONS, Argument, Unfit
from joinery.model.expression_kernels import Datum
from joinery.model.expression_terms import (
    ColumnKey,
    Rows,
    Term,
    applied,
    as_decimal,
    column,
    constant,
    converted,
    fitted,
    is_natural,
)
from joinery.model.expression_tree import (
    Arithmetic,
    Call,
    Column,
    Compare,
    In,
    Is,
    Like,
    Literal,
    Logic,
    Negate,
    Node,
    Not,
)
from joinery.model.expression_types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT,
    NULL,
    TEXT,
    UINT,
    NoCommonType,
    common_type,
    decimal_within,
    literal,
    read_type,
)
from joinery.model.types import ColumnType, Family, decimal_shape

Types = Mapping[ColumnKey, ColumnType]


@dataclass(frozen=True, slots=True)
class Predicate:
    """A compiled condition over columns."""

    columns: tuple[ColumnKey, ...]
    """The (stream, column) pairs that it needs, sorted."""
    _run: Callable[[Rows], Datum]

    def mask(self, rows: Rows, length: int) -> NDArray[np.bool_]:
        """Which rows satisfy the condition; where it is null, they do not."""
        verdict = self._run(rows)
        if isinstance(verdict, pa.Scalar):
            return np.full(length, bool(verdict.as_py()), dtype=np.bool_)
        mask: NDArray[np.bool_] = pc.fill_null(verdict, False).to_numpy(zero_copy_only=False)
        return mask


def check(expr: Expr, types: Types) -> ColumnType:
    """The type of an expression over these columns; `BadExpression` with the place where types do not fit."""
    return _Compiler(expr.text, types).term(expr.root).kind


def compile_predicate(expr: Expr, types: Types) -> Predicate:
    """A condition ready to run over Arrow columns of these types."""
    compiler = _Compiler(expr.text, types)
    term = compiler.as_condition(expr.root)
    return Predicate(tuple(sorted(columns(expr))), term.run)


class _Compiler:
    """One method per kind of node: check the types, choose the kernel."""

    def __init__(self, text: str, types: Types) -> None:
        self._text, self._types = text, types

    def term(self, node: Node) -> Term:
        match node:
            case Literal():
                return self._literal(node)
            case Column():
                return self._column(node)
            case Logic():
                kernel = kernels.all_of if node.operator == "and" else kernels.any_of
                return applied(
                    BOOL, lambda *data: kernel(list(data)), [self.as_condition(part) for part in node.operands]
                )
            case Not():
                return applied(BOOL, pc.invert, [self.as_condition(node.operand)])
            case Is():
                return self._is(node)
            case Compare():
                return self._compare(node)
            case In():
                return self._in(node)
            case Like():
                return self._like(node)
            case Arithmetic():
                return self._arithmetic(node)
            case Negate():
                return self._negate(node)
            case Call():
                return self._call(node)

    def _refuse(self, at: int, found: str, wanted: str, remedy: str) -> NoReturn:
        raise BadExpression(self._text, at, found, wanted, remedy)

    def as_condition(self, node: Node) -> Term:
        """A part that must be true or false (or null)."""
        term = self.term(node)
        if term.kind not in (BOOL, NULL):
            self._refuse(
                node.at, f"a value of type {term.kind}", "a condition, true or false", "compare it with a value"
            )
        return converted(term, BOOL)

    def _literal(self, node: Literal) -> Term:
        try:
            kind, value = literal(node.value)
        except OverflowError:
            self._refuse(
                node.at,
                "a timestamp out of range",
                "one that int64 holds in its unit",
                "write fewer digits of the second",
            )
        return constant(kind, value)

    def _column(self, node: Column) -> Term:
        key = (node.stream, node.column)
        declared = self._types.get(key)
        if declared is None:
            remedy = which_column(node.stream, node.column, self._types)
            self._refuse(node.at, f"{node.stream}.{node.column}", "a column that can be seen here", remedy)
        kind = read_type(declared)
        return column(key, kind)

    def _is(self, node: Is) -> Term:
        operand = self.term(node.operand) if node.wanted is None else self.as_condition(node.operand)
        return applied(BOOL, lambda x: kernels.is_truth(x, node.wanted, node.negated), [operand])

    def _meeting(self, at: int, terms: Sequence[Term], what: str) -> list[Term]:
        """The terms in the type where all of them meet."""
        terms = fitted(terms)
        try:
            kind = common_type([term.kind for term in terms])
        except NoCommonType:
            found = " with ".join(dict.fromkeys(term.kind.name for term in terms))
            self._refuse(at, found, f"types that meet in {what}", self._meeting_remedy(terms))
        made = [converted(term, kind) for term in terms]
        for term, same in zip(terms, made, strict=True):
            if term.constant is not None and same.value is not None and not same.value.is_valid:
                found = f"a {term.kind} out of the range of {kind}"
                self._refuse(at, found, "a time that both can hold", "use a time nearer to today")
        return made

    def _meeting_remedy(self, terms: Sequence[Term]) -> str:
        families = {term.kind.family for term in terms}
        if Family.TEXT in families and families & {Family.DATE, Family.TIMESTAMP}:
            return "write date '2024-01-31' or timestamp '2024-01-31 12:00:00'"
        if families <= {Family.DATE, Family.TIMESTAMP}:
            return "an instant meets only instants: write timestamp '2024-01-31 12:00:00Z', or take the timezone off"
        if Family.TEXT in families and len(families) == 2:
            return "a text stands in single quotes, a number or a boolean does not"
        return "compare columns of one kind"

    def _compare(self, node: Compare) -> Term:
        sides = self._meeting(node.at, [self.term(node.left), self.term(node.right)], "a comparison")
        if sides[0].kind is NULL:
            return constant(BOOL, kernels.null_of(pa.bool_()))
        return applied(BOOL, lambda left, right: kernels.compare(node.operator, left, right), sides)

    def _in(self, node: In) -> Term:
        operand, *items = self._meeting(node.at, [self.term(part) for part in (node.operand, *node.items)], "in")
        values = [item.value for item in items if item.value is not None]
        if operand.kind is NULL:
            return constant(BOOL, kernels.null_of(pa.bool_()))
        if len(values) < len(items) or operand.kind.family in (Family.FLOAT, Family.DECIMAL):
            return applied(BOOL, _in_terms, [operand, *items])
        valid = pa.array([value.as_py() for value in values if value.is_valid], operand.kind.arrow)
        has_null = len(valid) < len(values)
        return applied(BOOL, lambda x: kernels.is_member(x, valid, has_null), [operand])

    def _like(self, node: Like) -> Term:
        operand = self.term(node.operand)
        if operand.kind not in (TEXT, NULL):
            self._refuse(
                node.at,
                f"a value of type {operand.kind}",
                "a text before like",
                "compare other types with = or between",
            )
        kernel = kernels.like_kernel(node.pattern, node.escape)
        if kernel is None:
            self._refuse(
                node.at, "a pattern that ends in its escape character", "a character behind it", "write it twice"
            )
        return applied(BOOL, kernel, [converted(operand, TEXT)])

    def _number(self, node: Node, what: str) -> Term:
        term = self.term(node)
        if term.kind is NULL:
            return converted(term, INT)
        if not term.kind.is_numeric:
            self._refuse(
                node.at,
                f"a value of type {term.kind}",
                f"a number in {what}",
                "texts, times and booleans cannot be computed with",
            )
        return term

    def _negate(self, node: Negate) -> Term:
        operand = self._number(node.operand, "-")
        if operand.kind == INT:
            return applied(INT, kernels.negate_integer, [operand])
        if operand.kind == UINT:
            operand = converted(operand, decimal_within(20, 0))
        return applied(operand.kind, pc.negate, [operand])

    def _arithmetic(self, node: Arithmetic) -> Term:
        sides = [self._number(node.left, node.operator), self._number(node.right, node.operator)]
        kinds = [side.kind for side in sides]
        if node.operator == "/":
            kind = FLOAT32 if FLOAT32 in kinds and FLOAT64 not in kinds else FLOAT64
            return applied(kind, kernels.float_division, [converted(side, kind) for side in sides])
        if node.operator == "%":
            return self._modulo(node, sides)
        if kinds == [INT, INT]:
            return applied(INT, lambda left, right: kernels.integer_arithmetic(node.operator, left, right), sides)
        if any(kind.family is Family.FLOAT for kind in kinds):
            sides = self._meeting(node.at, sides, node.operator)
            return applied(
                sides[0].kind, lambda left, right: kernels.plain_arithmetic(node.operator, left, right), sides
            )
        return self._decimal_arithmetic(node, sides)

    def _modulo(self, node: Arithmetic, sides: list[Term]) -> Term:
        kinds = [side.kind for side in sides]
        if kinds != [INT, INT] and not all(
            kind == UINT or is_natural(side) for kind, side in zip(kinds, sides, strict=True)
        ):
            found = " % ".join(kind.name for kind in kinds)
            self._refuse(
                node.at,
                found,
                "% of integers, signed or unsigned on both sides",
                "use floor or round for other numbers",
            )
        kind = INT if kinds == [INT, INT] else UINT
        return applied(kind, kernels.integer_modulo, [converted(side, kind) for side in sides])

    def _decimal_arithmetic(self, node: Arithmetic, sides: list[Term]) -> Term:
        """Exact: the result has as many digits as it can need (the rule of Arrow and of SQL)."""
        sides = fitted(sides)
        (left_digits, left_scale), (right_digits, right_scale) = (decimal_shape(side.kind) for side in sides)
        scale = max(left_scale, right_scale)
        digits = max(left_digits - left_scale, right_digits - right_scale) + scale + 1
        if node.operator == "*":
            digits, scale = left_digits + right_digits + 1, left_scale + right_scale
        try:
            kind = decimal_within(digits, scale)
        except NoCommonType:
            self._refuse(
                node.at,
                f"a result of {digits} digits",
                "at most 76",
                "use columns of fewer digits, or 1e0 * x for floats",
            )
        sides = [as_decimal(side, kind) for side in sides]
        return applied(
            kind, lambda left, right: kernels.plain_arithmetic(node.operator, left, right).cast(kind.arrow), sides
        )

    def _call(self, node: Call) -> Term:
        function = FUNCTIONS.get(node.function)
        if function is None:
            self._refuse(
                node.at,
                f"the function {node.function[:40]}",
                "a known function",
                did_you_mean(node.function, FUNCTIONS),
            )
        if not function.fewest <= len(node.arguments) <= function.most:
            wanted = (
                f"{function.fewest}" if function.fewest == function.most else f"{function.fewest} to {function.most}"
            )
            self._refuse(
                node.at, f"{len(node.arguments)} arguments of {node.function}", wanted, f"write {function.usage}"
            )
        terms = [self.term(argument) for argument in node.arguments]
        try:
            call = function.settle([Argument(term.kind, term.constant) for term in terms])
        except Unfit as unfit:
            self._refuse(node.at, f"{unfit.found} in {node.function}", unfit.wanted, f"write {function.usage}")
        except NoCommonType:
            found = " with ".join(dict.fromkeys(term.kind.name for term in terms))
            self._refuse(node.at, found, f"types that meet in {node.function}", self._meeting_remedy(terms))
        if call.gives is NULL:
            return constant(NULL, pa.scalar(None))
        return applied(
            call.gives, call.kernel, [converted(term, kind) for term, kind in zip(terms, call.takes, strict=True)]
        )


def _in_terms(operand: Datum, *items: Datum) -> Datum:
    return kernels.any_of([kernels.compare("=", operand, item) for item in items])
