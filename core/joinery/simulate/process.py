"""A simulated process: a machine, its clock, and all that a crash would take with it.

    RUNNING -> PAUSED -> RUNNING      stands still in the middle of its orders; what reaches it waits, in order
    RUNNING, PAUSED -> DEAD           crashed, or killed
    RUNNING -> STOPPED                its machine is done

A process that was replaced while it was paused is a zombie from then on: it goes on, and dials again when it finds its
connections closed, but nobody connects to it any more, and when it stops nobody cares.
"""

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol

from joinery.machine.facts import Fact
from joinery.machine.memory_sink import MemorySink
from joinery.machine.orders import ModuleOrder, Order
from joinery.machine.retaining import MemoryRetained
from joinery.model.errors import Bug
from joinery.model.ids import Peer
from joinery.simulate.schedule import MS, Role
from joinery.simulate.timeline import Dice

if TYPE_CHECKING:
    from joinery.simulate.network import Link

START_NS: Final = 1_000_000 * MS
"""What the clocks show, more or less, when a run begins."""
_DRIFT_NS: Final = 3 * MS
_JUMPS: Final = 0.3
"""Share of processes whose clock jumps once."""
_JUMP_WITHIN_NS: Final = 600 * MS


class Machine(Protocol):
    """What every machine has."""

    def handle(self, fact: Fact, now_ns: int) -> list[Order]: ...


class Module(Protocol):
    """A worker's join module."""

    def perform(self, order: ModuleOrder) -> Any: ...


class State(Enum):
    """What a process is doing."""

    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"
    STOPPED = "stopped"


class DriftingClock:
    """A process's own clock: some milliseconds off, and it may jump once, at times by more."""

    __slots__ = ("_jump_at", "_jump_to", "_offset")

    def __init__(self, dice: Dice, born: int, jump_ns: int) -> None:
        self._offset = dice.between((-_DRIFT_NS, _DRIFT_NS))
        self._jump_to = dice.between((-jump_ns, jump_ns))
        within = born + dice.between((0, _JUMP_WITHIN_NS))
        self._jump_at = within if dice.draw() < _JUMPS else -1

    def now_ns(self, true: int) -> int:
        """What it shows at a moment."""
        if 0 <= self._jump_at <= true:
            self._offset, self._jump_at = self._jump_to, -1
        return START_NS + true + self._offset


class Process:
    """One instance of a role."""

    __slots__ = (
        "answers", "calling", "calls", "clock", "connections", "dice", "heard", "held", "instance", "is_zombie", "jobs",
        "labour", "last_words", "links", "machine", "module", "offered", "ordinal", "peer", "rest", "retained", "role",
        "sinks", "state", "tries", "wake", "working",
    )  # fmt: skip

    def __init__(
        self,
        role: Role | None,
        ordinal: int,
        instance: str,
        peer: Peer,
        machine: Machine,
        seed: int,
        born: int,
        jump_ns: int = _DRIFT_NS,
    ) -> None:
        self.role, self.ordinal, self.instance, self.peer, self.machine = role, ordinal, instance, peer, machine
        self.module: Module | None = None
        self.sinks: Sequence[MemorySink] = ()
        self.retained: MemoryRetained | None = None
        self.state = State.RUNNING
        self.is_zombie = False
        self.tries = 0
        """How often it has dialled as a zombie."""
        self.dice, self.labour = Dice(seed, instance), Dice(seed, f"{instance} labour")
        self.clock = DriftingClock(Dice(seed, f"{instance} clock"), born, jump_ns)
        self.links: dict[Peer, Link] = {}
        """Connections that this process knows to be up (they may be broken already)."""
        self.connections: dict[Link, None] = {}
        """Connections that are really up, or about to be."""
        self.heard: Fact | None = None
        """The last fact that its machine was told."""
        self.held: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        """What happened to it while it was paused."""
        self.rest: Sequence[Order] = ()
        """Orders that a pause interrupted."""
        self.calls: deque[Order] = deque()
        """Calls to the stores that are not answered; the first one is under way if `calling`."""
        self.calling = False
        self.last_words = False
        """Whether the call that was under way at its death still reaches the store."""
        self.jobs: deque[ModuleOrder] = deque()
        self.answers: deque[Fact] = deque()
        self.working = False
        self.wake = 0
        self.offered: int | None = None
        """A producer: the next batch of its script to be offered; None: not known yet."""

    def __repr__(self) -> str:
        return self.instance

    @property
    def slot(self) -> tuple[Role, int]:
        """Its role and ordinal; the operator, which no fault strikes, has none."""
        if self.role is None:
            raise Bug(f"{self} has no slot")
        return self.role, self.ordinal

    @property
    def number(self) -> int:
        """The first instance of a slot is 1."""
        return int(self.instance.rpartition("/")[2])

    @property
    def is_alive(self) -> bool:
        """Whether it is there, running or not."""
        return self.state is State.RUNNING or self.state is State.PAUSED

    def is_away(self, do: Callable[..., None], *arguments: Any) -> bool:
        """Whether it cannot take this now: a paused process gets it later, a dead one never."""
        if self.state is State.RUNNING:
            return False
        if self.state is State.PAUSED:
            self.held.append((do, arguments))
        return True
