"""The operator's hand: tells the gateway what the schedule's steps ask for, again on every connection until it is so.

Rule 1: wishes are told in order. A change of the spec waits until the one before it is recorded: its version counts.
Rule 2: a drain is done when the gateway says that the worker is empty; a change when it is recorded; a move when the
        map says so, or when there is nobody to move to any more. Telling a wish twice does no harm.
Rule 3: if the schedule says so, the real operator's machine hears everything too, and decides the degree.
"""

from collections.abc import Callable

from joinery.machine import facts, messages
from joinery.machine.facts import Fact
from joinery.machine.messages import ChangeSpec, Drain, MoveGroup
from joinery.machine.operator import OperatorMachine
from joinery.machine.orders import Order, Send, SetReplicas, Stop
from joinery.model.ids import GATEWAY, WorkerId

Wish = Drain | MoveGroup | ChangeSpec


class Hand:
    """The machine of the simulated operator."""

    def __init__(
        self,
        is_so: Callable[[MoveGroup], bool],
        recorded: Callable[[], int],
        emptied: Callable[[tuple[WorkerId, ...]], None],
        operator: OperatorMachine | None = None,
        scale: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._is_so, self._recorded, self._emptied = is_so, recorded, emptied
        self._operator, self._scale = operator, scale
        self._wishes: list[Wish] = []
        self._told: set[int] = set()
        """Places in `_wishes` of those that were told on this connection."""
        self._is_connected = False

    def wish(self, wish: Wish) -> list[Order]:
        """One more."""
        self._wishes.append(wish)
        return self.go_on()

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:
        """What to do about a fact."""
        match fact:
            case facts.Connected():
                self._is_connected = True
                self._told.clear()
            case facts.Disconnected():
                self._is_connected = False
            case facts.Received(_, messages.Empty() as empty):
                self._emptied(empty.workers)
                self.forget(empty.workers)
            case facts.Received(_, messages.Finished()):
                return [Stop("the query has ended")]
        return [*self.go_on(), *self._decided(fact, now_ns)]

    @property
    def leaving(self) -> frozenset[WorkerId]:
        """Workers that the operator's machine wants empty."""
        return frozenset() if self._operator is None else self._operator._leaving

    def _decided(self, fact: Fact, now_ns: int) -> list[Order]:
        """What the operator's machine makes of it (rule 3)."""
        made = [] if self._operator is None else self._operator.handle(fact, now_ns)
        for order in made:
            if isinstance(order, SetReplicas):
                self._scale(order.replicas)
        return made

    def forget(self, workers: tuple[WorkerId, ...]) -> None:
        """These workers are gone: nobody drains them, nothing moves there."""
        keep = [
            place
            for place, wish in enumerate(self._wishes)
            if not (isinstance(wish, Drain) and set(wish.workers) <= set(workers))
            and not (isinstance(wish, MoveGroup) and wish.to in workers)
        ]
        self._told = {keep.index(place) for place in self._told if place in keep}
        self._wishes = [self._wishes[place] for place in keep]

    def go_on(self) -> list[Order]:
        """Tell what was not told yet and can be told now."""
        if not self._is_connected:
            return []
        made: list[Order] = []
        for place, wish in enumerate(self._wishes):
            if place not in self._told and self._can_be_told(wish):
                self._told.add(place)
                made.append(Send(GATEWAY, wish))
        return made

    def _can_be_told(self, wish: Wish) -> bool:
        if isinstance(wish, ChangeSpec):
            return wish.version == self._recorded() + 1
        return not (isinstance(wish, MoveGroup) and self._is_so(wish))
