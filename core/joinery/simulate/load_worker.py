"""A simulated worker: a bounded buffer of pieces, and a processor that is charged for them in order.

A piece is what one message brought. It is worked off evenly from its begin to its end, so a result of it comes out
at a moment that is uniform between the two, of a tuple whose arrival is uniform over the piece's span: the sum of two
uniform numbers, of which mean and percentiles are known without any tuple.

Rule 1: a worker is held while it receives, and (where turns are not known, as in the papers) while it waits for its
        turn. Otherwise it works as long as there is a piece.
Rule 2: `busy_ns` is the time with something to join, `cpu_ns` the work done in it. They differ where other load slows
        the node.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from joinery.generate.draws import FloatArray, IntArray
from joinery.model.ids import WorkerId
from joinery.simulate.load_settings import SpeedChange


@dataclass(slots=True, eq=False)
class Piece:
    """Rows of some groups that wait at a worker."""

    groups: IntArray
    work: FloatArray
    """Nanoseconds at speed 1, per group."""
    size: FloatArray
    """Bytes, per group."""
    results: FloatArray
    """In proportion to the results they bring, per group."""
    arrived_ns: float
    """The middle of the time in which they came in at the gateway."""
    half_span_ns: float
    """Half of the length of that time."""
    done: float = 0.0
    """Share of it that is worked off."""
    began_ns: float = -1.0

    @property
    def bytes_left(self) -> float:
        return float(self.size.sum()) * (1 - self.done)


@dataclass(frozen=True, slots=True)
class Output:
    """The results of a piece: delay is uniform +- `half_work_ns` plus uniform +- `half_span_ns` around the mean."""

    at_ns: float
    results: float
    delay_ns: float
    half_work_ns: float
    half_span_ns: float


class SimWorker:
    """One worker; it changes in place as its clock goes forward."""

    def __init__(self, worker: WorkerId, ordinal: int, now_ns: float, speeds: Sequence[SpeedChange]) -> None:
        self.worker, self.ordinal = worker, ordinal
        self.now_ns = now_ns
        self.ready_since_ns = now_ns
        self.queue: deque[Piece] = deque()
        self.outputs: list[Output] = []
        self.busy_ns = self.cpu_ns = self.communication_ns = self.waiting_ns = self.moving_ns = 0.0
        self.samples: list[int] = []
        """Bytes unprocessed just before each message of this reorganization epoch."""
        self.held_back = False
        self.reported_busy_ns = 0.0
        self.joined_bytes = 0.0
        """Worked off since the last report."""
        self.link_free_ns = now_ns
        self._held_until_ns = now_ns
        own = sorted((change.at_ns, change.speed) for change in speeds if change.ordinal == ordinal)
        self._changes = [float(at_ns) for at_ns, _ in own]
        self._speeds = [1.0] + [speed for _, speed in own]

    @property
    def bytes_waiting(self) -> float:
        """What its buffer holds."""
        return sum(piece.bytes_left for piece in self.queue)

    def speed_at(self, now_ns: float) -> float:
        """How fast its node is."""
        return self._speeds[bisect_right(self._changes, now_ns)]

    def advance(self, to_ns: float) -> None:
        """Work until `to_ns`."""
        at = max(self.now_ns, min(self._held_until_ns, to_ns))
        while self.queue and at < to_ns:
            piece = self.queue[0]
            place = bisect_right(self._changes, at)
            speed = self._speeds[place]
            until = min(to_ns, self._changes[place]) if place < len(self._changes) else to_ns
            total = float(piece.work.sum())
            if piece.began_ns < 0:
                piece.began_ns = at
            needed = total * (1 - piece.done) / speed
            spent = min(needed, until - at)
            self.busy_ns += spent
            self.cpu_ns += spent * speed
            self.joined_bytes += float(piece.size.sum()) * spent * speed / total
            at = at + spent if spent < needed else at + needed
            if spent >= needed:
                self._finish(piece, at)
            else:
                piece.done += spent * speed / total
                at = until
        self.now_ns = max(self.now_ns, to_ns)

    def hold(self, until_ns: float) -> None:
        """Work nothing before `until_ns`; call `advance` to the begin of it first."""
        self._held_until_ns = max(self._held_until_ns, until_ns)

    def take(self, piece: Piece) -> None:
        """One more piece at the end of the buffer."""
        if len(piece.groups):
            self.queue.append(piece)

    def yield_group(self, group: int) -> list[Piece]:
        """Take the rows of a group out of the buffer: they go with its state."""
        taken: list[Piece] = []
        for piece in list(self.queue):
            mine = piece.groups == group
            if not mine.any():
                continue
            left = 1 - piece.done
            taken.append(
                Piece(
                    piece.groups[mine],
                    piece.work[mine] * left,
                    piece.size[mine] * left,
                    piece.results[mine] * left,
                    piece.arrived_ns,
                    piece.half_span_ns,
                )
            )
            if piece.done > 0:
                self._credit(piece, float(piece.results[mine].sum()) * piece.done)
            piece.groups, piece.work = piece.groups[~mine], piece.work[~mine]
            piece.size, piece.results = piece.size[~mine], piece.results[~mine]
            if not len(piece.groups):
                self.queue.remove(piece)
        return taken

    def report_epoch(self) -> tuple[list[int], float, bool, float]:
        """The samples, the busy time, whether rows were held back, and the bytes joined, since the last report."""
        seen = self.samples, self.busy_ns - self.reported_busy_ns, self.held_back, self.joined_bytes
        self.samples, self.reported_busy_ns, self.held_back, self.joined_bytes = [], self.busy_ns, False, 0.0
        return seen

    def _finish(self, piece: Piece, at_ns: float) -> None:
        self.queue.popleft()
        middle, half = (piece.began_ns + at_ns) / 2, (at_ns - piece.began_ns) / 2
        self.outputs.append(
            Output(at_ns, float(piece.results.sum()), middle - piece.arrived_ns, half, piece.half_span_ns)
        )

    def _credit(self, piece: Piece, results: float) -> None:
        """Results that a group had already brought before it was taken out of a piece under way."""
        middle, half = (piece.began_ns + self.now_ns) / 2, (self.now_ns - piece.began_ns) / 2
        self.outputs.append(Output(self.now_ns, results, middle - piece.arrived_ns, half, piece.half_span_ns))


def empty_piece() -> Piece:
    """A message without rows."""
    nothing = np.empty(0)
    return Piece(np.empty(0, np.int64), nothing, nothing, nothing, 0.0, 0.0)
