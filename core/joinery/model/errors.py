"""The errors of Joinery: one root, branches by who must act.

JoineryError
 ├─ UserMustAct   a bad spec, batch or setting: shown to the user, never retried
 │   ├─ BadSpec         a query that cannot run; carries every complaint at once
 │   ├─ BadExpression   a `where`, `filter` or `select` text; shows the place in it
 │   └─ BadBatch        rows that do not fit their stream; the batch is refused whole, nothing of it is kept
 ├─ TryAgain      may pass later; the caller backs off
 └─ Bug           an invariant of ours broke: stop and keep the story

Every message says what was found, what is wanted, and the remedy.
"""

from dataclasses import dataclass


class JoineryError(Exception):
    """The root of all errors that Joinery raises on purpose."""


class UserMustAct(JoineryError):
    """Only the user can mend this; trying again will not help."""


class TryAgain(JoineryError):
    """May pass later without anybody doing anything."""


class Bug(JoineryError):
    """An invariant of Joinery itself broke."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that is wrong with an input, and what to do about it."""

    field: str
    found: str
    wanted: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.field}: found {self.found}, wanted {self.wanted}; {self.remedy}"


class BadSpec(UserMustAct):
    """A query spec that cannot run, with every complaint about it."""

    def __init__(self, complaints: list[Complaint]) -> None:
        self.complaints = tuple(complaints)
        super().__init__("\n".join(str(complaint) for complaint in complaints))


class BadExpression(UserMustAct):
    """A text of the expression language that cannot be used; `at` is the offset of the offending place."""

    def __init__(self, text: str, at: int, found: str, wanted: str, remedy: str) -> None:
        self.text, self.at, self.found, self.wanted, self.remedy = text, at, found, wanted, remedy
        super().__init__(f"found {found}, wanted {wanted}; {remedy}\n  {text}\n  {' ' * at}^")


class BadBatch(UserMustAct):
    """A batch that does not fit its stream: refused whole."""

    def __init__(self, stream: str, found: str, wanted: str, remedy: str) -> None:
        self.stream, self.found, self.wanted, self.remedy = stream, found, wanted, remedy
        super().__init__(f"stream {stream}: found {found}, wanted {wanted}; {remedy}")


def require(holds: bool, message: str) -> None:
    """Stop with a `Bug` unless an invariant of ours holds."""
    if not holds:
        raise Bug(message)
