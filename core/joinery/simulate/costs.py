"""What work costs: the cost model of the load simulator.

A simulated worker does not join; it is charged. Every constant is chosen once, with its reason, and is the same in all
figures. One of them is fitted: `PAPER_COMPARISON_NS`, so that four workers without fine tuning saturate at 4000
tuples/s in each stream as far as seed 000 reports it: 48 s of mean delay at that rate (figure 8). With 12.2 they would
just reach their limit there; at 14.2 they are past it by as much as the paper's were.

- A nested loop pays for every pair of tuples that it looks at, a hash join for every probe.
- A tuple pays once when it enters its window; a split pays it again for the tuples that it separates.
- A message pays its start and its bytes. Sender and receiver are both held by it.
- Results are not charged by themselves: in the paper's workload a tuple meets a handful of partners among tens of
  thousands that it is compared with.
"""

from dataclasses import dataclass
from typing import Final

from joinery.elastic.checks import check_settings

PAPER_COMPARISON_NS: Final = 14.2
"""The one fitted constant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """Nanoseconds of a worker at speed 1, and bytes per second of its link."""

    comparison_ns: float
    """Looking at one pair of tuples in a nested loop."""
    insert_ns: float
    """One tuple into its window: hash, copy, link into a block."""
    probe_ns: float
    """One probe of the hash index, with its expiry; nested loops have none."""
    message_ns: float
    """Starting one message, whatever is in it."""
    link_bytes_per_s: float

    def __post_init__(self) -> None:
        at_least = "at least 0"
        check_settings(
            (self.comparison_ns >= 0, "cost.comparison_ns", self.comparison_ns, at_least, "say 14"),
            (self.insert_ns > 0, "cost.insert_ns", self.insert_ns, "above 0", "say 1000"),
            (self.probe_ns >= 0, "cost.probe_ns", self.probe_ns, at_least, "say 100"),
            (self.message_ns >= 0, "cost.message_ns", self.message_ns, at_least, "say 1000000"),
            (self.link_bytes_per_s > 0, "cost.link_bytes_per_s", self.link_bytes_per_s, "above 0", "say 1e7"),
        )

    @classmethod
    def paper(cls, *, comparison_ns: float = PAPER_COMPARISON_NS) -> "CostModel":
        """The papers' cluster: 930 MHz Pentium III, Java, MPI over gigabit Ethernet.

        `insert_ns`: about a thousand cycles for 64 bytes. `message_ns`: a millisecond to connect and agree on a length
        through Java and MPI. `link_bytes_per_s`: a tenth of the wire, because rows are packed "in machine independent
        format" by one such processor.
        """
        return cls(
            comparison_ns=comparison_ns, insert_ns=1_000, probe_ns=1_000, message_ns=1_000_000, link_bytes_per_s=1e7
        )

    @classmethod
    def today(cls) -> "CostModel":
        """A core of docs/performance.md: 1.3 G comparisons, or about 6 M tuples of a hash join, per second."""
        return cls(comparison_ns=0.8, insert_ns=80, probe_ns=80, message_ns=200_000, link_bytes_per_s=1e9)

    def transfer_ns(self, size_bytes: float) -> float:
        """How long one message holds its sender and its receiver."""
        return self.message_ns + size_bytes / self.link_bytes_per_s * 1e9
