"""Column types of a stream's schema, by the names that a user writes.

A name means exactly one Arrow type, and every type belongs to a family. Families decide what compares with what: key
columns can be joined only if there is one form in which all of them are hashed and compared (docs/design.md §4, hash
bits; `check_keys`):

| family    | names                                            | key form                                        |
|-----------|--------------------------------------------------|-------------------------------------------------|
| integer   | int8 .. int64, uint8 .. uint64                   | widest integer; with a decimal: that decimal     |
| decimal   | decimal(p,s), p <= 38                            | one scale for all sides                         |
| float     | float32, float64                                 | refused: equality of floats is not what it seems |
| text      | string                                           | utf8                                            |
| bytes     | binary, binary(N)                                | bytes                                           |
| boolean   | bool                                             | bool                                            |
| date      | date                                             | days                                            |
| timestamp | timestamp(s, ms, us, ns), also (us, UTC)         | ns; with a timezone only with a timezone        |
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pyarrow as pa

from joinery.model.complaints import BadValue, nearest, show

MAX_DECIMAL_DIGITS: Final = 38
MAX_BINARY_WIDTH: Final = 65_536


class Family(StrEnum):
    """Types that compare with each other."""

    INTEGER = "integer"
    FLOAT = "float"
    TEXT = "text"
    BYTES = "bytes"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    DECIMAL = "decimal"
    NULL = "null"
    """Only of the literal `null` in an expression, never of a column."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """One type: its name in a spec, in Arrow, and its family."""

    name: str
    arrow: pa.DataType
    family: Family

    def __str__(self) -> str:
        return self.name

    @property
    def has_timezone(self) -> bool:
        return self.family is Family.TIMESTAMP and self.arrow.tz is not None

    @property
    def is_numeric(self) -> bool:
        return self.family in (Family.INTEGER, Family.DECIMAL, Family.FLOAT)


def _plain(name: str, arrow: pa.DataType, family: Family) -> tuple[str, ColumnType]:
    return name, ColumnType(name, arrow, family)


PLAIN: Final[dict[str, ColumnType]] = dict(
    [
        *(_plain(str(kind), kind, Family.INTEGER) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
        *(_plain(str(kind), kind, Family.INTEGER) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
        _plain("float32", pa.float32(), Family.FLOAT),
        _plain("float64", pa.float64(), Family.FLOAT),
        _plain("string", pa.string(), Family.TEXT),
        _plain("binary", pa.binary(), Family.BYTES),
        _plain("bool", pa.bool_(), Family.BOOLEAN),
        _plain("date", pa.date32(), Family.DATE),
    ]
)

_SYNONYMS: Final = {
    "boolean": "bool", "int": "int64", "integer": "int64", "bigint": "int64", "long": "int64", "uint": "uint64",
    "float": "float32", "real": "float32", "double": "float64", "number": "float64",
    "text": "string", "str": "string", "varchar": "string", "utf8": "string", "bytes": "binary", "blob": "binary",
    "date32": "date", "datetime": "timestamp(us)", "timestamp": "timestamp(us)", "timestamptz": "timestamp(us, UTC)",
    "decimal": "decimal(18,2)", "numeric": "decimal(18,2)",
}  # fmt: skip
_WANTED: Final = (
    "int8..int64, uint8..uint64, float32, float64, string, binary, binary(N), bool, date, "
    "timestamp(s|ms|us|ns), timestamp(us, UTC) or decimal(p,s)"
)
_PARAMETRIC: Final = re.compile(r"(binary|timestamp|decimal)\s*\(([^()]*)\)", re.ASCII)
_TIMEZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+\-/]{0,62}|[+-][0-9]{2}:[0-9]{2}")


def parse_type(name: object) -> ColumnType:
    """The column type with this name, or a `BadValue` that says which names there are."""
    if isinstance(name, str) and len(name) <= 128:
        if name in PLAIN:
            return PLAIN[name]
        if match := _PARAMETRIC.fullmatch(name.strip()):
            return _parse_parametric(match[1], [part.strip() for part in match[2].split(",")], name)
    raise BadValue(show(name), f"a type: {_WANTED}", _remedy(name))


def _remedy(name: object) -> str:
    lowered = name.strip().lower() if isinstance(name, str) else ""
    meant = _SYNONYMS.get(lowered) or nearest(lowered, [*PLAIN, "timestamp(us)"])
    return f"write {meant}" if meant else "write one of these names"


def _parse_parametric(kind: str, parts: list[str], text: str) -> ColumnType:
    if kind == "binary":
        return _binary(parts, text)
    return _timestamp(parts, text) if kind == "timestamp" else _decimal(parts, text)


def _is_number(part: str) -> bool:
    return part.isascii() and part.isdigit() and len(part) <= 9


def _binary(parts: list[str], text: str) -> ColumnType:
    if len(parts) != 1 or not _is_number(parts[0]) or not 1 <= int(parts[0]) <= MAX_BINARY_WIDTH:
        raise BadValue(
            show(text), f"binary(N) with N bytes, 1 to {MAX_BINARY_WIDTH}", "write binary(16), or binary for any length"
        )
    return ColumnType(f"binary({int(parts[0])})", pa.binary(int(parts[0])), Family.BYTES)


def _timestamp(parts: list[str], text: str) -> ColumnType:
    unit, *zone = parts
    if unit not in ("s", "ms", "us", "ns") or len(zone) > 1 or (zone and not _TIMEZONE.fullmatch(zone[0])):
        raise BadValue(
            show(text),
            "timestamp(s|ms|us|ns), with a timezone if its values are instants",
            "write timestamp(us) or timestamp(us, UTC)",
        )
    if not zone:
        return ColumnType(f"timestamp({unit})", pa.timestamp(unit), Family.TIMESTAMP)
    return ColumnType(f"timestamp({unit}, {zone[0]})", pa.timestamp(unit, zone[0]), Family.TIMESTAMP)


def _decimal(parts: list[str], text: str) -> ColumnType:
    numbers = [int(part) for part in parts if _is_number(part)]
    if len(parts) != 2 or len(numbers) != 2 or not (1 <= numbers[0] <= MAX_DECIMAL_DIGITS and numbers[1] <= numbers[0]):
        wanted = f"decimal(p,s) with 1 <= p <= {MAX_DECIMAL_DIGITS} digits, s <= p of them behind the point"
        raise BadValue(show(text), wanted, "write decimal(18,2)")
    return decimal_type(numbers[0], numbers[1])


def decimal_type(precision: int, scale: int) -> ColumnType:
    """A decimal of up to 38 digits, or, inside an expression only, of up to 76."""
    make = pa.decimal128 if precision <= MAX_DECIMAL_DIGITS else pa.decimal256
    return ColumnType(f"decimal({precision},{scale})", make(precision, scale), Family.DECIMAL)


def decimal_shape(kind: ColumnType) -> tuple[int, int]:
    """Precision and scale of a number that is not a float; an integer has as many digits as its largest value."""
    if kind.family is Family.DECIMAL:
        return kind.arrow.precision, kind.arrow.scale
    largest = 2**kind.arrow.bit_width - 1 if kind.name.startswith("u") else 2 ** (kind.arrow.bit_width - 1)
    return len(str(largest)), 0


def check_keys(kinds: Sequence[ColumnType]) -> None:
    """Refuse, with a `BadValue`, key columns (one per stream) that have no common form to be compared in."""
    families = {kind.family for kind in kinds}
    found = " with ".join(kind.name for kind in kinds)
    if Family.FLOAT in families:
        raise BadValue(found, "keys that are not floats", "join on an integer, decimal or string column")
    if Family.DECIMAL in families and families <= {Family.INTEGER, Family.DECIMAL}:
        shapes = [decimal_shape(kind) for kind in kinds]
        if (
            max(precision - scale for precision, scale in shapes) + max(scale for _, scale in shapes)
            > MAX_DECIMAL_DIGITS
        ):
            wanted = f"numbers that share one scale within {MAX_DECIMAL_DIGITS} digits"
            raise BadValue(found, wanted, "give the columns the same decimal(p,s)")
    elif len(families) > 1:
        raise BadValue(found, "key columns of one family in every stream", "give them the same type in every schema")
    elif len({kind.has_timezone for kind in kinds}) > 1:
        wanted = "timestamps that all have a timezone, or all have none"
        raise BadValue(found, wanted, "write timestamp(us, UTC) in every schema")
