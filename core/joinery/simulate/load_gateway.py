"""The simulated gateway: rows wait per group until their worker's turn, and go as far as its buffer has room.

Rule 1: a message takes the rows of the worker's groups in the order of time, up to the tick of its turn or until the
        buffer is full; the rest waits, and the worker is marked as held back.
Rule 2: a group that pauses for a move is left out; its rows wait here.
Rule 3: what a message costs its worker is known when it is cut: tuples meet the window as it was when they came in,
        however late they are joined.
"""

import numpy as np

from joinery.generate.draws import FloatArray, IntArray
from joinery.simulate.costs import CostModel
from joinery.simulate.load_input import Arrivals, key_shares
from joinery.simulate.load_settings import LoadSettings, Method
from joinery.simulate.load_tuning import FineTuning
from joinery.simulate.load_worker import Piece, empty_piece


class SimGateway:
    """The mini-buffers, and the windows of all groups (which are a function of what was sent)."""

    def __init__(self, settings: LoadSettings, costs: CostModel, arrivals: Arrivals) -> None:
        tuned = settings.method is Method.NESTED_LOOP
        self.arrivals = arrivals
        self.tuning = FineTuning(
            key_shares(settings.keys, settings.partitions), settings.theta_bytes if tuned else None
        )
        self.paused: IntArray = np.zeros(settings.partitions, np.int64)
        """[G]: not 0 while the group pauses."""
        self.offered_ns: FloatArray = np.zeros(settings.partitions)
        """[G]: work sent since the last reorganization; a group's part of its worker's load."""
        self._cut: IntArray = np.zeros(settings.partitions, np.int64)
        self._settings, self._costs = settings, costs

    def cut_message(self, groups: IntArray, now_ns: float, room_bytes: float) -> tuple[Piece, bool]:
        """The next message for these groups, and whether rows had to stay for want of room."""
        groups = groups[self.paused[groups] == 0]
        tick = self.arrivals.tick_at(now_ns)
        from_tick = self._cut[groups]
        if not len(groups) or tick <= int(from_tick.min()):
            return empty_piece(), False
        to_tick = self._fitting_tick(groups, from_tick, tick, room_bytes)
        due = from_tick < to_tick
        piece = self._piece(groups[due], from_tick[due], to_tick) if due.any() else empty_piece()
        self._cut[groups] = np.maximum(from_tick, to_tick)
        return piece, to_tick < tick

    def waiting_bytes(self, now_ns: float) -> float:
        """All rows that are not yet sent."""
        counts, groups = self.arrivals.counts, np.arange(len(self._cut))
        rows = counts[self.arrivals.tick_at(now_ns)].sum(axis=0) - counts[self._cut, :, groups].sum(axis=1)
        return float(np.maximum(rows, 0).sum()) * self._settings.tuple_bytes

    def window_bytes(self) -> FloatArray:
        """[G]: the state of each group, as of its last message."""
        counts, groups = self.arrivals.counts, np.arange(len(self._cut))
        rows = np.zeros(len(groups))
        for stream, window in enumerate(self.arrivals.window_ticks):
            rows += counts[self._cut, stream, groups] - counts[np.maximum(self._cut - window, 0), stream, groups]
        return rows * self._settings.tuple_bytes

    def _fitting_tick(self, groups: IntArray, from_tick: IntArray, tick: int, room_bytes: float) -> int:
        """The last tick up to which the waiting rows fit; they grow with the tick, so halving finds it."""
        counts, room_rows = self.arrivals.counts, room_bytes / self._settings.tuple_bytes
        start = counts[from_tick, :, groups].sum(axis=1)

        def fits(to_tick: int) -> bool:
            waiting = np.maximum(counts[to_tick][:, groups].sum(axis=0) - start, 0).sum()
            return bool(waiting <= room_rows)

        if fits(tick):
            return tick
        low, high = int(from_tick.min()), tick
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def _piece(self, groups: IntArray, from_tick: IntArray, to_tick: int) -> Piece:
        counts = self.arrivals.counts
        rows = counts[to_tick][:, groups] - counts[from_tick, :, groups].T
        total = rows.sum(axis=0).astype(np.float64)
        window = self._mean_window(groups, from_tick, to_tick)
        pairs = (rows * (window.sum(axis=0) - window)).sum(axis=0)
        work = self._work(groups, to_tick, total, pairs)
        self.offered_ns[groups] += work
        weight = pairs + 1e-9 * total
        begin = float(from_tick @ (weight + 1e-12)) / float(weight.sum() + 1e-12 * len(weight))
        middle, half = ((to_tick + sign * begin) / 2 * self.arrivals.tick_ns for sign in (1, -1))
        size = total * self._settings.tuple_bytes
        some = total > 0
        return Piece(groups[some], work[some], size[some], weight[some], middle, half)

    def _mean_window(self, groups: IntArray, from_tick: IntArray, to_tick: int) -> FloatArray:
        """[S, G]: the rows that a new row of these ticks finds in each window, in the mean."""
        counts, window = self.arrivals.counts, self.arrivals.window_ticks
        streams = np.arange(len(window))[:, None]
        before = (
            counts[from_tick, streams, groups] - counts[np.maximum(from_tick - window[:, None], 0), streams, groups]
        )
        last = np.maximum(to_tick - window, 0)[:, None]
        after = counts[to_tick][:, groups] - counts[last, streams, groups]
        mean: FloatArray = (before + after) / 2
        return mean

    def _work(self, groups: IntArray, to_tick: int, rows: FloatArray, pairs: FloatArray) -> FloatArray:
        costs = self._costs
        if self._settings.method is Method.HASH:
            return rows * (costs.insert_ns + costs.probe_ns)
        size = np.zeros(len(self.tuning.spread))
        size[groups] = self.arrivals.window_rows(to_tick)[:, groups].sum(axis=0) * float(self._settings.tuple_bytes)
        moved = self._tune(groups, size) / self._settings.tuple_bytes
        work: FloatArray = pairs * self.tuning.spread[groups] * costs.comparison_ns + (rows + moved) * costs.insert_ns
        return work

    def _tune(self, groups: IntArray, size: FloatArray) -> FloatArray:
        others = np.ones(len(size), bool)
        others[groups] = False
        size[others] = np.nan  # neither above nor below any bound
        return self.tuning.tune(size)[groups]
