"""Ready-made workloads: the inputs that benchmarks and load jobs share, by name.

A workload is two streams with the same rate and key distribution and independent rows: 64-byte tuples (ts int64 µs,
key int64, 48-byte payload), joined by equal keys and |ts1 - ts2| <= W. 5 million rows take one to three seconds:
`WORKLOADS["U1"].rows(StreamIndex(0))`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from joinery.generate.bmodel import BModelKeys
from joinery.generate.checks import want_seed, want_whole
from joinery.generate.keys import Keys, UniformKeys
from joinery.generate.payload import Letters
from joinery.generate.points import Independent
from joinery.generate.poisson import PoissonArrivals
from joinery.generate.profiles import want_length
from joinery.generate.streams import StreamGenerator
from joinery.model.ids import StreamIndex

ORIGIN_NS: Final = 1_700_000_000_000_000_000
TUPLE_BYTES: Final = 64
PAYLOAD_BYTES: Final = 48
_SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A named input for a join of two streams."""

    name: str
    rows_per_stream: int
    rate_hz: float
    """Poisson arrivals per stream, in event time."""
    keys: Keys
    window_ns: int
    """W of either stream."""
    seed: int

    def __post_init__(self) -> None:
        want_whole("rows_per_stream", self.rows_per_stream, 1, 2**40, "give the rows of each stream")
        want_length("window_ns", self.window_ns, low=0)
        want_seed(self.seed)
        self.stream(StreamIndex(0))

    def stream(self, index: StreamIndex) -> StreamGenerator:
        """The generator of one of the two streams."""
        want_whole("index", index, 0, 1, "a workload has two streams")
        return StreamGenerator(
            points=Independent(PoissonArrivals.at(self.rate_hz), self.keys),
            seed=2 * self.seed + index,
            origin_ns=ORIGIN_NS,
            payload=(Letters("payload", PAYLOAD_BYTES),),
            limit=self.rows_per_stream,
        )

    def rows(self, index: StreamIndex) -> pa.RecordBatch:
        """The whole of one stream."""
        return self.stream(index).rows(0, self.rows_per_stream)


_U1: Final = Workload(
    name="U1", rows_per_stream=5_000_000, rate_hz=100_000, keys=UniformKeys(10**6), window_ns=10 * _SECOND_NS, seed=11
)
_U1SMALL: Final = Workload(
    name="U1small", rows_per_stream=500_000, rate_hz=100_000, keys=UniformKeys(10**5), window_ns=_SECOND_NS, seed=12
)
_B7: Final = Workload(
    name="B7",
    rows_per_stream=1_000_000,
    rate_hz=10_000,
    keys=BModelKeys(10**7, 0.7),
    window_ns=10 * _SECOND_NS,
    seed=13,
)
_B8: Final = Workload(
    name="B8",
    rows_per_stream=1_000_000,
    rate_hz=10_000,
    keys=BModelKeys(10**7, 0.8),
    window_ns=10 * _SECOND_NS,
    seed=14,
)
_L1: Final = Workload(
    name="L1", rows_per_stream=3_000_000, rate_hz=50_000, keys=UniformKeys(10**6), window_ns=10 * _SECOND_NS, seed=15
)
WORKLOADS: Final[Mapping[str, Workload]] = MappingProxyType(
    {load.name: load for load in (_U1, _U1SMALL, _B7, _B8, _L1)}
)
