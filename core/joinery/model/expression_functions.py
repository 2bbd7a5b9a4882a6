"""The functions of the expression language, each with the meaning that it has in DuckDB.

| function                      | of                  | gives                                              |
|-------------------------------|---------------------|----------------------------------------------------|
| abs(x)                        | number              | its size; null where it does not fit               |
| round(x), round(x, n)         | number, n a literal | n digits behind the point, half away from zero     |
| floor(x), ceil(x)             | number              | next whole number below or above, in the type of x |
| lower(s), upper(s)            | text                | by Unicode's simple case mapping                   |
| length(s)                     | text, binary        | characters, bytes                                  |
| substr(s, from), (s, from, n) | text, literals      | n characters from the first, which is 1            |
| coalesce(a, b, ...)           | anything that meets | the first that is not null                         |
| greatest(a, ...), least(...)  | anything that meets | nulls are passed over; NaN is the greatest         |
| year, month, day, hour (t)    | date, timestamp     | the part; of an instant in UTC; years -32767 to 32767         |
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from joinery.model.expression_kernels import Datum, absolute_integer, pick, round_number
from joinery.model.expression_types import BYTES, INT, NULL, TEXT, common_type, decimal_within, timestamp_type
from joinery.model.types import ColumnType, Family

Kernel = Callable[..., Datum]


class Unfit(Exception):
    """Arguments that a function does not take: found, wanted."""

    def __init__(self, found: str, wanted: str) -> None:
        super().__init__(found, wanted)
        self.found, self.wanted = found, wanted


@dataclass(frozen=True, slots=True)
class Argument:
    """What a function may know of an argument before any row: its type, and its value if it is a literal."""

    kind: ColumnType
    constant: object = None


@dataclass(frozen=True, slots=True)
class Call:
    """A function settled for its arguments: the types it wants them in, the type it gives, and the kernel."""

    takes: tuple[ColumnType, ...]
    gives: ColumnType
    kernel: Kernel


@dataclass(frozen=True, slots=True)
class Function:
    """A function: how many arguments it takes, and how it is settled for them."""

    usage: str
    fewest: int
    most: int
    settle: Callable[[Sequence[Argument]], Call]


def _abs(arguments: Sequence[Argument]) -> Call:
    kind = _number(arguments[0])
    if kind.family is Family.INTEGER:
        return Call((kind,), kind, absolute_integer if kind == INT else _same)
    return Call((kind,), kind, pc.abs)


def _same(operand: Datum) -> Datum:
    return operand


def _number(argument: Argument) -> ColumnType:
    kind = INT if argument.kind is NULL else argument.kind
    if not kind.is_numeric:
        raise Unfit(kind.name, "a number")
    return kind


def _round(arguments: Sequence[Argument]) -> Call:
    digits = arguments[1].constant if len(arguments) == 2 else 0
    if not isinstance(digits, int) or isinstance(digits, bool) or not 0 <= digits <= 15:
        raise Unfit("another number of digits", "a literal from 0 to 15")
    return _rounding(arguments, lambda x: round_number(x, digits))


def _floor(arguments: Sequence[Argument]) -> Call:
    return _rounding(arguments, pc.floor)


def _ceil(arguments: Sequence[Argument]) -> Call:
    return _rounding(arguments, pc.ceil)


def _rounding(arguments: Sequence[Argument], kernel: Kernel) -> Call:
    """Integers stay as they are; a decimal gets one digit more: 9.9 becomes 10.0."""
    kind = _number(arguments[0])
    others = tuple(argument.kind for argument in arguments[1:])
    if kind.family is Family.INTEGER:
        return Call((kind, *others), kind, lambda x, *_: x)
    if kind.family is Family.DECIMAL:
        kind = decimal_within(kind.arrow.precision + 1, kind.arrow.scale)
    return Call((kind, *others), kind, lambda x, *_: kernel(x))


def _text_function(kernel: Kernel) -> Callable[[Sequence[Argument]], Call]:
    def settle(arguments: Sequence[Argument]) -> Call:
        _text(arguments[0])
        return Call((TEXT,), TEXT, kernel)

    return settle


def _text(argument: Argument) -> None:
    if argument.kind not in (TEXT, NULL):
        raise Unfit(argument.kind.name, "a text")


def _length(arguments: Sequence[Argument]) -> Call:
    if arguments[0].kind == BYTES:
        return Call((BYTES,), INT, lambda x: pc.binary_length(x).cast(pa.int64()))
    _text(arguments[0])
    return Call((TEXT,), INT, lambda x: pc.utf8_length(x).cast(pa.int64()))


def _substr(arguments: Sequence[Argument]) -> Call:
    _text(arguments[0])
    bounds = [argument.constant for argument in arguments[1:]]
    if not all(isinstance(bound, int) and not isinstance(bound, bool) and 0 <= bound < 2**31 for bound in bounds):
        raise Unfit("other bounds", "literals: from 1 on, and a length that is not negative")
    start = int(str(bounds[0])) - 1
    if start < 0:
        raise Unfit("a start of 0", "1 for the first character")
    stop = start + int(str(bounds[1])) if len(bounds) == 2 else None
    kinds = tuple(argument.kind for argument in arguments[1:])
    return Call((TEXT, *kinds), TEXT, lambda x, *_: pc.utf8_slice_codeunits(x, start=start, stop=stop))


def _meeting(kernel: Callable[[list[Datum]], Datum]) -> Callable[[Sequence[Argument]], Call]:
    def settle(arguments: Sequence[Argument]) -> Call:
        kind = common_type([argument.kind for argument in arguments])
        return Call((kind,) * len(arguments), kind, lambda *data: kernel(list(data)))

    return settle


def _part(kernel: Kernel, *families: Family) -> Callable[[Sequence[Argument]], Call]:
    def settle(arguments: Sequence[Argument]) -> Call:
        kind = timestamp_type("s", zoned=False) if arguments[0].kind is NULL else arguments[0].kind
        if kind.family not in families:
            raise Unfit(kind.name, " or ".join(families))
        naive = pa.timestamp(kind.arrow.unit) if kind.has_timezone else kind.arrow
        return Call((kind,), INT, lambda x: kernel(x.cast(naive)).cast(pa.int64()))

    return settle


_DAY: Final = (Family.DATE, Family.TIMESTAMP)
FUNCTIONS: Final[dict[str, Function]] = {
    "abs": Function("abs(number)", 1, 1, _abs),
    "round": Function("round(number, digits)", 1, 2, _round),
    "floor": Function("floor(number)", 1, 1, _floor),
    "ceil": Function("ceil(number)", 1, 1, _ceil),
    "lower": Function("lower(text)", 1, 1, _text_function(pc.utf8_lower)),
    "upper": Function("upper(text)", 1, 1, _text_function(pc.utf8_upper)),
    "length": Function("length(text)", 1, 1, _length),
    "substr": Function("substr(text, from, length)", 2, 3, _substr),
    "coalesce": Function("coalesce(a, b, ...)", 1, 64, _meeting(lambda data: pc.coalesce(*data))),
    "greatest": Function(
        "greatest(a, b, ...)", 1, 64, _meeting(lambda data: reduce(lambda a, b: pick(">", a, b), data))
    ),
    "least": Function("least(a, b, ...)", 1, 64, _meeting(lambda data: reduce(lambda a, b: pick("<", a, b), data))),
    "year": Function("year(date)", 1, 1, _part(pc.year, *_DAY)),
    "month": Function("month(date)", 1, 1, _part(pc.month, *_DAY)),
    "day": Function("day(date)", 1, 1, _part(pc.day, *_DAY)),
    "hour": Function("hour(timestamp)", 1, 1, _part(pc.hour, Family.TIMESTAMP)),
}
