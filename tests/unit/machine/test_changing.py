"""A running query is changed, fact by fact: the store first, then everybody, then the log; a crash in between."""

from typing import TypeVar

from joinery.machine import facts, messages, orders
from joinery.machine.log import StreamEnded
from joinery.machine.memory import MemoryLog
from joinery.machine.messages import ChangeQuery, EndStreams, QueryChanged, SpecNow, StreamsEnded
from joinery.machine.operator import OperatorMachine
from joinery.machine.orders import Order
from joinery.machine.worker import WorkerMachine
from joinery.model.ids import GATEWAY, OPERATOR, Peer, Term, WorkerId
from joinery.model.quantities import parse_window
from joinery.model.spec import JoinQuerySpec
from tests.unit.machine.building import SECOND, hello, of, sent, spec_of
from tests.unit.machine.test_gateway import PEER0, PEER1, A, Driver

T = TypeVar("T")
SOMEBODY, OTHER = Peer("somebody"), Peer("somebody else")
BEFORE = {"replicas": 2, "epochs": {"distribution": "1ms"}}


def spec(*windows: str, **more: object) -> JoinQuerySpec:
    return spec_of(*(windows or ("100ns", "100ns")), **{**BEFORE, **more})


def driver(log: MemoryLog | None = None) -> Driver:
    made = Driver(spec(), log)
    made.open("one" if log is None else "two")
    made.workers()
    return made


def written(made: Driver, order: Order) -> list[Order]:
    """The spec is durable."""
    assert isinstance(order, orders.WriteSpec)
    made.log.write_spec(order.term, order.kept)
    return made.tell(facts.SpecWritten(order.kept))


def told(made: list[Order], kind: type[T], peer: Peer) -> list[T]:
    return [message for to, message in sent(made, kind) if to == peer]


def answers(made: list[Order], peer: Peer = SOMEBODY) -> list[QueryChanged]:
    return told(made, QueryChanged, peer)


def test_a_window_is_stored_recorded_and_then_answered() -> None:
    gateway = driver()
    (write,) = of(gateway.say(SOMEBODY, ChangeQuery(spec("5s", "100ns"))), orders.WriteSpec)
    assert 1 == write.kept.version
    made = written(gateway, write)
    (append,) = of(made, orders.AppendRecord)
    (change,) = append.record.changes()
    assert (parse_window("5s"), parse_window("100ns")) == change.windows
    assert [] == answers(made)
    (answer,) = answers(gateway.durable())
    assert (append.number, ["spec.streams[0].window"]) == (answer.record, [one.field for one in answer.changes.logged])


def test_a_setting_holds_at_once_for_gateway_workers_and_operator() -> None:
    gateway = driver()
    wanted = spec(scaling={"beta": 0.25}, epochs={"distribution": "1ms", "reorganization": "9s"})
    (write,) = of(gateway.say(SOMEBODY, ChangeQuery(wanted)), orders.WriteSpec)
    made = written(gateway, write)
    news = [one for one in of(made, orders.Send) if isinstance(one.message, SpecNow)]
    assert {OPERATOR, PEER0, PEER1} == {one.to for one in news}
    assert [wanted] * 3 == [one.message.spec for one in news]
    assert ([None], wanted, []) == ([one.record for one in answers(made)], gateway.machine.spec, gateway.writing)


def test_a_refused_change_is_answered_and_nothing_is_written() -> None:
    gateway = driver()
    made = gateway.say(SOMEBODY, ChangeQuery(spec("5s", "5s", partitions=7)))
    (answer,) = answers(made)
    assert (["spec.partitions"], []) == ([one.field for one in answer.changes.refused], of(made, orders.WriteSpec))


def test_who_asks_while_a_change_is_under_way_is_answered_by_what_it_left() -> None:
    gateway = driver()
    (write,) = of(gateway.say(SOMEBODY, ChangeQuery(spec("5s", "5s"))), orders.WriteSpec)
    assert [] == of(gateway.say(OTHER, ChangeQuery(spec("5s", "5s"))), orders.WriteSpec)
    made = written(gateway, write) + gateway.durable()
    (answer,) = answers(made, OTHER)
    assert answer.changes.is_empty


def test_a_gateway_that_died_between_store_and_log_is_followed_by_one_that_records_the_change() -> None:
    gateway = driver()
    (write,) = of(gateway.say(SOMEBODY, ChangeQuery(spec("5s", "5s"))), orders.WriteSpec)
    gateway.log.write_spec(write.term, write.kept)
    after = Driver(spec(), gateway.log)
    after.tell(facts.Started("two"))
    term = gateway.log.open(gateway.machine.intake.head, "two")
    head, records = gateway.log.read()
    made = after.tell(facts.GatewayOpened(term, head, tuple(records), None, gateway.log.read_spec()))
    (append,) = of(made, orders.AppendRecord)
    assert [(parse_window("5s"),) * 2] == [change.windows for change in append.record.changes()]
    after.durable()
    (answer,) = answers(after.say(SOMEBODY, ChangeQuery(spec("5s", "5s"))))
    assert answer.changes.is_empty


