"""What the hybrid joins cost on the thesis' machine: the cost model of figures 6.5-6.13.

Every constant is chosen once, with its reason, and is the same in all figures. One is fitted: `fetch_ns`, so that
MESHJOIN bears about 1200 tuples/s (6.4.2).

- A tuple that is looked at comes from memory (`fetch_ns`), then its key is compared (`comparison_ns`). A nested loop
  in tuple mode fetches the whole segment for one stream tuple, in block mode once for a block of them. A walk along a
  chain of MESHJOIN's hash table fetches every tuple of the chain.
- `comparison_ns` and `row_ns` are those of `simulate/costs.py` (930 MHz) at 3.4 GHz.
- A disk read pays an access at its start and at every basic window of 2 MB after it, and its bytes.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

MIB: Final = 1 << 20
S_BYTES: Final = 64
R_BYTES: Final = 128


class Work(NamedTuple):
    """Nanoseconds of the processor and of the disk."""

    fetch_ns: float
    comparison_ns: float
    row_ns: float
    access_ns: float
    byte_ns: float
    window_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridCosts:
    """Intel 3.4 GHz, Java, IBM 9LZX; the thesis gives the names and no numbers."""

    fetch_ns: float = 38.5
    """The one fitted constant. 128 bytes at the 3.2 GB/s of such a machine are 40 ns."""
    comparison_ns: float = 14.2 * 930 / 3400
    row_ns: float = 1000 * 930 / 3400
    """To take a row from the input, find its segment, and put it into a block or a hash table."""
    access_ms: float = 8.0
    """Seek and half a turn of a disk of 10,000 turns per minute: 5 + 3."""
    disk_bytes_per_s: float = 20e6
    """Inner to outer tracks of such a disk in the mean, through its bus."""
    basic_window_bytes: int = 2 * MIB

    def work(self) -> Work:
        """As the compiled replay takes it."""
        byte_ns = 1e9 / self.disk_bytes_per_s
        return Work(
            self.fetch_ns, self.comparison_ns, self.row_ns, self.access_ms * 1e6, byte_ns, self.basic_window_bytes
        )

    def read_ns(self, size: int) -> float:
        """One read of so many bytes that lie together."""
        windows = -(-size // self.basic_window_bytes)
        return windows * self.access_ms * 1e6 + size * 1e9 / self.disk_bytes_per_s
