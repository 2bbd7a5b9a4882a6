"""One process of the service: a machine, its shell, its stores, its connections; wired the same for every role."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from joinery.adapters.conversations import Conversation
from joinery.adapters.http_probes import Missing, Probes
from joinery.adapters.links import Dialer, Listener
from joinery.adapters.lookups import Lookups
from joinery.adapters.pressure import UNSENT_BYTES
from joinery.adapters.security import PLAIN, Security
from joinery.adapters.shell import Machine, ModuleRunner, Recorder, Shell, StoreRunner
from joinery.machine import orders
from joinery.machine.calls import STORE_ORDERS, Calls
from joinery.machine.facts import Connected, Disconnected, Fact
from joinery.machine.messages import Message
from joinery.machine.orders import Order
from joinery.machine.table_orders import AskTable, LookAfterWaiting, ReadTable, TakeTable
from joinery.model.ids import Peer

Send = Callable[[Any], None]
"""Carries out one order to send."""
MODULE_ORDERS = (
    orders.JoinBatch,
    orders.TakeIncrements,
    orders.PrepareGroup,
    orders.PrepareMore,
    orders.RestoreGroup,
    orders.DropGroups,
    orders.MeasureState,
    orders.TuneJoin,
    TakeTable,
    LookAfterWaiting,
)


class Process:
    """Runs a machine with real stores and real connections."""

    def __init__(
        self, machine: Machine, calls: Calls, *, recorder: Recorder | None = None, security: Security = PLAIN
    ) -> None:
        self.shell = Shell(machine, calls.instance, recorder=recorder)
        self._security = security
        self._calls = calls
        self._stores = StoreRunner("stores", self.shell)
        self._preloads: StoreRunner | None = None
        """Reads whole groups that somebody else still owns; what is urgent does not wait for them."""
        self._listener: Listener | None = None
        self._dialers: dict[Peer, Dialer] = {}
        self._inside: dict[Peer, Callable[[Message], None]] = {}
        """Peers that live in this process."""
        self._closers: list[Callable[[], None]] = []
        self.shell.carrying(dict.fromkeys(STORE_ORDERS, self._ask))
        sends = (orders.Send, orders.SendAcknowledge, orders.SendExchange, orders.Emit)
        self.shell.carrying(dict.fromkeys(sends, self._send))
        self.shell.carrying({orders.Disconnect: self._disconnect, orders.Take: _nothing})

    # --- wiring

    def listen(self, address: str, talks: Sequence[Conversation], *, reflects: bool = False) -> int:
        """Serve these conversations, and whether we are well; `reflects`: also which there are. The port."""
        gate, security = self._stores.gate, self._security
        self._listener = Listener(self.shell, address, talks, reflects=reflects, gate=gate, security=security)
        self._closers.append(self._listener.close)
        return self._listener.port

    def dial(self, peer: Peer, address: Callable[[], str | None], talk: Conversation, role: str = "") -> None:
        """Keep a connection to a peer up."""
        self._dialers[peer] = Dialer(self.shell, peer, address, talk, role, self._security)
        self._closers.append(self._dialers[peer].close)

    def probed(self, probes: Probes | None, *missing: Missing) -> None:
        """Tell probes how we are; `missing`: what we lack for our work. They answer until everything else has ended."""
        if probes is not None:
            probes.watch(self.shell, *missing)
            self._closers.insert(0, probes.close)

    def ending(self, close: Callable[[], None]) -> None:
        """Also do this at the end, before what was begun earlier ends."""
        self._closers.append(close)

    def lacks(self, peer: Peer) -> str | None:
        """What is missing as long as a peer that we dial is not there."""
        refused = self.refused(peer)
        return None if self._dialers[peer].is_up else f"no connection to the {peer}{f': {refused}' if refused else ''}"

    def refused(self, peer: Peer) -> str | None:
        """Why a peer that we dial, and that is there, does not talk with us."""
        return self._dialers[peer].refused

    def attach(self, peer: Peer, receive: Callable[[Message], None]) -> None:
        """A peer inside this process: what is sent to it goes to `receive`."""
        self._inside[peer] = receive
        self.shell.tell(Connected(peer))

    def detach(self, peer: Peer) -> None:
        """The peer inside has ended."""
        if self._inside.pop(peer, None) is not None:
            self.shell.tell(Disconnected(peer))

    def send(self, peer: Peer, message: Message) -> None:
        """A word of our own to a peer, beside what the machine says; from any thread."""
        self._send(orders.Send(peer, message))

    def joining(self, perform: Callable[[Any], Iterator[Fact]]) -> None:
        """A worker's join module, on a thread of its own."""
        module = ModuleRunner(perform, self.shell, self._results_are_read)
        self.shell.carrying(dict.fromkeys(MODULE_ORDERS, module.order))
        self._closers.append(module.close)

    def looking_up(self, lookups: Lookups) -> None:
        """Questions about a stored table, asked on a thread of their own: stores are not kept waiting by them."""
        runner = StoreRunner("lookups", self.shell)
        carry = dict.fromkeys((AskTable, ReadTable), lambda order: runner.ask(lambda: lookups.carry_out(order)))
        self.shell.carrying(carry)
        self._closers += [runner.close, lookups.close]  # the last first: a question under way ends with its channel

    def sending(self, through: Callable[[Send], Send]) -> None:
        """What is sent to workers and attendants takes another way, which ends in the one it is given (figures)."""
        self.shell.carrying(dict.fromkeys((orders.Send, orders.SendExchange), through(self._send)))

    def _results_are_read(self) -> bool:
        """Whether more results may be made (`pressure`, rule 3)."""
        return sum(dialer.nbytes for dialer in list(self._dialers.values())) < UNSENT_BYTES

    # --- life

    def run(self) -> str:
        """Until the machine stops, or is stopped; why."""
        try:
            return self.shell.run()
        finally:
            self.close()

    def close(self) -> None:
        """End what was started, the last first."""
        self.shell.stop("closed")
        closers, self._closers = self._closers, []
        for close in reversed(closers):
            close()
        self._stores.close()
        if self._preloads is not None:
            self._preloads.close()

    # --- orders

    def _ask(self, order: Order) -> None:
        store = self._stores
        if isinstance(order, orders.ReadCheckpoint) and order.version is None:
            store = self._preloads = self._preloads or StoreRunner("preloads", self.shell)
        store.ask(lambda: self._calls.carry_out(order))

    def _send(self, order: Any) -> None:
        if (receive := self._inside.get(order.to)) is not None:
            receive(order.message)
        elif (dialer := self._dialers.get(order.to)) is not None:
            dialer.send(order.message)
        elif self._listener is not None:
            self._listener.send(order.to, order.message)

    def _disconnect(self, order: orders.Disconnect) -> None:
        if (dialer := self._dialers.get(order.peer)) is not None:
            dialer.disconnect()
        elif self._listener is not None:
            self._listener.disconnect(order.peer)


def _nothing(order: Order) -> None:
    """For whoever watches."""
    del order
