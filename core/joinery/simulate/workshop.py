"""The join modules of simulated workers: orders one after the other, each for a while, facts back one by one.

How long an order takes is drawn, or with `charges` it is what the order cost: then it is carried out when it begins,
and its facts are told when its time is over.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, get_args

from joinery.machine import orders
from joinery.machine.facts import BatchJoined, Fact
from joinery.machine.orders import ModuleOrder
from joinery.model.errors import require
from joinery.simulate.charges import Charges
from joinery.simulate.process import Process
from joinery.simulate.schedule import Timing
from joinery.simulate.timeline import Timeline

MODULE_ORDERS: Final = frozenset(get_args(ModuleOrder))


class Workshop:
    """Lets time pass for what modules do."""

    def __init__(
        self,
        timeline: Timeline,
        timing: Timing,
        perform: Callable[[Process, ModuleOrder], list[Fact]],
        tell: Callable[[Process, Fact], None],
    ) -> None:
        self._timeline, self._timing, self._perform, self._tell = timeline, timing, perform, tell
        self.charges: Charges | None = None

    def order(self, process: Process, order: ModuleOrder) -> None:
        """Have it done after what was ordered before."""
        process.jobs.append(order)
        if not process.working:
            self._begin(process)

    def _begin(self, process: Process) -> None:
        process.working = True
        if self.charges is not None:
            facts = self._perform(process, process.jobs[0])
            takes = self.charges.job_ns(process, process.jobs[0], facts, self._timeline.now)
            self._timeline.after(takes, self._done, process, takes, facts)
            return
        takes = self._takes(process)
        self._timeline.after(takes, self._done, process, takes)

    def _takes(self, process: Process) -> int:
        return process.labour.between(self._timing.join_ns) if self.charges is None else 0

    def _done(self, process: Process, took: int, facts: list[Fact] | None = None) -> None:
        if process.is_away(self._done, process, took, facts):
            return
        order = process.jobs.popleft()
        facts = self._perform(process, order) if facts is None else facts
        if isinstance(order, orders.JoinBatch):
            facts = [replace(fact, busy_ns=took) if isinstance(fact, BatchJoined) else fact for fact in facts]
        require(not process.answers, "a module began before its last answer was heard")
        process.answers.extend(facts)
        self._hand_over(process)

    def _hand_over(self, process: Process) -> None:
        """The next answer; after the last one, the next order."""
        if process.is_away(self._hand_over, process):
            return
        answer = process.answers.popleft() if process.answers else None
        if process.answers:
            self._timeline.after(self._takes(process), self._hand_over, process)
        elif process.jobs:
            self._begin(process)
        else:
            process.working = False
        if answer is not None:
            self._tell(process, answer)
