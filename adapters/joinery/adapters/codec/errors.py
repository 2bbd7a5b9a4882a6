"""What cannot be read: of a user, who must act, or of another part of Joinery, which should not have sent it."""

from joinery.model.complaints import printable
from joinery.model.errors import JoineryError, UserMustAct


class WireError(JoineryError):
    """A message of another part of Joinery that cannot be read: close the connection, and go on with the others."""

    def __init__(self, where: str, found: str, wanted: str) -> None:
        self.where, self.found, self.wanted = where, printable(found), wanted
        super().__init__(f"{where}: found {self.found}, wanted {wanted}; run the same version of Joinery everywhere")


class BadMessage(UserMustAct):
    """A message of a producer or subscriber that cannot be read; `sequence` is that of its batch, if it is known."""

    def __init__(self, found: str, wanted: str, remedy: str, sequence: int | None = None) -> None:
        self.found, self.wanted, self.remedy, self.sequence = printable(found), wanted, remedy, sequence
        super().__init__(f"found {self.found}, wanted {wanted}; {remedy}")

    @staticmethod
    def of(error: WireError, sequence: int | None = None) -> "BadMessage":
        """The same complaint, for somebody who wrote the client."""
        where = f"{error.found} in {error.where}"
        return BadMessage(where, error.wanted, "write messages as protos/joinery/v1 says", sequence)
