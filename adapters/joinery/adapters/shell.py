"""The loop around a machine: facts in, one at a time; orders out, in their order. It decides nothing.

One thread runs the machine. Everything that takes time has a thread of its own and comes back as a fact: the stores
(`StoreRunner`), the join (`ModuleRunner`), the connections (`links`). So a machine never waits, and what it did can be
repeated from the facts that it was told (`Recorder`).
"""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol, TypeVar, cast

from joinery.adapters.logs import complain
from joinery.adapters.pressure import Gate
from joinery.machine.facts import Fact, Started, Tick
from joinery.machine.orders import JoinBatch, Order, Stop, WakeAt
from joinery.model.errors import Bug, TryAgain, UserMustAct

Carry = Mapping[type[Any], Callable[[Any], None]]
"""How each kind of order is carried out."""
FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 1.0
"""A store that does not answer is asked again after a pause that doubles up to this."""
COMPLAIN_AFTER_S: Final = 1.0
COMPLAIN_EVERY_S: Final = 10.0
"""A call that is repeated for so long is told to the user, then again and again."""
LOOK_S: Final = 3.0
"""How long one who looks at a machine waits for it."""
Seen = TypeVar("Seen")
MOST_FACTS: Final = 4096
"""Facts that wait for the machine before readers of producers wait for it."""
ROOM_S: Final = 0.01
"""How often a thread looks whether there is room."""


class _Look:
    """Somebody looks at the machine; what goes wrong is theirs alone."""

    def __init__(self, read: Callable[[int], Any]) -> None:
        self._read = read
        self.done = threading.Event()
        self.seen: Any = None
        self.error: Exception | None = None

    def take(self, now_ns: int) -> None:
        try:
            self.seen = self._read(now_ns)
        except Exception as error:
            self.error = error
        self.done.set()


class Machine(Protocol):
    """What a shell needs of a machine."""

    def handle(self, fact: Fact, now_ns: int) -> list[Order]: ...


class Recorder(Protocol):
    """Keeps what a machine was told and what it ordered."""

    def saw(self, now_ns: int, fact: Fact, orders: list[Order]) -> None: ...


class Shell:
    """Runs one machine until it orders `Stop`."""

    def __init__(
        self,
        machine: Machine,
        instance: str,
        *,
        now_ns: Callable[[], int] = time.time_ns,
        recorder: Recorder | None = None,
    ) -> None:
        self.machine, self.instance = machine, instance
        self.stopped_because: str | None = None
        self.failed: str | None = None
        """What one of its threads could not do."""
        self.cannot_run = False
        """Whether it would fail again: only the user can mend it."""
        self._now_ns, self._recorder = now_ns, recorder
        self._facts: queue.SimpleQueue[Fact | _Look | None] = queue.SimpleQueue()
        self._alarm_s: float | None = None
        """On the clock that nobody sets: a machine that asked to be woken in 50 ms is, even if the time is set back."""
        self._busy_since_s: float | None = None
        """Since when it is at one fact, or at its end; None: it waits for a fact."""
        self._carry: dict[type[Any], Callable[[Any], None]] = {WakeAt: self._set_alarm, Stop: self._stop}

    def carrying(self, carry: Carry) -> "Shell":
        """Also able to carry out these orders."""
        self._carry.update(carry)
        return self

    def tell(self, fact: Fact) -> None:
        """A fact for the machine; from any thread."""
        self._facts.put(fact)

    def look(self, read: Callable[[int], Seen], wait_s: float = LOOK_S) -> Seen:
        """What `read` finds (it is given the time), between two facts: on the machine's thread; from any other one."""
        look = _Look(read)
        if self.stopped_because is None:
            self._facts.put(look)
        if self.stopped_because is not None or not look.done.wait(wait_s):
            because = self.stopped_because or f"it has not come to it within {wait_s:g} s"
            raise TryAgain(f"found a process that cannot be looked at ({because}), wanted an answer; ask again")
        if look.error is not None:
            raise look.error
        return cast("Seen", look.seen)

    @property
    def waiting_facts(self) -> int:
        """Facts that wait for the machine."""
        return self._facts.qsize()

    def wait_for_room(self) -> None:
        """Until the machine has caught up; never on its own thread."""
        while self._facts.qsize() > MOST_FACTS and self.stopped_because is None:
            time.sleep(ROOM_S)

    def stop(self, because: str) -> None:
        """End the loop from outside, before the next fact."""
        self.stopped_because = self.stopped_because or because
        self._facts.put(None)

    @property
    def busy_s(self) -> float:
        """For how long the loop is at one fact, or at its end; 0: it waits for a fact. From any thread."""
        since = self._busy_since_s
        return 0.0 if since is None else time.monotonic() - since

    def run(self) -> str:
        """Until the machine, or somebody else, says stop; why."""
        self._busy_since_s = time.monotonic()
        self._handle(Started(self.instance))
        while self.stopped_because is None:
            self._busy_since_s = None
            fact = self._next()
            self._busy_since_s = time.monotonic()
            if isinstance(fact, _Look):
                fact.take(self._now_ns())
            elif fact is not None:
                self._handle(fact)
        return self.stopped_because

    def _next(self) -> "Fact | _Look | None":
        """The alarm if it has rung, else the next fact, else the alarm when it rings."""
        wait_s = None if self._alarm_s is None else self._alarm_s - time.monotonic()
        if wait_s is not None and wait_s <= 0:
            self._alarm_s = None
            return Tick()
        try:
            return self._facts.get(timeout=wait_s)
        except queue.Empty:
            self._alarm_s = None
            return Tick()

    def _handle(self, fact: Fact) -> None:
        now_ns = self._now_ns()
        orders = self.machine.handle(fact, now_ns)
        if self._recorder is not None:
            self._recorder.saw(now_ns, fact, orders)
        for order in orders:
            carry = self._carry.get(type(order))
            if carry is None:
                raise Bug(f"nobody carries out {type(order).__name__}")
            carry(order)

    def _set_alarm(self, order: WakeAt) -> None:
        self._alarm_s = time.monotonic() + (order.at_ns - self._now_ns()) / 1e9

    def _stop(self, order: Stop) -> None:
        self.stopped_because = order.because


