"""When rows come: the interface of every arrival process, and the plainest of them.

Rule 1: `chunks(seed, first)` gives the times of rows first * CHUNK, ... in order, CHUNK at a time; a finite process
ends with a shorter array. Times are nanoseconds since the start of the stream and never go back.
Rule 2: the same seed gives the same times wherever the iteration starts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Protocol

import numpy as np

from joinery.generate.checks import want_rows, want_seed
from joinery.generate.draws import CHUNK, IntArray
from joinery.generate.profiles import RateProfile, want_profile


class Arrivals(Protocol):
    """An arrival process: a frozen configuration; the seed comes from the stream that uses it."""

    def chunks(self, seed: int, first: int) -> Iterator[IntArray]:
        """Times of the rows from chunk `first` on."""
        ...


@dataclass(frozen=True, slots=True)
class EvenArrivals:
    """No randomness at all: each row comes when the profile expects it."""

    profile: RateProfile

    def __post_init__(self) -> None:
        want_profile(self.profile)

    def chunks(self, seed: int, first: int) -> Iterator[IntArray]:  # noqa: ARG002  the protocol's signature
        return (
            self.profile.time_of(np.arange(number * CHUNK, (number + 1) * CHUNK, dtype=np.float64) + 0.5)
            for number in count(first)
        )


def arrival_times(arrivals: Arrivals, seed: int, start: int, stop: int) -> IntArray:
    """The times of rows [start, stop) of a process, as one array; shorter where the process ends before."""
    want_seed(seed)
    want_rows(start, stop)
    first = start // CHUNK
    chunks = list(islice(arrivals.chunks(seed, first), -(-stop // CHUNK) - first))
    times = np.concatenate([np.empty(0, np.int64), *chunks])
    return times[start - first * CHUNK : stop - first * CHUNK]
