"""What figures slow down in the gateway: a link with so many bytes per second, and turns that nobody knows."""

import threading
import time

import pytest

from joinery.adapters.shell import Shell
from joinery.gateway.throttling import AT_ONCE, LINK, TURNS, CappedLink, throttle
from joinery.machine.messages import Alive, Exchange, Ping
from joinery.machine.orders import Order, Send, SendExchange
from joinery.model.ids import Peer
from tests.unit.machine.test_serving import Desk


class Nobody:
    def handle(self, fact: object, now_ns: int) -> list[Order]:  # noqa: ARG002 - is told nothing
        return []


def exchange() -> Exchange:
    return Desk().fill()[0]


class Wire:
    """What has left, and when."""

    def __init__(self, bytes_per_s: float, wanted: int) -> None:
        self.left: list[tuple[str, float]] = []
        self._wanted, self._done = wanted, threading.Event()
        self.link = CappedLink(bytes_per_s, self._leave, Shell(Nobody(), "gateway"))

    def _leave(self, order: Send | SendExchange) -> None:
        self.left.append((type(order.message).__name__, time.monotonic()))
        if len(self.left) == self._wanted:
            self._done.set()

    def wait(self) -> list[str]:
        assert self._done.wait(10)
        return [name for name, _ in self.left]


def test_a_message_takes_as_long_as_its_rows_do_and_the_next_one_waits_for_it() -> None:
    message, begun = exchange(), time.monotonic()
    wire = Wire(message.nbytes / 0.1, 2)
    for worker in ("a", "b"):
        wire.link.send(SendExchange(Peer(worker), message))
    wire.wait()
    first, second = (at - begun for _, at in wire.left)
    assert first >= 0.1
    assert second >= 0.2


def test_nothing_overtakes_rows_but_a_question_for_the_time() -> None:
    message = exchange()
    wire = Wire(message.nbytes / 0.1, 3)
    for order in (SendExchange(Peer("a"), message), Send(Peer("a"), Alive()), Send(Peer("a"), Ping(1, 0))):
        wire.link.send(order)
    assert ["Ping", "Exchange", "Alive"] == wire.wait()


def test_workers_that_do_not_know_their_turns_are_all_served_at_the_slots_start_once_in_an_epoch() -> None:
    desk = Desk("worker-0", "worker-1", "worker-2")  # slots [0, 50) for worker-0 and [50, 100) for the others
    desk.serving.turns_known = False
    desk.serving.reschedule(0)
    assert 0 == desk.serving.next_turn_ns()
    assert ["worker-0"] == desk.serve(0)
    assert 50 == desk.serving.next_turn_ns()
    assert ["worker-1", "worker-2"] == desk.serve(50)
    assert 100 == desk.serving.next_turn_ns()


@pytest.mark.parametrize(("said", "known"), [(AT_ONCE, False), ("", True)])
def test_the_environment_says_what_is_slowed_down(said: str, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TURNS, said)
    monkeypatch.delenv(LINK, raising=False)
    machine, process = _Machine(), _Process()
    throttle(machine, process)  # type: ignore[arg-type]
    assert known == machine.serving.turns_known
    assert [] == process.ways
    monkeypatch.setenv(LINK, "1000")
    throttle(machine, process)  # type: ignore[arg-type]
    assert 1 == len(process.ways)


class _Machine:
    def __init__(self) -> None:
        self.serving = Desk().serving


class _Process:
    def __init__(self) -> None:
        self.ways: list[object] = []
        self.shell = Shell(Nobody(), "gateway")

    def sending(self, through: object) -> None:
        self.ways.append(through)
