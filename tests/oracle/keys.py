"""Kinds of join keys for random histories: few values each, chosen where a careless comparison or hash goes wrong.

A kind may have several forms, i.e. Arrow types that hold the same values: streams may store one key in different widths
or scales, and equal values must still meet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class KeyKind:
    """A type of key: `values` are whole keys, `types` the Arrow types of its columns in each form."""

    name: str
    values: tuple[tuple[object, ...], ...]
    types: tuple[tuple[pa.DataType, ...], ...]

    @property
    def forms(self) -> int:
        return len(self.types)

    def names(self, stream: int) -> tuple[str, ...]:
        """The key columns; streams call the first one differently."""
        return (("id", "ref")[stream % 2], "part")[: len(self.types[0])]

    def key(self, index: int, null: int) -> tuple[object, ...]:
        """One key; column `null` of it is null, if there is such a column."""
        return tuple(
            None if column == null else value for column, value in enumerate(self.values[index % len(self.values)])
        )


def _single(name: str, values: Sequence[object], *forms: pa.DataType) -> KeyKind:
    return KeyKind(name, tuple((value,) for value in values), tuple((form,) for form in forms))


def _instant(*fields: int) -> datetime:
    return datetime(*fields, tzinfo=UTC).replace(tzinfo=None)


KEY_KINDS: Final = (
    _single("int", (1, 0, -1, 7, 2**31 - 1, -(2**31)), pa.int64(), pa.int32()),
    _single("big", (2**63 - 1, -(2**63), 2**62, 2**53 + 1, 2**53, 0), pa.int64()),
    _single("string", ("a", "", "A", "ä", "a" * 40, "a "), pa.string(), pa.large_string()),
    KeyKind(
        "composite",
        ((1, "a"), (1, "b"), (2, "a"), (2, "b"), (11, ""), (1, "1")),
        ((pa.int64(), pa.string()), (pa.int32(), pa.large_string())),
    ),
    _single("date", [date(1970, 1, 1 + day) for day in range(4)] + [date(1, 1, 1), date(9999, 12, 31)], pa.date32()),
    _single(
        "timestamp",
        [_instant(2024, 2, 29, 0, 0, 0, us) for us in (0, 1, 999_999)] + [_instant(1969, 12, 31), _instant(2100, 1, 1)],
        pa.timestamp("us"),
        pa.timestamp("ns"),
    ),
    _single(
        "decimal",
        [Decimal(text) for text in ("1.50", "0.00", "-0.01", "15.00", "99999999.99", "-99999999.99")],
        pa.decimal128(10, 2),
        pa.decimal128(20, 4),
    ),
    _single("bool", (True, False), pa.bool_()),
    _single("binary", (b"\x00", b"", b"\x00\x00", b"a", b"\xff", b"a" * 40), pa.binary(), pa.large_binary()),
)
