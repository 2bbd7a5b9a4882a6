"""Literals of the expression language: numbers, dates and timestamps as exact values."""

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from math import isinf
from typing import Final

from joinery.model.errors import BadExpression

MAX_DIGITS: Final = 38
_EPOCH: Final = date(1970, 1, 1).toordinal()
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", re.ASCII)
_TIMESTAMP: Final = re.compile(
    _DATE.pattern
    + r"(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?\s*(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?",
    re.ASCII,
)
_UNITS: Final = {0: ("s", 1), 3: ("ms", 10**3), 6: ("us", 10**6), 9: ("ns", 10**9)}


@dataclass(frozen=True, slots=True)
class DateValue:
    """Days since 1970-01-01."""

    days: int


@dataclass(frozen=True, slots=True)
class TimestampValue:
    """Units since 1970-01-01 00:00, the coarsest unit that is exact; `zoned` if the text fixes an instant."""

    count: int
    unit: str
    zoned: bool


def parse_number(text: str, at: int, word: str) -> int | Decimal | float:
    """An integer, a decimal (with a point) or a float (with an exponent), as DuckDB reads them."""
    if "e" in word.lower():
        value = float(word)
        if isinf(value):
            raise BadExpression(text, at, word[:40], "a number that a float64 can hold", "write a smaller exponent")
        return value
    number = Decimal(word)
    if len(number.as_tuple().digits) > MAX_DIGITS or -int(number.as_tuple().exponent) > MAX_DIGITS:
        raise BadExpression(
            text, at, f"{len(word)} digits", f"a number of at most {MAX_DIGITS} digits", "write it as a float: 1e40"
        )
    return number if "." in word else int(number)


def parse_date(text: str, at: int, word: str) -> DateValue:
    """The literal date '2024-01-31'."""
    match = _DATE.fullmatch(word)
    days = _days(match) if match else None
    if days is None:
        raise BadExpression(text, at, f"'{word[:40]}'", "a date that exists", "write date '2024-01-31'")
    return DateValue(days)


def parse_timestamp(text: str, at: int, word: str) -> TimestampValue:
    """The literal timestamp '2024-01-31 12:00:00.5', or with Z or an offset for an instant."""
    match = _TIMESTAMP.fullmatch(word.strip())
    days = _days(match) if match else None
    hour, minute, second = (int(part or 0) for part in match.group(4, 5, 6)) if match else (24, 0, 0)
    if match is None or days is None or hour > 23 or minute > 59 or second > 59:
        wanted = "a timestamp that exists"
        raise BadExpression(text, at, f"'{word[:40]}'", wanted, "write timestamp '2024-01-31 12:00:00', with Z for UTC")
    fraction = (match[7] or "").rstrip("0")
    places = 3 * ((len(fraction) + 2) // 3)
    unit, per_second = _UNITS[places]
    seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - _offset_seconds(match[8])
    return TimestampValue(seconds * per_second + int(fraction.ljust(places, "0") or 0), unit, match[8] is not None)


def _days(match: re.Match[str]) -> int | None:
    try:
        return date(int(match[1]), int(match[2]), int(match[3])).toordinal() - _EPOCH
    except ValueError:
        return None


def _offset_seconds(offset: str | None) -> int:
    if offset is None or offset == "Z":
        return 0
    digits = offset[1:].replace(":", "").ljust(4, "0")
    seconds = int(digits[:2]) * 3_600 + int(digits[2:]) * 60
    return -seconds if offset[0] == "-" else seconds
