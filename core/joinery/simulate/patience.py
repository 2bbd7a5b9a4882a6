"""Moves and drains end: none stays open for ever once nothing disturbs it any more.

Looked at now and then. What has been open for `PATIENCE_NS`, counted from the last fault, is a finding.
"""

from collections.abc import Hashable, Iterable
from typing import Any, Final

from joinery.machine.gateway import GatewayMachine
from joinery.model.errors import require
from joinery.model.ids import WorkerId
from joinery.simulate.schedule import MS

LOOK_NS: Final = 100 * MS
PATIENCE_NS: Final = 1000 * MS
"""Several reorganization epochs, and longer than producers of random schedules fall silent."""


class Patience:
    """Since when what is open."""

    def __init__(self) -> None:
        self._since: dict[Hashable, int] = {}
        self._disturbed_ns = 0

    def disturbed(self, until_ns: int) -> None:
        """Something goes wrong until then."""
        self._disturbed_ns = max(self._disturbed_ns, until_ns)

    def look(self, machine: Any, draining: Iterable[WorkerId], now_ns: int) -> None:
        """What is open at the gateway now, and which workers the operator wants empty."""
        found: dict[Hashable, str] = {("drain", worker): f"the drain of {worker}" for worker in draining}
        if isinstance(machine, GatewayMachine):
            for group, moving in machine.moves.under_way.items():
                move = moving.move
                text = (
                    f"the move of group {group} from {move.source} to {move.target} ({moving.step}, tag {moving.tag})"
                )
                found["move", group, move.source, move.target] = text
        self._since = {key: self._since.get(key, now_ns) for key in found}
        for key, since in self._since.items():
            open_ns = now_ns - max(since, self._disturbed_ns)
            require(
                open_ns <= PATIENCE_NS, f"{found[key]} has been open for {open_ns // MS} ms, and nothing disturbs it"
            )
