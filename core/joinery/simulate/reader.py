"""A simulated subscriber: on every connection it reads on from where it stands; what is gone it must do without."""

from joinery.machine import facts, messages
from joinery.machine.facts import Fact
from joinery.machine.orders import Order, Send
from joinery.model.ids import COLLECTOR, Peer
from joinery.simulate.process import Process
from joinery.simulate.schedule import Schedule


class Reader:
    """The machine of a subscriber; with a credit it asks for one delivery after the other."""

    def __init__(self, credit: int | None = None) -> None:
        self._credit = credit
        self._token: messages.Token | None = None

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:  # noqa: ARG002
        """What to do about a fact."""
        match fact:
            case facts.Connected():
                return [self._subscribe()]
            case facts.Received(_, messages.Delivery() as delivery):
                self._token = delivery.token
                return [] if self._credit is None else [Send(COLLECTOR, messages.Grant(1))]
            case facts.Received(_, messages.TokenTooOld() as refused):
                self._token = refused.oldest
                return [self._subscribe()]
        return []

    def _subscribe(self) -> Order:
        return Send(COLLECTOR, messages.Subscribe(self._token, self._credit))


def readers(schedule: Schedule) -> list[Process]:
    """The subscribers of a run; no fault strikes them. The first takes what comes, the others ask for it."""
    names = [f"subscriber-{place}" for place in range(schedule.subscribers)]
    return [
        Process(None, place, f"{name}/1", Peer(name), Reader(2 if place else None), schedule.seed, 0)
        for place, name in enumerate(names)
    ]
