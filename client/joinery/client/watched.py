"""A machine of the client behind a connection: it runs on threads of its own, and whoever waits is told of changes.

The logic of an operation is a generator that yields what it waits for (`Wait`) and returns its result. It never blocks;
`finish` drives it from a thread, `afinish` from an event loop. So there is one logic, and two faces.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Generic, TypeVar
from uuid import uuid4

from joinery.adapters.conversations import Conversation
from joinery.adapters.process import Process
from joinery.adapters.security import PLAIN, Security
from joinery.adapters.shell import Machine
from joinery.client.errors import Refused, Unreachable
from joinery.machine.calls import Calls
from joinery.machine.facts import Connected, Consumed, Disconnected, Fact, Offered
from joinery.machine.orders import Order
from joinery.model.ids import Peer

T = TypeVar("T")
LOOK_S: Final = 0.2
"""How often a wait looks whether the other side is still there."""


class Watched:
    """Runs a machine against one peer, between `start` and `close`."""

    def __init__(
        self,
        machine: Machine,
        peer: Peer,
        address: str,
        talk: Conversation,
        patience_s: float,
        name: str,
        security: Security = PLAIN,
    ) -> None:
        self.address, self.patience_s, self._peer = address, patience_s, peer
        self.pending = 0
        """Facts that were told and not yet handled."""
        self.crashed: BaseException | None = None
        self._machine = machine
        self._changed = threading.Condition()
        self._listeners: dict[int, Callable[[], None]] = {}
        self._down_since: float | None = time.monotonic()
        self._process = Process(self, Calls(instance=f"{name}/{uuid4().hex[:12]}"), security=security)
        self._process.dial(peer, lambda: address, talk)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:
        """As the machine says; and tell whoever waits."""
        made = self._machine.handle(fact, now_ns)
        if isinstance(fact, Connected):
            self._down_since = None
        elif isinstance(fact, Disconnected):
            self._down_since = time.monotonic()
        elif isinstance(fact, Offered | Consumed):
            with self._changed:
                self.pending -= 1
        self._tell()
        return made

    def put(self, fact: Offered | Consumed) -> None:
        """Something for the machine, from the program."""
        with self._changed:
            self.pending += 1
        self._process.shell.tell(fact)

    def close(self) -> None:
        """Hang up."""
        self._process.close()

    def check(self) -> None:
        """Whether there is still something to wait for."""
        if self.crashed is not None:
            raise self.crashed
        if (refused := self._process.refused(self._peer)) is not None:
            raise Refused(f"{self.address}: {refused}")
        down = self._down_since
        if down is not None and self._thread.is_alive() and time.monotonic() - down > self.patience_s:
            raise Unreachable(self.address, f"nobody for {self.patience_s:g} s")

    def wait(self, until: Callable[[], bool]) -> None:
        """In a thread."""
        with self._changed:
            while not until():
                self.check()
                self._changed.wait(LOOK_S)

    async def await_(self, until: Callable[[], bool]) -> None:
        """In an event loop."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            loop.call_soon_threadsafe(changed.set)

        self._listeners[id(changed)] = tell
        try:
            while not until():
                self.check()
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), LOOK_S)
                changed.clear()
        finally:
            del self._listeners[id(changed)]

    def _run(self) -> None:
        try:
            self._process.run()
        except BaseException as error:
            self.crashed = error
        self._tell()

    def _tell(self) -> None:
        with self._changed:
            self._changed.notify_all()
        for listener in list(self._listeners.values()):
            listener()


@dataclass(frozen=True, slots=True)
class Wait:
    """Go on when this is true."""

    on: Watched
    until: Callable[[], bool]


Steps = Generator[Wait, None, T]


def finish(steps: Steps[T]) -> T:
    """Do all of it, and wait where it waits."""
    while not isinstance(step := _step(steps), _Done):
        step.on.wait(step.until)
    return step.value


async def afinish(steps: Steps[T]) -> T:
    """The same in an event loop."""
    while not isinstance(step := _step(steps), _Done):
        await step.on.await_(step.until)
    return step.value


@dataclass(frozen=True, slots=True)
class _Done(Generic[T]):
    value: T


def _step(steps: Steps[T]) -> Wait | _Done[T]:
    try:
        return next(steps)
    except StopIteration as done:
        return _Done(done.value)
