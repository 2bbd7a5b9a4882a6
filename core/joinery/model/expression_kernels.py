"""Total column operations for expressions: for every input a value or null, never an exception.

A worker must not die of a row. So integer overflow gives null (an ordinary SQL engine would stop the query), and so
does division by zero. The fast way is Arrow's checked kernel; only a batch that overflows somewhere is computed again
in wide decimals, to find the rows that do. Floats follow IEEE 754, except that comparisons put NaN in the order of SQL
engines such as DuckDB and PostgreSQL: NaN equals itself and is greater than every number; -0.0 equals 0.0.
"""

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Datum: TypeAlias = Any
"""A pyarrow Array, or a Scalar that stands for every row."""

_MIN: Final = pa.scalar(-(2**63), pa.int64())
_MAX: Final = pa.scalar(2**63 - 1, pa.int64())
_WIDE: Final = pa.decimal256(19, 0)
_CHECKED: Final = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_PLAIN: Final = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def null_of(kind: pa.DataType) -> pa.Scalar:
    """The null of a type."""
    return pa.scalar(None, kind)


def integer_arithmetic(operator: str, left: Datum, right: Datum) -> Datum:
    """+ - * of int64; null where the result does not fit."""
    try:
        return _CHECKED[operator](left, right)
    except pa.ArrowInvalid:
        wide = _PLAIN[operator](left.cast(_WIDE), right.cast(_WIDE))
        fits = pc.and_(pc.greater_equal(wide, _MIN.cast(wide.type)), pc.less_equal(wide, _MAX.cast(wide.type)))
        return pc.if_else(fits, wide, null_of(wide.type)).cast(pa.int64())


def plain_arithmetic(operator: str, left: Datum, right: Datum) -> Datum:
    """+ - * of floats (IEEE 754), or of decimals whose result type was chosen wide enough."""
    return _PLAIN[operator](left, right)


def float_division(left: Datum, right: Datum) -> Datum:
    """Division of floats; null where the divisor is zero."""
    zero = pa.scalar(0, right.type)
    return pc.divide(left, pc.if_else(pc.equal(right, zero), null_of(right.type), right))


def integer_modulo(left: Datum, right: Datum) -> Datum:
    """The remainder with the sign of the dividend; null where the divisor is zero."""
    kind = left.type
    zero, one = pa.scalar(0, kind), pa.scalar(1, kind)
    is_zero = pc.equal(right, zero)
    safe = pc.if_else(is_zero, one, right)
    if kind == pa.int64():  # -2^63 / -1 does not fit, and x % -1 is x % 1
        safe = pc.if_else(pc.equal(safe, pa.scalar(-1, kind)), one, safe)
    remainder = pc.subtract(left, pc.multiply(safe, pc.divide(left, safe)))
    return pc.if_else(is_zero, null_of(kind), remainder)


def negate_integer(operand: Datum) -> Datum:
    """-x of int64; null for -2^63."""
    return integer_arithmetic("-", pa.scalar(0, pa.int64()), operand)


def absolute_integer(operand: Datum) -> Datum:
    """|x| of int64; null for -2^63."""
    return pc.if_else(pc.less(operand, pa.scalar(0, pa.int64())), negate_integer(operand), operand)


def round_number(operand: Datum, digits: int) -> Datum:
    """Half away from zero; a float too large to have digits behind the point stays as it is, and so does NaN."""
    if not pa.types.is_floating(operand.type):
        return pc.round(operand, ndigits=digits, round_mode="half_towards_infinity")
    whole_from = pa.scalar(2.0**23 if operand.type == pa.float32() else 2.0**52, operand.type)
    small = pc.less(pc.abs(operand), whole_from)
    rounded = pc.round(
        pc.if_else(small, operand, pa.scalar(0, operand.type)), ndigits=digits, round_mode="half_towards_infinity"
    )
    return pc.if_else(small, rounded, operand)


def rescale_time(operand: Datum, factor: int, kind: pa.DataType) -> Datum:
    """A timestamp in a finer unit; null where it does not fit."""
    return integer_arithmetic("*", operand.cast(pa.int64()), pa.scalar(factor, pa.int64())).cast(kind)


