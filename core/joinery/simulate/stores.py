"""The stores as simulated processes see them: calls take time, are carried out in order, and are repeated.

Rule 1: a process has one call under way; the next one waits for its answer. So its calls reach a store in order.
Rule 2: a call that finds the store down, or whose answer is lost because the store went down, is made again, until it
        is answered. So some calls are carried out twice.
Rule 3: the call under way when its process dies reaches the store, or not. Nobody hears the answer.
"""

from collections import Counter
from collections.abc import Callable

from joinery.machine.calls import Calls
from joinery.machine.facts import Fact
from joinery.machine.memory import MemoryCheckpoints, MemoryCommits, MemoryLog
from joinery.machine.memory_sink import MemorySink
from joinery.machine.orders import Order
from joinery.machine.retaining import MemoryRetained
from joinery.simulate.faults import Outages
from joinery.simulate.process import Process
from joinery.simulate.schedule import Timing
from joinery.simulate.timeline import Timeline


class Stores:
    """Everything durable."""

    def __init__(self, sinks: tuple[str, ...], retain: int) -> None:
        self.log, self.checkpoints, self.commits = MemoryLog(), MemoryCheckpoints(), MemoryCommits()
        self.sinks = tuple(MemorySink(name) for name in sinks)
        self.retained = MemoryRetained(retain)

    def carry_out(self, process: Process, order: Order) -> Fact | None:
        """Do what a store order asks for, now; the fact that answers it."""
        calls = Calls(
            instance=process.instance,
            log=self.log,
            checkpoints=self.checkpoints,
            commits=self.commits,
            sinks=process.sinks,
            retained=process.retained,
        )
        return calls.carry_out(order)


class StoreCalls:
    """The way to the stores and back."""

    def __init__(
        self,
        timeline: Timeline,
        timing: Timing,
        outages: Outages,
        execute: Callable[[Process, Order], Fact | None],
        tell: Callable[[Process, Fact], None],
        counts: Counter[str],
    ) -> None:
        self._timeline, self._timing, self._outages, self._counts = timeline, timing, outages, counts
        self._execute_now, self._tell = execute, tell

    def call(self, process: Process, order: Order) -> None:
        """Make a call when the ones before it are answered."""
        process.calls.append(order)
        if not process.calling:
            self._begin(process)

    def _begin(self, process: Process) -> None:
        process.calling = True
        self._timeline.after(self._delay(process), self._reach, process, process.calls[0])

    def _delay(self, process: Process) -> int:
        return process.dice.between(self._timing.store_ns)

    def _reach(self, process: Process, order: Order) -> None:
        """The call is at the store."""
        if not process.is_alive and not process.last_words:
            return
        up_again = self._outages.until(self._timeline.now)
        if up_again is not None:
            self._again(process, order, up_again)
            return
        process.last_words = False
        answer = self._execute_now(process, order)
        if process.is_alive:
            self._timeline.after(self._delay(process), self._answer, process, order, answer, self._timeline.now)

    def _again(self, process: Process, order: Order, when: int) -> None:
        if process.is_alive:
            self._counts["calls repeated"] += 1
            self._timeline.at(when + self._delay(process), self._reach, process, order)

    def _answer(self, process: Process, order: Order, answer: Fact | None, executed: int) -> None:
        now = self._timeline.now
        if self._outages.began_between(executed, now):
            self._again(process, order, self._outages.until(now) or now)
        else:
            self._answered(process, answer)

    def _answered(self, process: Process, answer: Fact | None) -> None:
        if process.is_away(self._answered, process, answer):
            return
        process.calls.popleft()
        process.calling = False
        if process.calls:
            self._begin(process)
        if answer is not None:
            self._tell(process, answer)
