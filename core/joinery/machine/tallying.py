"""What the collector measures for whoever looks: the delays of the results that are committed.

Production delay: made by a worker - arrival of the later member. Delivery: committed - arrival of the later member. All
times are by the gateway's clock. With output in order a result waits for watermarks, not for us: its delivery is not
counted. Where only some groups of a message were taken (an owner changed meanwhile), its delays count in proportion.
"""

from collections.abc import Iterable

import numpy as np

from joinery.flow.delays import Delays
from joinery.flow.stamps import Arrivals
from joinery.join.results import Kind, ResultPart
from joinery.machine.messages import Results, Tally
from joinery.model.tuples import I64Array


class Tallying:
    """Keeps what the gateway was not told yet."""

    def __init__(self, *, in_order: bool) -> None:
        self.clock_ahead_ns = 0
        """How far the collector's clock is ahead of the gateway's, as the gateway found."""
        self._in_order = in_order
        self._taken: list[tuple[int, Arrivals]] = []
        self._staged: list[tuple[int, Arrivals]] = []
        """When results were made, and when their later members arrived: taken since the last draft, and in it."""
        self._untold = Tally()

    def took(self, parts: Iterable[Results], kept: int) -> None:
        """The parts of a message were taken, and `kept` of its results."""
        messages = list(parts)
        total = sum(message.arrivals.total for message in messages)
        for message in messages:
            arrivals = message.arrivals
            share = arrivals if kept >= total else arrivals.share(kept * arrivals.total // max(1, total))
            if message.produced_ns and share.rows.size:
                self._taken.append((message.produced_ns, share))

    def drafted(self) -> None:
        """What was taken is about to be committed."""
        self._staged += self._taken
        self._taken = []

    def written(self, now_ns: int) -> None:
        """The commit is durable."""
        staged, self._staged = self._staged, []
        produced = _delays([(at_ns, arrivals) for at_ns, arrivals in staged])
        now = [] if self._in_order else [(now_ns - self.clock_ahead_ns, arrivals) for _, arrivals in staged]
        self._untold += Tally(produced, _delays(now))

    def tell(self) -> Tally | None:
        """What the gateway does not know yet; None: nothing."""
        told, self._untold = self._untold, Tally()
        return told if told.produced.rows else None


def _delays(found: list[tuple[int, Arrivals]]) -> Delays:
    if not found:
        return Delays()
    waited: list[I64Array] = [at_ns - arrivals.stamps for at_ns, arrivals in found]
    return Delays.of(np.concatenate(waited), np.concatenate([arrivals.rows for _, arrivals in found]))


def results_in(parts: Iterable[ResultPart]) -> int:
    """How many rows of these parts are results, not late rows."""
    return sum(int(part.times.size) for part in parts if part.kind is Kind.RESULT)
