"""Settings that change while the query runs: who of the gateway's parts, and who outside, goes by which of them."""

from dataclasses import dataclass
from typing import Final

from joinery.machine.intake import Intake
from joinery.machine.messages import SpecNow
from joinery.machine.moving import Moves
from joinery.machine.orders import Order, Send
from joinery.machine.reorganizing import Reorganizing
from joinery.machine.serving import Serving
from joinery.machine.watching import Watch
from joinery.machine.workforce import Workforce
from joinery.model.ids import OPERATOR, Term
from joinery.model.spec import JoinQuerySpec

LOST_AFTER: Final = 1.5
"""A worker that was silent for so many reorganization epochs is lost."""


def lost_after_ns(spec: JoinQuerySpec) -> int:
    """How long a worker may be silent."""
    return int(LOST_AFTER * spec.epochs.reorganization)


@dataclass(frozen=True, slots=True)
class Tuning:
    """The parts of a gateway that have settings."""

    intake: Intake
    workforce: Workforce
    serving: Serving
    moves: Moves
    reorganizing: Reorganizing
    watch: Watch

    def apply(self, spec: JoinQuerySpec, now_ns: int) -> None:
        """Every part goes by this spec; windows, lateness and idle timeouts stay those of the log."""
        self.intake.retune(spec)
        self.workforce.retune(spec.worker.buffer, lost_after_ns(spec), now_ns)
        self.serving.retune(spec, now_ns)
        self.moves.max_parallel = spec.scaling.max_parallel_moves
        self.reorganizing.retune(spec)
        self.watch.retune(spec)

    def tell(self, spec: JoinQuerySpec, term: Term) -> list[Order]:
        """Workers and the operator hear of it."""
        peers = [self.workforce.peer(worker) for worker in self.workforce.up()]
        return [Send(peer, SpecNow(term, spec)) for peer in [OPERATOR, *peers]]
