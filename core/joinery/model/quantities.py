"""Durations, sizes and windows, as a user writes them.

Rule 1: a number of time or bytes always carries its unit; a bare `10` is refused, because nobody can tell seconds from
milliseconds.
Rule 2: a duration lies in [0, 2^62) nanoseconds, so that time + window never overflows int64 (`joinery.model.time`); a
window that shall never end is written `unbounded`.
Rule 3: `format_*` is the inverse of `parse_*`: a spec written out and read again is the same spec.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Final, NewType

from joinery.model.complaints import BadValue, show
from joinery.model.time import UNBOUNDED

Nanoseconds = NewType("Nanoseconds", int)
Bytes = NewType("Bytes", int)

MAX_COUNT: Final = 2**31
"""Rows of a count window at most."""
MAX_BYTES: Final = 2**50

NS_PER_DURATION_UNIT: Final = {
    "d": 86_400_000_000_000, "h": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000,
    "ms": 1_000_000, "us": 1_000, "ns": 1,
}  # fmt: skip
BYTES_PER_UNIT: Final = {
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
}  # fmt: skip

_DURATION_PART: Final = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)(d|h|ms|m|us|ns|s)", re.ASCII)
_DURATION: Final = re.compile(rf"(?:{_DURATION_PART.pattern})+", re.ASCII)
_SIZE: Final = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)(Ki|Mi|Gi|Ti|k|K|M|G|T)", re.ASCII)
DURATION_PATTERN: Final = r"^([0-9]+(\.[0-9]+)?(d|h|ms|m|us|ns|s))+$"
SIZE_PATTERN: Final = r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|k|K|M|G|T)$"
_WANTED_DURATION: Final = "a duration such as 200ms, 5s, 10m, 12h or 1h30m"
_WANTED_SIZE: Final = "a size in bytes such as 4Ki, 1.5Mi, 64Mi or 2Gi"


def parse_duration(value: object) -> Nanoseconds:
    """Nanoseconds of a text such as `1h30m`; parts go from the largest unit to the smallest."""
    if not isinstance(value, str):
        remedy = f"add the unit: {value}s, {value}ms" if _is_count(value) else "write it with its unit, for example 10m"
        raise BadValue(show(value), _WANTED_DURATION, remedy)
    if not _DURATION.fullmatch(value):
        raise BadValue(show(value), _WANTED_DURATION, _duration_remedy(value))
    parts = [(Decimal(number), NS_PER_DURATION_UNIT[unit]) for number, unit in _DURATION_PART.findall(value)]
    units = [unit for _, unit in parts]
    if any(later >= earlier for earlier, later in pairwise(units)):
        raise BadValue(show(value), "each unit once, from the largest to the smallest", "write for example 1h30m")
    total = sum(number * unit for number, unit in parts)
    if total != int(total):
        raise BadValue(show(value), "a whole number of nanoseconds", "take off the digits that are smaller than 1ns")
    if total >= UNBOUNDED:
        raise BadValue(show(value), "less than 146 years", "write unbounded for a window that never ends")
    return Nanoseconds(int(total))


def _is_count(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e15


def _duration_remedy(value: str) -> str:
    text = value.strip()
    if text.startswith("-"):
        return "a duration cannot be negative; 0s is the smallest"
    if text.isascii() and text.isdigit() and len(text) <= 15:
        return f"add the unit: {text}s, {text}ms"
    if text.lower() in ("unbounded", "infinite", "inf", "forever"):
        return "only a window can be unbounded; write a duration here"
    return "use the units d, h, m, s, ms, us, ns, without spaces"


def format_duration(nanoseconds: int) -> str:
    """The shortest text of whole units that `parse_duration` reads back."""
    if nanoseconds == 0:
        return "0s"
    parts, rest = [], nanoseconds
    for unit, length in NS_PER_DURATION_UNIT.items():
        count, rest = divmod(rest, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def parse_size(value: object) -> Bytes:
    """Bytes of a text such as `1.5Mi` (binary units) or `1M` (decimal ones)."""
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise BadValue(show(value), _WANTED_SIZE, _size_remedy(value))
    total = Decimal(match[1]) * BYTES_PER_UNIT[match[2]]
    if total != int(total):
        raise BadValue(show(value), "a whole number of bytes", "use a smaller unit")
    if total > MAX_BYTES:
        raise BadValue(show(value), "at most 1024Ti", "use a smaller number")
    return Bytes(int(total))


def _size_remedy(value: object) -> str:
    text = str(value).strip() if isinstance(value, str) or _is_count(value) else ""
    if text.startswith("-"):
        return "a size cannot be negative"
    if text.isascii() and text.isdigit() and len(text) <= 15:
        return f"add the unit: {text}Ki, {text}Mi"
    return "use the units Ki, Mi, Gi, Ti (or k, M, G, T for powers of 1000), without B and without spaces"


def format_size(size: int) -> str:
    """The text in the largest unit of which the size is a multiple, or a multiple of its half."""
    for unit in ("Ti", "Gi", "Mi", "Ki", "T", "G", "M"):
        if size >= BYTES_PER_UNIT[unit] and 2 * size % BYTES_PER_UNIT[unit] == 0:
            return f"{(Decimal(size) / BYTES_PER_UNIT[unit]).normalize():f}{unit}"
    return f"{Decimal(size) / 1000:f}k"


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The rows of the last `length_ns` nanoseconds, both bounds inclusive; 0 is the same instant only."""

    length_ns: Nanoseconds

    @property
    def is_unbounded(self) -> bool:
        return self.length_ns >= UNBOUNDED

    def __str__(self) -> str:
        return "unbounded" if self.is_unbounded else format_duration(self.length_ns)


@dataclass(frozen=True, slots=True)
class CountWindow:
    """The last `rows` rows of the whole stream, in the order of rows."""

    rows: int

    def __str__(self) -> str:
        return f"{{count: {self.rows}}}"


Window = TimeWindow | CountWindow
UNBOUNDED_WINDOW: Final = TimeWindow(Nanoseconds(UNBOUNDED))


def parse_window(value: object) -> Window:
    """A window as a spec writes it: a duration, `{count: N}`, or `unbounded`."""
    wanted = "a duration such as 10m, {count: 1000}, 0s or unbounded"
    if isinstance(value, dict):
        return _parse_count(value)
    if value == "unbounded":
        return UNBOUNDED_WINDOW
    try:
        return TimeWindow(parse_duration(value))
    except BadValue as bad:
        if bad.wanted == _WANTED_DURATION:
            remedy = "write unbounded" if "can be unbounded" in bad.remedy else bad.remedy
            raise BadValue(bad.found, wanted, remedy) from None
        raise


def _parse_count(value: dict[object, object]) -> CountWindow:
    count = value.get("count")
    if set(value) != {"count"}:
        names = ", ".join(sorted(str(show(name)) for name in value)[:5]) or "an empty mapping"
        raise BadValue(names, "only count in a window's mapping", "write {count: 1000}, or a duration such as 10m")
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_COUNT:
        raise BadValue(f"count {show(count)}", f"a whole number of rows, 1 to {MAX_COUNT}", "write {count: 1000}")
    return CountWindow(count)


def format_window(window: Window) -> object:
    """What `parse_window` reads back: a text, or a mapping for a count."""
    return {"count": window.rows} if isinstance(window, CountWindow) else str(window)
