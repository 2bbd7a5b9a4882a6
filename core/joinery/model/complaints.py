"""How a refused value explains itself: found, wanted, remedy.

The parsers of this package (`types`, `quantities`, `select`) know nothing of the field that they parse for. They raise
`BadValue`; whoever knows the field makes a `Complaint` of it. `BadValue` is a ValueError, so that a pydantic validator
may raise it and the other fields of the same spec are still looked at: all complaints come at once.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from joinery.model.errors import Complaint, UserMustAct

MAX_SHOWN: Final = 80
"""Characters of a found value that a message repeats; a huge input must not make a huge message."""


class BadValue(UserMustAct, ValueError):
    """A value that cannot be used, wherever it stands."""

    def __init__(self, found: str, wanted: str, remedy: str) -> None:
        self.found, self.wanted, self.remedy = printable(found), printable(wanted), printable(remedy)
        super().__init__(f"found {self.found}, wanted {self.wanted}; {self.remedy}")

    def complaint(self, field: str) -> Complaint:
        return Complaint(field, self.found, self.wanted, self.remedy)


def printable(text: str) -> str:
    """A text on one line that every terminal and encoding takes: what cannot be seen is escaped."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def show(value: object) -> str:
    """A value as a message shows it: as the user would have written it, on one line, and short."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"a mapping of {len(value)}" if value else "an empty mapping"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}" if value else "an empty list"
    return _short(value)


def _short(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 4 * MAX_SHOWN:
        return f"a number of {value.bit_length()} bits"
    text = repr(value[: MAX_SHOWN + 1]) if isinstance(value, (str, bytes)) else repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant, if one is near; upper and lower case do not count.

    Near is a slip of the fingers, or a part of the name (`len` for length, `joinType` for type).
    """
    by_lower, lowered = {candidate.lower(): candidate for candidate in known}, name[:MAX_SHOWN].lower()
    close = get_close_matches(lowered, by_lower, n=1, cutoff=0.7)
    close += [held for held in by_lower if min(len(held), len(lowered)) >= 3 and (held in lowered or lowered in held)]
    return by_lower[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The remedy for an unknown name: the nearest known one, else the list of them."""
    candidates = list(known)
    near = nearest(name, candidates)
    return f"did you mean {near}?" if near is not None else _one_of(candidates)


def which_column(stream: str, column: str, known: Iterable[tuple[str, str]]) -> str:
    """The remedy for an unknown column: a near one of that stream, or that column of a stream with another name."""
    pairs = list(known)
    near = nearest(column, [name for held, name in pairs if held == stream])
    if near is not None:
        return f"did you mean {stream}.{near}?"
    elsewhere = [held for held, name in pairs if name == column and held != stream]
    if elsewhere:
        return f"did you mean {nearest(stream, elsewhere) or elsewhere[0]}.{column}?"
    return _one_of([f"{held}.{name}" for held, name in pairs])


def _one_of(candidates: list[str]) -> str:
    if not candidates:
        return "take it out"
    return f"use one of: {', '.join(candidates[:12])}" + (", ..." if len(candidates) > 12 else "")
