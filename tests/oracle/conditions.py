"""Conditions for random questions, each said twice: as SQL text and as Python with SQL's three-valued logic.

The texts stay inside the product's expression language, so that the same words can be given to it.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.oracle.recorded import Condition

Truth = bool | None
Seen = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Phrase:
    """One condition in both tongues."""

    sql: str
    holds: Condition


def both(first: Truth, second: Truth) -> Truth:
    """SQL's AND: false wins over unknown."""
    return False if first is False or second is False else None if first is None or second is None else True


def either(first: Truth, second: Truth) -> Truth:
    """SQL's OR: true wins over unknown."""
    return negated(both(negated(first), negated(second)))


def negated(one: Truth) -> Truth:
    """SQL's NOT: the opposite of unknown is unknown."""
    return None if one is None else not one


def compared(compare: Callable[[object, object], bool], first: object, second: object) -> Truth:
    """A comparison is unknown if one side is null."""
    return None if first is None or second is None else compare(first, second)


def _less(first: str, last: str) -> Phrase:
    return Phrase(f"{first} < {last}", lambda seen: compared(operator.lt, seen[first], seen[last]))


def _sum_differs(first: str, last: str) -> Phrase:
    def holds(seen: Seen) -> Truth:
        known = seen[first] is not None and seen[last] is not None
        return seen[first] + seen[last] != 3 if known else None  # type: ignore[operator]

    return Phrase(f"{first} + {last} <> 3", holds)


def _known(first: str, last: str) -> Phrase:
    return Phrase(f"{last} is not null", lambda seen: seen[last] is not None)


def _equal_or_unknown(first: str, last: str) -> Phrase:
    return Phrase(
        f"{first} = {last} or {last} is null",
        lambda seen: either(compared(operator.eq, seen[first], seen[last]), seen[last] is None),
    )


def _not_both(first: str, last: str) -> Phrase:
    return Phrase(
        f"not ({first} = {last} and {first} > 1)",
        lambda seen: negated(
            both(compared(operator.eq, seen[first], seen[last]), compared(operator.gt, seen[first], 1))
        ),
    )


def _listed(first: str, last: str) -> Phrase:
    return Phrase(f"{first} in (0, 1)", lambda seen: None if seen[first] is None else seen[first] in (0, 1))


def _between(first: str, last: str) -> Phrase:
    return Phrase(
        f"{last} between 1 and 2",
        lambda seen: both(compared(operator.ge, seen[last], 1), compared(operator.le, seen[last], 2)),
    )


_MAKERS: Final = (_less, _sum_differs, _known, _equal_or_unknown, _not_both, _listed, _between)


def phrases(streams: Sequence[str]) -> list[Phrase]:
    """The conditions over column v of the first and the last of these streams."""
    return [make(f"{streams[0]}.v", f"{streams[-1]}.v") for make in _MAKERS]
