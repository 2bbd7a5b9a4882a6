"""Types inside expressions: how columns are read, what compares with what, and how values are brought to one type.

Reading a column widens it: all integers to int64 (uint64 stays, and computes as decimal(20,0)), binary(N) to binary, an
instant to UTC. Two types meet as in DuckDB: integer < decimal < float32 < float64; a date meets a timestamp as its
midnight; timestamps meet in the finer unit, and only with a timezone on both sides or on none. Everything else does not
meet: texts are not numbers.
"""

from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from joinery.model.expression_kernels import Datum, null_of, rescale_time
from joinery.model.expression_literals import DateValue, TimestampValue
from joinery.model.expression_tree import Value
from joinery.model.time import NS_PER_UNIT
from joinery.model.types import PLAIN, ColumnType, Family, decimal_shape, decimal_type

INT: Final = PLAIN["int64"]
UINT: Final = PLAIN["uint64"]
FLOAT32: Final = PLAIN["float32"]
FLOAT64: Final = PLAIN["float64"]
TEXT: Final = PLAIN["string"]
BYTES: Final = PLAIN["binary"]
BOOL: Final = PLAIN["bool"]
NULL: Final = ColumnType("null", pa.null(), Family.NULL)

MAX_DIGITS: Final = 76
"""Digits of a decimal inside an expression (decimal256)."""


class NoCommonType(Exception):
    """Two types that do not meet; the caller knows the place, and tells it."""


def read_type(kind: ColumnType) -> ColumnType:
    """The type in which an expression reads a column."""
    if kind.family is Family.INTEGER:
        return kind if kind == UINT else INT
    if kind.family is Family.TIMESTAMP:
        return timestamp_type(kind.arrow.unit, kind.has_timezone)
    return BYTES if kind.family is Family.BYTES else kind


def timestamp_type(unit: str, zoned: bool) -> ColumnType:
    """A timestamp of this unit, an instant in UTC if zoned."""
    name = f"timestamp({unit}, UTC)" if zoned else f"timestamp({unit})"
    return ColumnType(name, pa.timestamp(unit, "UTC" if zoned else None), Family.TIMESTAMP)


def literal(value: Value) -> tuple[ColumnType, pa.Scalar]:
    """Type and Arrow value of a literal; `OverflowError` if no type holds it."""
    match value:
        case None:
            return NULL, pa.scalar(None)
        case bool():
            return BOOL, pa.scalar(value)
        case int() if -(2**63) <= value < 2**63:
            return INT, pa.scalar(value, pa.int64())
        case int() | Decimal():
            kind = _decimal_of(Decimal(value))
            return kind, pa.scalar(Decimal(value), kind.arrow)
        case float():
            return FLOAT64, pa.scalar(value, pa.float64())
        case str():
            return TEXT, pa.scalar(value, pa.string())
        case DateValue(days=days):
            return PLAIN["date"], pa.scalar(days, pa.int32()).cast(pa.date32())
        case TimestampValue(count=count, unit=unit, zoned=zoned):
            if not -(2**63) <= count < 2**63:
                raise OverflowError
            kind = timestamp_type(unit, zoned)
            return kind, pa.scalar(count, pa.int64()).cast(kind.arrow)


def _decimal_of(value: Decimal) -> ColumnType:
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    return decimal_type(max(len(digits) + max(0, int(exponent)), scale, 1), scale)


def common_type(kinds: Sequence[ColumnType]) -> ColumnType:
    """The type in which all of these meet; `NoCommonType` if there is none."""
    return reduce(_meet, kinds)


def _meet(left: ColumnType, right: ColumnType) -> ColumnType:
    if left == right or right is NULL:
        return left
    if left is NULL:
        return right
    if left.is_numeric and right.is_numeric:
        return _meet_numbers(left, right)
    if {left.family, right.family} <= {Family.DATE, Family.TIMESTAMP}:
        return _meet_times(left, right)
    raise NoCommonType


def _meet_numbers(left: ColumnType, right: ColumnType) -> ColumnType:
    if FLOAT64 in (left, right):
        return FLOAT64
    if FLOAT32 in (left, right):
        return FLOAT32
    (left_digits, left_scale), (right_digits, right_scale) = decimal_shape(left), decimal_shape(right)
    scale = max(left_scale, right_scale)
    return decimal_within(max(left_digits - left_scale, right_digits - right_scale) + scale, scale)


def _meet_times(left: ColumnType, right: ColumnType) -> ColumnType:
    if left.has_timezone != right.has_timezone:
        raise NoCommonType
    units = [kind.arrow.unit if kind.family is Family.TIMESTAMP else "s" for kind in (left, right)]
    return timestamp_type(min(units, key=NS_PER_UNIT.__getitem__), left.has_timezone)


def decimal_within(digits: int, scale: int) -> ColumnType:
    """The decimal of so many digits; `NoCommonType` if no decimal has so many."""
    if digits > MAX_DIGITS:
        raise NoCommonType
    return decimal_type(digits, scale)


def convert(value: Datum, source: ColumnType, target: ColumnType) -> Datum:
    """A value in the type where it meets another; null where it does not fit (only times far from today can miss)."""
    if source == target:
        return value
    if source is NULL:
        return null_of(target.arrow)
    if target.family is Family.TIMESTAMP:
        seconds = value.cast(pa.timestamp("s")) if source.family is Family.DATE else value
        factor = NS_PER_UNIT[seconds.type.unit] // NS_PER_UNIT[target.arrow.unit]
        return rescale_time(seconds, factor, target.arrow)
    if target.family is Family.FLOAT and source.family is Family.DECIMAL and isinstance(value, pa.Scalar):
        return pa.scalar(None if not value.is_valid else float(value.as_py()), target.arrow)
    return pc.cast(value, target.arrow, safe=False)
