"""Parameters are checked at birth: a generator that exists can generate."""

from numbers import Integral, Real

from joinery.model.errors import UserMustAct


class BadParameter(UserMustAct):
    """A generator was given a value that it cannot use."""

    def __init__(self, field: str, found: object, wanted: str, remedy: str) -> None:
        self.field, self.found, self.wanted, self.remedy = field, found, wanted, remedy
        super().__init__(f"{field}: found {found!r}, wanted {wanted}; {remedy}")


def want(holds: bool, field: str, found: object, wanted: str, remedy: str) -> None:
    """Refuse `found` unless the condition holds."""
    if not holds:
        raise BadParameter(field, found, wanted, remedy)


def want_whole(field: str, found: object, low: int, high: int, remedy: str) -> None:
    """Refuse anything but a whole number in low..high, both inclusive."""
    fits = isinstance(found, Integral) and not isinstance(found, bool) and low <= int(found) <= high
    want(fits, field, found, f"a whole number in {low}..{high}", remedy)


def want_real(field: str, found: object, low: float, high: float, remedy: str) -> None:
    """Refuse anything but a number in [low, high]; NaN lies nowhere."""
    fits = isinstance(found, Real) and not isinstance(found, bool) and low <= float(found) <= high
    want(fits, field, found, f"a number in [{low:g}, {high:g}]", remedy)


def want_share(field: str, found: object, remedy: str) -> None:
    """Refuse anything but a number strictly between 0 and 1."""
    fits = isinstance(found, Real) and 0 < float(found) < 1
    want(fits, field, found, "a number in (0, 1), without its ends", remedy)


def want_seed(found: object) -> None:
    """Refuse what is not a 64-bit seed."""
    want_whole("seed", found, 0, 2**64 - 1, "give the same number to get the same rows again")


def want_rows(start: int, stop: int) -> None:
    """Refuse what is not a range of rows [start, stop)."""
    want_whole("start", start, 0, 2**62, "rows are numbered from 0")
    want_whole("stop", stop, start, 2**62, "ask for rows [start, stop)")