_COMPARE: Final = {
    "=": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip


def compare(operator: str, left: Datum, right: Datum) -> Datum:
    """A comparison of two data of one type, null where one of them is."""
    return (
        _compare_floats(operator, left, right) if pa.types.is_floating(left.type) else _COMPARE[operator](left, right)
    )


def _compare_floats(operator: str, left: Datum, right: Datum) -> Datum:
    if operator in ("=", "!="):
        same = pc.or_kleene(pc.equal(left, right), pc.and_kleene(pc.is_nan(left), pc.is_nan(right)))
        return same if operator == "=" else pc.invert(same)
    if operator in (">", "<="):
        left, right = right, left
    less = pc.or_kleene(pc.less(left, right), pc.and_kleene(pc.invert(pc.is_nan(left)), pc.is_nan(right)))
    return less if operator in ("<", ">") else pc.invert(less)


def pick(operator: str, left: Datum, right: Datum) -> Datum:
    """The greatest (>) or least (<) of two; a null is passed over."""
    better = pc.fill_null(compare(operator, right, left), pa.scalar(False))
    return pc.if_else(pc.or_(pc.is_null(left), better), right, left)


def is_member(operand: Datum, values: pa.Array, has_null: bool) -> Datum:
    """`in` over constants without nulls; a null in the list makes false null."""
    found = pc.is_in(operand, value_set=values)
    missed = null_of(pa.bool_()) if has_null else pa.scalar(False)
    known = pc.if_else(found, pa.scalar(True), missed)
    return pc.if_else(pc.is_null(operand), null_of(pa.bool_()), known)


def any_of(operands: list[Datum]) -> Datum:
    """`or` of SQL: true if one is true, else null if one is null."""
    made = operands[0]
    for operand in operands[1:]:
        made = pc.or_kleene(made, operand)
    return made


def all_of(operands: list[Datum]) -> Datum:
    """`and` of SQL: false if one is false, else null if one is null."""
    made = operands[0]
    for operand in operands[1:]:
        made = pc.and_kleene(made, operand)
    return made


def is_truth(operand: Datum, wanted: bool | None, negated: bool) -> Datum:
    """`is [not] null / true / false`, never null itself."""
    if wanted is None:
        return pc.is_valid(operand) if negated else pc.is_null(operand)
    truth = operand if wanted else pc.invert(operand)
    holds = pc.fill_null(truth, pa.scalar(False))
    return pc.invert(holds) if negated else holds


def like_kernel(pattern: str, escape: str | None) -> Callable[[Datum], Datum] | None:
    """The matcher of a LIKE pattern; None if the pattern ends in its escape character.

    What is a prefix, a suffix, a part or the whole is matched as such; only the rest is a regular expression.
    """
    parts = _like_parts(pattern, escape)
    if parts is None:
        return None
    shape = "".join("x" if part not in ("%", "_") else part for part in parts)
    text = "".join(part[1:] for part in parts if part not in ("%", "_"))
    match re.sub("x+", "x", re.sub("%+", "%", shape)):
        case "" | "x":
            return lambda x: pc.equal(x, pa.scalar(text))
        case "x%":
            return lambda x: pc.starts_with(x, text)
        case "%x":
            return lambda x: pc.ends_with(x, text)
        case "%x%":
            return lambda x: pc.match_substring(x, text)
        case _:
            regex = "".join({"%": ".*", "_": "."}.get(part, _escaped(part[-1])) for part in parts)
            return lambda x: pc.match_substring_regex(x, f"(?s)\\A{regex}\\z")


def _like_parts(pattern: str, escape: str | None) -> list[str] | None:
    """Every sign of a pattern: `%` and `_` as wildcards, and a sign that stands for itself behind an `=`."""
    made, literal = [], False
    for sign in pattern:
        if literal or (sign != escape and sign not in "%_"):
            made.append(f"={sign}")
            literal = False
        elif sign == escape:
            literal = True
        else:
            made.append(sign)
    return None if literal else made


def _escaped(sign: str) -> str:
    return sign if sign.isascii() and sign.isalnum() else f"\\x{{{ord(sign):x}}}"
