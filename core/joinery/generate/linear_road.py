"""Position reports as in the Linear Road benchmark (Arasu et al., VLDB 2004): cars on expressways report every 30 s.

Theory of operation. There are always `vehicles` cars on the road, one in each slot. Slot i reports at a fixed moment
of every 30 s round, so row n is the report of slot n mod vehicles in round n / vehicles, and the rows are in order of
time. A slot's car leaves after a fixed number of reports and a new one, with a new id, takes the slot. Everything
about a car is a hash of its id, everything about a report a hash of the id and the step: no row needs the row before
it.

Of the benchmark we keep: expressways of 100 segments of a mile (5280 feet), two directions, lanes 0 (entry ramp), 1-3
(travel) and 4 (exit ramp), speeds in miles per hour, positions in feet that move by exactly speed x 30 s between
reports. We leave out: accidents, the queries between the reports, and the benchmark's slow filling of the road over
three hours.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

import numpy as np
import pyarrow as pa

from joinery.generate.checks import want_seed, want_whole
from joinery.generate.chunked import Chunked
from joinery.generate.draws import CHUNK, IntArray, Lane, hash_below
from joinery.generate.stamps import stamps, want_clock
from joinery.model.time import TIME_MAX

REPORT_INTERVAL_NS: Final = 30_000_000_000
SEGMENT_FEET: Final = 5280
SEGMENTS: Final = 100
ROAD_FEET: Final = SEGMENT_FEET * SEGMENTS
FEET_PER_REPORT_MPH: Final = 44
"""Feet that one mile per hour covers in 30 s: 5280 / 120."""
LANE_ENTRY: Final = 0
LANE_EXIT: Final = 4
_REPORTS: Final = (8, 33)
_CRUISE_MPH: Final = (40, 81)
_WOBBLE_MPH: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearRoad(Chunked):
    """A steady traffic; its rate is vehicles / 30 rows per second."""

    vehicles: int
    seed: int
    xways: int = 1
    time_unit: str = "us"
    origin_ns: int = 0

    def __post_init__(self) -> None:
        want_whole("vehicles", self.vehicles, 1, 2**30, "give the cars that are on the road at a time")
        want_whole("xways", self.xways, 1, 2**20, "give the number of expressways")
        want_seed(self.seed)
        want_clock(self.time_unit, self.origin_ns)

    @property
    def schema(self) -> pa.Schema:
        small = [pa.field(name, pa.int32()) for name in ("speed", "xway", "lane", "dir", "seg", "pos")]
        return pa.schema([pa.field("time", pa.int64()), pa.field("vid", pa.int64()), *small])

    def chunks(self, first: int = 0) -> Iterator[pa.RecordBatch]:
        return (self._chunk(number) for number in count(first))

    def _chunk(self, number: int) -> pa.RecordBatch:
        rounds, slot = np.divmod(np.arange(number * CHUNK, (number + 1) * CHUNK), self.vehicles)
        reports = _REPORTS[0] + self._hash(0, slot, _REPORTS[1] - _REPORTS[0])
        trip, step = np.divmod(rounds + self._hash(1, slot, reports), reports)
        vid = slot + self.vehicles * trip
        position, speed = self._motion(vid, step, reports)
        lane = np.where(
            step == 0, LANE_ENTRY, np.where(step == reports - 1, LANE_EXIT, 1 + self._hash_step(2, vid, step, 3))
        )
        direction = self._hash(3, vid, 2)
        position = np.where(direction == 0, position, ROAD_FEET - 1 - position)
        xway = self._hash(4, vid, self.xways)
        columns = [self._times(rounds, slot), vid, speed, xway, lane, direction, position // SEGMENT_FEET, position]
        arrays = [
            pa.array(column.astype(f.type.to_pandas_dtype())) for column, f in zip(columns, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _motion(self, vid: IntArray, step: IntArray, reports: IntArray) -> tuple[IntArray, IntArray]:
        """Feet from the western (or eastern) end, and the speed since the last report, which explains them exactly.

        A car is ahead of its cruising by a random 0..9 "mph x 30 s" at each report; its speed is the difference.
        """
        cruise = _CRUISE_MPH[0] + self._hash(5, vid, _CRUISE_MPH[1] - _CRUISE_MPH[0])
        ahead = self._hash_step(6, vid, step, _WOBBLE_MPH)
        ahead_before = np.where(step == 0, 0, self._hash_step(6, vid, step - 1, _WOBBLE_MPH))
        longest = FEET_PER_REPORT_MPH * (cruise * (reports - 1) + _WOBBLE_MPH)
        entry = self._hash(7, vid, ROAD_FEET - longest)
        return entry + FEET_PER_REPORT_MPH * (cruise * step + ahead), cruise + ahead - ahead_before

    def _times(self, rounds: IntArray, slot: IntArray) -> IntArray:
        """Slot i reports somewhere in the i-th part of each round."""
        part = (slot + self._hash(8, slot, 2**30) / 2**30) / self.vehicles
        started_ns = np.minimum(rounds, TIME_MAX // REPORT_INTERVAL_NS) * REPORT_INTERVAL_NS
        return stamps(started_ns + (part * REPORT_INTERVAL_NS).astype(np.int64), self.time_unit, self.origin_ns)

    def _hash(self, what: int, numbers: IntArray, bound: IntArray | int) -> IntArray:
        return hash_below(self.seed, Lane.LINEAR_ROAD, what, numbers, bound)

    def _hash_step(self, what: int, vid: IntArray, step: IntArray, bound: int) -> IntArray:
        return self._hash(what, vid * _REPORTS[1] + step, bound)
