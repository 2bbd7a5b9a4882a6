"""What a client cannot mend by itself."""

from joinery.model.errors import TryAgain, UserMustAct


class Unreachable(TryAgain):
    """Nobody answers at the address, or no longer."""

    def __init__(self, address: str, why: str, remedy: str = "") -> None:
        self.address = address
        remedy = remedy or "start it with joinery run, or check host, port and network"
        super().__init__(f"found {why} at {address}, wanted a running query; {remedy}")


class Refused(UserMustAct):
    """The other side did not take a batch, a producer, a token or a certificate, for the reason that it gives."""


class ResultsGone(UserMustAct):
    """The results after a token are no longer kept."""