class Worker(threading.Thread):
    """A thread that works through tasks one after the other; a task that fails ends the shell with its error."""

    def __init__(self, name: str, shell: Shell) -> None:
        super().__init__(name=name, daemon=True)
        self._shell = shell
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self.error: BaseException | None = None
        self.start()

    def put(self, task: Callable[[], None]) -> None:
        self._tasks.put(task)

    def close(self) -> None:
        """Finish what was put, then end."""
        self._tasks.put(None)
        self.join(timeout=10)

    def run(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except BaseException as error:
                self.error = error
                self._shell.cannot_run = isinstance(error, UserMustAct)
                self._shell.failed = f"{self.name}: {type(error).__name__}: {error}"
                self._shell.stop(self._shell.failed)
                return


class StoreRunner:
    """Calls to a store, in their order, each repeated until it is answered (`ports`, rule 1)."""

    def __init__(self, name: str, shell: Shell) -> None:
        self._shell, self._thread = shell, Worker(name, shell)
        self.gate = Gate()
        self.close = self._thread.close

    def ask(self, call: Callable[[], Fact | None]) -> None:
        """Call the store; its answer, if it has one, is told to the machine."""
        self._thread.put(lambda: self._repeat(call))

    def _repeat(self, call: Callable[[], Fact | None]) -> None:
        self.gate.begin()
        try:
            fact = self._until_answered(call)
        finally:
            self.gate.end()
        if fact is not None:
            self._shell.tell(fact)

    def _until_answered(self, call: Callable[[], Fact | None]) -> Fact | None:
        pause_s, begun, told = FIRST_PAUSE_S, time.monotonic(), 0.0
        while self._shell.stopped_because is None:
            try:
                fact = call()
            except TryAgain as error:
                waited = time.monotonic() - begun
                if waited >= COMPLAIN_AFTER_S and (not told or waited - told >= COMPLAIN_EVERY_S):
                    self._say(f"{error} (for {waited:.0f} s)")
                    told = waited
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                if told:
                    self._say(f"goes on after {time.monotonic() - begun:.0f} s, nothing is lost")
                return fact
        return None

    def _say(self, text: str) -> None:
        """A person must hear of it: only they can make room, or bring a server back."""
        complain(self._shell.instance.partition("/")[0], text)


class ModuleRunner:
    """A worker's join module on its own thread; what it finds is told as it comes."""

    def __init__(
        self, perform: Callable[[Any], Iterator[Fact]], shell: Shell, has_room: Callable[[], bool] = lambda: True
    ) -> None:
        self._perform, self._shell, self._has_room = perform, shell, has_room
        self._thread = Worker("join", shell)
        self.close = self._thread.close

    def order(self, order: Order) -> None:
        """Do this after everything that was ordered before."""
        self._thread.put(lambda: self._run(order))

    def _run(self, order: Order) -> None:
        while isinstance(order, JoinBatch) and not self._has_room() and self._shell.stopped_because is None:
            time.sleep(ROOM_S)
        for fact in self._perform(order):
            self._shell.tell(fact)
