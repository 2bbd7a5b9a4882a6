"""Streams: a point process with names, units, payload and the faults of real data, as Arrow rows.

Theory of operation. `points` says when rows come and with which keys; everything else is put around it per chunk:
delays (rows out of order by at most `lateness_ns`), the time's unit and origin, null keys, payload columns. Row n is
a function of the configuration, the seed and n (rules: `draws`), so a producer that resumes at row n sends what it
would have sent, two producers may share one stream by ranges of rows, and a test can name a row.

Example: 1500 rows/s, keys by the b-model, 64-byte tuples (the defaults of the cluster paper):

    StreamGenerator(
        points=Independent(PoissonArrivals.at(1500), BModelKeys(10**7, 0.7)), payload=(Letters("payload", 48),), seed=1
    ).batches(rows_per_batch=10_000)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
import pyarrow as pa

from joinery.generate.checks import want, want_real, want_seed, want_whole
from joinery.generate.chunked import Chunked
from joinery.generate.draws import CHUNK, IntArray, Lane, rng_at
from joinery.generate.payload import PayloadColumn, want_name
from joinery.generate.points import KEY, TIME, Disordered, PointProcess
from joinery.generate.stamps import stamps, want_clock
from joinery.model.time import NS_PER_UNIT


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamGenerator(Chunked):
    """The configuration of one generated stream, and its rows."""

    points: PointProcess
    seed: int
    time_column: str = "ts"
    time_unit: str = "us"
    origin_ns: int = 0
    """Time at which the stream starts."""
    key_column: str = "key"
    null_share: float = 0.0
    """Share of the rows whose key is null."""
    payload: tuple[PayloadColumn, ...] = ()
    lateness_ns: int = 0
    """Bound of the disorder; 0: in order of time."""
    delayed_share: float = 1.0
    """Share of the rows that are held back, if there is disorder."""
    limit: int | None = None
    """Rows after which the stream ends; None: when its points end."""

    def __post_init__(self) -> None:
        want_seed(self.seed)
        want_clock(self.time_unit, self.origin_ns)
        want_real("null_share", self.null_share, 0.0, 1.0, "0 makes no null, 1 nothing else")
        if self.limit is not None:
            want_whole("limit", self.limit, 0, 2**62, "leave it out for no limit")
        names = [self.time_column, self.key_column, *(column.name for column in self.payload)]
        for name in names:
            want_name("name", name)
        want(len(set(names)) == len(names), "column names", names, "different names", "rename one")
        if self.lateness_ns != 0:
            self._disordered()
            unit_ns, remedy = NS_PER_UNIT[self.time_unit], "else rounding the time would break the bound"
            fits = self.lateness_ns % unit_ns == 0
            want(fits, "lateness_ns", self.lateness_ns, f"whole {self.time_unit} ({unit_ns} ns)", remedy)

    @property
    def schema(self) -> pa.Schema:
        own = [pa.field(self.time_column, pa.int64()), pa.field(self.key_column, pa.int64())]
        return pa.schema([*own, *(pa.field(column.name, column.type) for column in self.payload)])

    def chunks(self, first: int = 0) -> Iterator[pa.RecordBatch]:
        points = self._disordered() if self.lateness_ns else self.points
        if self._rows_left(first) <= 0:
            return
        for number, chunk in zip(count(first), points.chunks(self.seed, first), strict=False):
            batch = self._batch(number, chunk)
            left = self._rows_left(number)
            yield batch.slice(0, left)
            if left <= CHUNK:
                return

    def _rows_left(self, number: int) -> int:
        """Rows that the limit allows from this chunk on."""
        return (2**62 if self.limit is None else self.limit) - number * CHUNK

    def _disordered(self) -> Disordered:
        return Disordered(points=self.points, lateness_ns=self.lateness_ns, delayed_share=self.delayed_share)

    def _batch(self, number: int, points: IntArray) -> pa.RecordBatch:
        """The columns of one chunk. Every lane draws a whole chunk, so that a shorter last one changes nothing."""
        rows = points.shape[1]
        keys = pa.array(points[KEY], mask=self._nulls(number)[:rows] if self.null_share else None)
        columns = [pa.array(stamps(points[TIME], self.time_unit, self.origin_ns)), keys]
        for at, column in enumerate(self.payload):
            rng = rng_at(self.seed, Lane.PAYLOAD, number, at)
            columns.append(column.draw(rng, number * CHUNK, CHUNK).slice(0, rows))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _nulls(self, number: int) -> np.typing.NDArray[np.bool_]:
        return rng_at(self.seed, Lane.NULLS, number).random(CHUNK) < self.null_share
