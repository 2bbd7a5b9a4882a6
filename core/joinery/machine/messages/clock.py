"""Clock: how the gateway learns how far the clocks of workers and collector are from its own (`flow.clocks`)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ping:
    """What time is it where you are? And what the gateway has found so far."""

    sent_ns: int
    """By the gateway's clock."""
    ahead_ns: int
    """How far the receiver's clock is ahead of the gateway's, by the pings before."""


@dataclass(frozen=True, slots=True)
class Pong:
    """The answer, by the clock of the one who was asked."""

    sent_ns: int
    """As the ping said."""
    clock_ns: int