def test_a_file_that_already_holds_the_change_gives_the_same_windows() -> None:
    gateway = driver()
    (write,) = of(gateway.say(SOMEBODY, ChangeQuery(spec("5s", "5s"))), orders.WriteSpec)
    written(gateway, write)
    gateway.durable()
    for file in (spec(), spec("5s", "5s")):
        after = Driver(file, gateway.log)
        term = gateway.log.open(gateway.machine.intake.head, f"{file.streams[0].window}")
        head, records = gateway.log.read()
        made = after.tell(facts.GatewayOpened(term, head, tuple(records), None, gateway.log.read_spec()))
        assert [] == of(made, orders.AppendRecord)
        assert ((parse_window("5s"),) * 2, 1) == (after.machine.intake.windows, len(after.machine.intake.head.changes))


def test_who_comes_later_is_told_the_spec_in_force() -> None:
    gateway = driver()
    (write,) = of(gateway.say(SOMEBODY, ChangeQuery(spec(checkpoint={"interval": "9s"}))), orders.WriteSpec)
    written(gateway, write)
    (now,) = told(gateway.say(Peer("worker-0/2"), hello("worker-0", instance="two")), SpecNow, Peer("worker-0/2"))
    assert write.kept.spec == now.spec
    (now,) = told(gateway.tell(facts.Connected(OPERATOR)), SpecNow, OPERATOR)
    assert write.kept.spec == now.spec


def test_a_drain_ends_every_stream_with_the_next_record_and_refuses_what_comes_after() -> None:
    gateway = driver()
    gateway.producer(A, 0)
    gateway.durable()
    gateway.push(A, 0, (1, 5))
    gateway.durable()
    (append,) = of(gateway.say(SOMEBODY, EndStreams()), orders.AppendRecord)
    assert (StreamEnded(0), StreamEnded(1)) == append.record.entries
    made = gateway.durable()
    assert [StreamsEnded(append.number)] == told(made, StreamsEnded, SOMEBODY)
    assert gateway.machine.intake.head.ended
    (refused,) = told(gateway.push(A, 1, (1, 6)), messages.Refuse, A)
    assert "has ended" in refused.reason
    (answer,) = answers(gateway.say(SOMEBODY, ChangeQuery(spec("5s", "5s"))))
    assert "a query whose streams have ended" == answer.changes.refused[0].found
    assert [StreamsEnded(append.number)] == told(gateway.say(OTHER, EndStreams()), StreamsEnded, OTHER)


# --- workers and the operator


def now(*windows: str, term: int = 1, **more: object) -> facts.Received:
    return facts.Received(GATEWAY, SpecNow(Term(term), spec(*windows, **more)))


def test_a_worker_goes_by_other_settings_and_wakes_for_them() -> None:
    worker = WorkerMachine(spec(epochs={"reorganization": "60s"}), WorkerId("worker-0"))
    worker.handle(facts.Started("i"), 0)
    worker.handle(facts.Connected(GATEWAY), 0)
    tuning = {"theta": "8Mi"}
    made = worker.handle(now("5s", "5s", epochs={"reorganization": "4s"}, fineTuning=tuning), SECOND)
    assert [8 << 20] == [one.theta_bytes for one in of(made, orders.TuneJoin)]
    assert [2 * SECOND] == [one.at_ns for one in of(made, orders.WakeAt)]
    assert 1 == len(sent(made, messages.Alive))


def test_a_worker_does_not_listen_to_a_gateway_that_was_replaced() -> None:
    worker = WorkerMachine(spec(), WorkerId("worker-0"))
    worker.gateway_term = Term(3)
    assert ([], spec()) == (worker.handle(now(term=2, replicas=9), 0), worker.spec)


def test_no_mini_groups_is_a_setting_too() -> None:
    worker = WorkerMachine(spec(), WorkerId("worker-0"))
    made = worker.handle(now(fineTuning={"enabled": False}), 0)
    assert [None] == [one.theta_bytes for one in of(made, orders.TuneJoin)]


def test_the_operator_asks_for_the_replicas_that_were_changed_and_decides_by_the_new_rule() -> None:
    operator = OperatorMachine(spec())
    (grown,) = of(operator.handle(now(replicas=5, scaling={"beta": 0.25}), 0), orders.SetReplicas)
    assert (5, 0.25) == (grown.replicas, operator.spec.scaling.beta)
    assert [] == operator.handle(now(replicas=5, scaling={"beta": 0.125}), 0)


def test_the_operator_drains_before_there_are_fewer_replicas() -> None:
    operator = OperatorMachine(spec())
    made = operator.handle(now(replicas=1), 0)
    assert [messages.Drain((WorkerId("worker-1"),))] == [message for _, message in sent(made, messages.Drain)]
    empty = facts.Received(GATEWAY, messages.Empty((WorkerId("worker-1"),)))
    (fewer,) = of(operator.handle(empty, 0), orders.SetReplicas)
    assert 1 == fewer.replicas
