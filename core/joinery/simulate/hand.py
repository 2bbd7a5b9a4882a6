"""The operator's hand: tells the gateway what the schedule's steps ask for, again on every connection until it is so.

Rule 1: wishes are told in order. A change of the spec waits until the one before it is recorded: its version counts.
Rule 2: a drain is done when the gateway says that the worker is empty; a change when it is recorded; a move when the
        map says so, or when there is nobody to move to any more. Telling a wish twice does no harm.
        A change that is asked for as a whole spec is done when it is answered, with a refusal too; until then no other
        one is told.
Rule 3: if the schedule says so, the real operator's machine hears everything too, and decides the degree.
"""

from collections.abc import Callable

from joinery.machine import facts, messages
from joinery.machine.facts import Fact
from joinery.machine.messages import ChangeQuery, ChangeSpec, Drain, MoveGroup
from joinery.machine.operator import OperatorMachine
from joinery.machine.orders import Order, Send, SetReplicas, Stop
from joinery.model.ids import GATEWAY, WorkerId
from joinery.model.quantities import Nanoseconds
from joinery.model.spec import JoinQuerySpec
from joinery.model.time import UNBOUNDED

Wish = Drain | MoveGroup | ChangeSpec | ChangeQuery


def whole(spec: JoinQuerySpec, change: ChangeSpec) -> ChangeQuery:
    """The query with the windows, lateness and idle timeouts of a change; settings that are not logged change too."""
    streams = []
    for stream, window, lateness, idle in zip(
        spec.streams, change.windows, change.lateness_ns, change.idle_timeout_ns, strict=True
    ):
        timeout = "never" if idle >= UNBOUNDED else Nanoseconds(idle)
        late = {"lateness": Nanoseconds(lateness), "idle_timeout": timeout}
        time = None if stream.time is None else stream.time.model_copy(update=late)
        streams.append(stream.model_copy(update={"window": window, "time": time}))
    tuning = spec.fine_tuning.model_copy(update={"theta": spec.fine_tuning.theta * (1 + change.version)})
    checkpoint = spec.checkpoint.model_copy(update={"interval": spec.checkpoint.interval * (1 + change.version)})
    scaling = spec.scaling.model_copy(update={"max_parallel_moves": 1 + change.version})
    other = {"streams": tuple(streams), "fine_tuning": tuning, "checkpoint": checkpoint, "scaling": scaling}
    return ChangeQuery(spec.model_copy(update=other))


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
        self.whole_of: Callable[[ChangeSpec], ChangeQuery] | None = None
        """How a change is asked for as a whole spec; None: it is not."""
        self._is_so, self._recorded, self._emptied = is_so, recorded, emptied
        self._operator, self._scale = operator, scale
        self._wishes: list[Wish] = []
        self._told: set[int] = set()
        """Places in `_wishes` of those that were told on this connection."""
        self._is_connected = False

    def wish(self, wish: Wish) -> list[Order]:
        """One more."""
        self._wishes.append(self.whole_of(wish) if self.whole_of and isinstance(wish, ChangeSpec) else wish)
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
            case facts.Received(_, messages.QueryChanged()):
                self._answered()
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

    def _answered(self) -> None:
        """The first change that waits is done."""
        place = next(at for at, wish in enumerate(self._wishes) if isinstance(wish, ChangeQuery))
        del self._wishes[place]
        self._told = {at - (at > place) for at in self._told if at != place}

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
        if isinstance(wish, ChangeQuery):
            return wish is next(one for one in self._wishes if isinstance(one, ChangeQuery))
        return not (isinstance(wish, MoveGroup) and self._is_so(wish))
