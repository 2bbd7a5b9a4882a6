"""The shell of every simulated process: facts to machines, orders to network, stores, join modules and clocks.

Rule 1: orders are carried out in order, and take no time themselves. What they cause comes back as an event, so a
        machine is never called while it is being called.
Rule 2: before every effect the schedule is asked. A crash drops the rest of the orders with the process; a pause keeps
        them, and they are the first thing that the process does when it goes on.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from joinery.machine import facts, orders
from joinery.machine.calls import STORE_ORDERS
from joinery.machine.facts import Fact
from joinery.machine.orders import ModuleOrder, Order
from joinery.simulate.charges import Charges
from joinery.simulate.faults import CrashPoints, Outages
from joinery.simulate.history import History
from joinery.simulate.network import Network
from joinery.simulate.process import Process, State
from joinery.simulate.schedule import MS, Crash, Pause, Schedule
from joinery.simulate.stores import StoreCalls, Stores
from joinery.simulate.story import FACT, ORDER, Story
from joinery.simulate.timeline import Timeline
from joinery.simulate.workshop import MODULE_ORDERS, Workshop

_MESSAGES: Final = frozenset({orders.Send, orders.SendAcknowledge, orders.SendExchange, orders.Emit})
_TIMER_NS: Final = MS // 10
"""No clock rings sooner after it was set: a real one does not either."""
_NOTED: Final = frozenset({orders.Take, orders.SetReplicas})
"""Effects that nobody but the schedule and the history looks at."""


class Shell:
    """Runs machines."""

    def __init__(
        self,
        schedule: Schedule,
        stores: Stores,
        history: History,
        counts: Counter[str],
        *,
        on_fault: Callable[[Process, Crash | Pause], None],
        on_stop: Callable[[Process, str], None],
        on_handled: Callable[[Process], None],
    ) -> None:
        self.timeline, self.story = Timeline(), Story()
        self.points, self.history = CrashPoints(schedule), history
        self.acting: Process | None = None
        """Whose machine was called last: the one to blame if the world ends."""
        self._stores, self._on_fault, self._on_stop, self._on_handled = stores, on_fault, on_stop, on_handled
        timing = schedule.timing
        self.network = Network(self.timeline, timing, schedule.seed, self.tell, counts)
        self._calls = StoreCalls(self.timeline, timing, Outages(schedule), self._execute, self.tell, counts)
        self._workshop = Workshop(self.timeline, timing, self._perform, self.tell)

    def charge(self, charges: Charges) -> None:
        """From now on work and messages take what they cost."""
        self.network.charges = self._workshop.charges = charges

    # --- facts in

    def tell(self, process: Process, fact: Fact) -> None:
        """Hand a fact to a process's machine, and carry out what it orders."""
        if process.is_away(self.tell, process, fact):
            return
        self.acting, process.heard = process, fact
        self.story.add(self.timeline.now, process.instance, FACT, fact)
        self.history.saw(process, fact)
        made = process.machine.handle(fact, process.clock.now_ns(self.timeline.now))
        check = getattr(process.machine, "check_invariants", None)
        if check is not None:
            check()
        self.history.bounds.after(process, fact)
        self.carry_out(process, made)
        self._on_handled(process)

    def resume(self, process: Process) -> None:
        """A paused process goes on where it stood, then hears what happened meanwhile."""
        if process.state is not State.PAUSED:
            return
        process.state = State.RUNNING
        rest, process.rest = process.rest, ()
        if rest:
            self.acting = process
            self._do(process, rest[0])
            self.carry_out(process, rest[1:])
        while process.held and process.state is State.RUNNING:
            do, arguments = process.held.popleft()
            do(*arguments)

    # --- orders out

    def carry_out(self, process: Process, made: Sequence[Order]) -> None:
        """Do what a machine ordered, until a fault strikes or it stops."""
        for place, order in enumerate(made):
            if process.state is not State.RUNNING:
                return
            fault = None if process.role is None else self.points.before(process.role, process.ordinal, order)
            if fault is not None:
                process.rest = made[place:]
                self._on_fault(process, fault)
                return
            self._do(process, order)

    def _do(self, process: Process, order: Order) -> None:
        self.story.add(self.timeline.now, process.instance, ORDER, order)
        self.history.saw(process, order)
        kind = type(order)
        if kind in _MESSAGES:
            self.network.send(process, order.to, order.message)  # type: ignore[union-attr]
        elif kind is orders.WakeAt:
            self._wake_at(process, order.at_ns)  # type: ignore[union-attr]
        elif kind in STORE_ORDERS:
            self._calls.call(process, order)
        elif kind in MODULE_ORDERS:
            self._workshop.order(process, order)  # type: ignore[arg-type]
        elif kind is orders.Disconnect:
            self.network.close(process, order.peer)  # type: ignore[union-attr]
        elif kind is orders.Stop:
            self._on_stop(process, order.because)  # type: ignore[union-attr]
        elif kind not in _NOTED:
            raise TypeError(f"found the order {kind.__name__}, wanted one that the simulated shell knows; teach it")

    def _wake_at(self, process: Process, at_ns: int) -> None:
        process.wake += 1
        delay = at_ns - process.clock.now_ns(self.timeline.now)
        self.timeline.after(max(_TIMER_NS, delay), self._ring, process, process.wake)

    def _ring(self, process: Process, wake: int) -> None:
        if process.wake != wake or process.is_away(self._ring, process, wake):
            return
        self.tell(process, facts.Tick())  # also if its clock was set back: an alarm waits for so long, not until then

    # --- stores and modules

    def _execute(self, process: Process, order: Order) -> Fact | None:
        self.acting = process
        answer = self._stores.carry_out(process, order)
        self.history.stored(process, order, answer)
        return answer

    def _perform(self, process: Process, order: ModuleOrder) -> list[Fact]:
        self.acting = process
        module: Any = process.module
        return list(module.perform(order))
