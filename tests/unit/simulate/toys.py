"""Tiny machines for tests of the simulated world itself, and schedules for them."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from joinery.machine import facts, orders
from joinery.machine.effects import Effect
from joinery.machine.facts import Fact
from joinery.machine.log import Head, Record
from joinery.machine.orders import ModuleOrder, Order, Stop
from joinery.model.ids import ProducerId, RecordNo, Term
from joinery.simulate.machines import Machines
from joinery.simulate.schedule import MS, Batch, CrashPoint, Role, Schedule, Script
from joinery.window.watermark import StreamClock

QUERY: dict[str, Any] = {
    "streams": [
        {
            "name": name,
            "schema": {"k": "int64", "n": "int64", "ts": "int64"},
            "window": "100ms",
            "time": {"column": "ts", "unit": "ms", "lateness": "10ms"},
        }
        for name in ("a", "b")
    ],
    "join": {"on": ["k"]},
    "partitions": 4,
    "epochs": {"distribution": "10ms", "reorganization": "100ms"},
    "checkpoint": {"interval": "60ms"},
    "replicas": 2,
}
HEAD = Head(RecordNo(0), (StreamClock(0), StreamClock(0)), (0, 0), (0, 0))


def schedule(**changed: Any) -> Schedule:
    """A schedule without producers or faults."""
    return Schedule(**{"seed": 1, "query": QUERY, "scripts": (), "workers": 1, "deadline_ns": 5_000 * MS, **changed})


def point(role: Role, effect: Effect | None, count: int = 1, ordinal: int = 0) -> CrashPoint:
    return CrashPoint(role, ordinal, effect, count)


def rows(*numbers: int, k: int = 1, ts: int = 0) -> pa.RecordBatch:
    """Rows of one key, 1 ms apart."""
    columns = {"k": [k] * len(numbers), "n": list(numbers), "ts": [ts + place for place in range(len(numbers))]}
    return pa.RecordBatch.from_pydict({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def script(stream: int, name: str, *batches: pa.RecordBatch, every_ms: int = 20) -> Script:
    """A producer that sends a batch every few milliseconds, then ends."""
    sent = [Batch(place * every_ms * MS, one) for place, one in enumerate(batches)]
    return Script(stream, ProducerId(name), (*sent, Batch(len(batches) * every_ms * MS, None, end=True)))


class Toy:
    """A machine made of a function; it remembers what it was told, and when."""

    def __init__(self, answer: Callable[["Toy", Fact], list[Order]] = lambda *_: []) -> None:
        self._answer = answer
        self.instance = ""
        self.heard: list[tuple[int, Fact]] = []
        self.term = Term(0)

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:
        if isinstance(fact, facts.Started):
            self.instance = fact.instance
        self.heard.append((now_ns, fact))
        return self._answer(self, fact)


class ToyModule:
    """Answers every order with as many facts as it has groups."""

    def perform(self, order: ModuleOrder) -> Iterator[Fact]:
        if isinstance(order, orders.TakeIncrements):
            for group in order.groups:
                yield facts.StateMeasured(int(group), ())


class Cast:
    """Factories that keep what they made."""

    def __init__(self, **answers: Callable[[Toy, Fact], list[Order]]) -> None:
        self.made: dict[str, list[Toy]] = {}
        self._answers = answers

    def of(self, role: str) -> list[Toy]:
        return self.made.get(role, [])

    def machines(self) -> Machines:
        return Machines(
            gateway=lambda *_: self._make("gateway"),
            collector=lambda *_: self._make("collector"),
            worker=lambda *_: self._make("worker"),
            module=lambda *_: ToyModule(),
            producer=lambda *_: self._make("producer"),
        )

    def _make(self, role: str) -> Toy:
        toy = Toy(self._answers[role]) if role in self._answers else Toy()
        self.made.setdefault(role, []).append(toy)
        return toy


def recorder(upto: int) -> Callable[[Toy, Fact], list[Order]]:
    """A gateway that writes empty records up to a number, then ends."""

    def answer(toy: Toy, fact: Fact) -> list[Order]:
        match fact:
            case facts.Started():
                return [orders.OpenLog(HEAD, fact.instance)]
            case facts.GatewayOpened():
                toy.term = fact.term
                return record(toy, len(fact.records))
            case facts.Appended():
                return record(toy, fact.record + 1)
            case facts.Fenced():
                return [Stop("fenced")]
        return []

    def record(toy: Toy, number: int) -> list[Order]:
        if number >= upto:
            return [Stop("the query has ended")]
        return [orders.AppendRecord(toy.term, RecordNo(number), Record(toy.term, (), (number, number)))]

    return answer
