"""What a program says of a workload; only programs that say the same are timed."""

from dataclasses import dataclass

from joinery.model.errors import JoineryError


class BenchError(JoineryError):
    """A tool is missing or failed, or an answer is wrong; the message says what."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The pairs of a join: how many, and the sum of (id1 * 1000003 + id2 * 7919) % 1000000007 over them."""

    pairs: int
    checksum: int
