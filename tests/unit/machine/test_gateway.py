"""The gateway, fact by fact: records, acknowledgements, workers, the collector, the end."""

from collections.abc import Sequence

import pytest

from joinery.elastic.load import LoadReport
from joinery.machine import facts, messages, orders
from joinery.machine.facts import Fact
from joinery.machine.gateway import GatewayMachine
from joinery.machine.intake import first_head
from joinery.machine.memory import MemoryLog
from joinery.machine.messages import Acknowledge, Assign, Drained, Exchange, Opened, Owners, Refuse, Trim, Vector
from joinery.machine.orders import Order
from joinery.machine.placement import Phase
from joinery.machine.tuning import LOST_AFTER
from joinery.model.errors import Bug
from joinery.model.ids import OPERATOR, Peer, ProducerId, RecordNo, Term, WorkerId
from joinery.model.spec import JoinQuerySpec
from tests.unit.machine.building import (
    GROUPS,
    SECOND,
    hello,
    holdings,
    of,
    plainly,
    push,
    sent,
    spec_of,
    wish,
)
from tests.unit.machine.result_parts import vector

W0, W1 = WorkerId("worker-0"), WorkerId("worker-1")
PEER0, PEER1, COLLECTOR = Peer("worker-0/1"), Peer("worker-1/1"), Peer("collector/1")
A, B = Peer("producer a"), Peer("producer b")
LOST = int(LOST_AFTER * 2 * SECOND)


class Driver:
    """A gateway on a memory log: what it writes is durable when the test says so, or at once."""

    def __init__(self, spec: JoinQuerySpec | None = None, log: MemoryLog | None = None) -> None:
        self.spec = spec or spec_of(replicas=2, epochs={"distribution": "1ms"})
        self.machine, self.log = GatewayMachine(self.spec), log or MemoryLog()
        self.writing: list[Order] = []
        self.now = 0

    def tell(self, fact: Fact) -> list[Order]:
        made = self.machine.handle(fact, self.now)
        self.machine.check_invariants()
        self.writing += of(made, orders.AppendRecord) + of(made, orders.WriteMap)
        return made

    def say(self, peer: Peer, message: messages.Message) -> list[Order]:
        return self.tell(facts.Received(peer, message))

    def tick(self, by: int = 0) -> list[Order]:
        self.now += by
        return self.tell(facts.Tick())

    def open(self, instance: str = "one") -> list[Order]:
        self.tell(facts.Started(instance))
        term = self.log.open(first_head(self.spec), instance)
        head, records = self.log.read()
        return self.tell(facts.GatewayOpened(term, head, tuple(records), self.log.read_map()))

    def durable(self) -> list[Order]:
        """Everything under way is written, and what follows from it too."""
        made: list[Order] = []
        while self.writing:
            one = self.writing.pop(0)
            if isinstance(one, orders.AppendRecord):
                self.log.append(one.term, one.number, one.record)
                made += self.tell(facts.Appended(one.number))
            elif isinstance(one, orders.WriteMap):
                self.log.write_map(one.term, one.map)
                made += self.tell(facts.MapWritten(one.map["version"]))
        return made

    # --- the others

    def workers(self) -> list[Order]:
        made = self.say(PEER0, hello("worker-0"))
        return made + self.say(PEER1, hello("worker-1")) + self.durable()

    def collector(self, term: int = 1, peer: Peer = COLLECTOR) -> list[Order]:
        return self.say(peer, messages.CollectorHello(Term(term)))

    def answer(self, *committed: int) -> list[Order]:
        """The collector answers with the versions that it was told last."""
        place = self.machine.placement
        terms = plainly(place.terms_of(vector(*range(GROUPS))))
        vectors = (vector(*terms), vector(*(committed or [-1] * GROUPS)), vector(*[-1] * GROUPS))
        return self.say(COLLECTOR, Vector(Term(1), *vectors))

    def commit(self, upto: int, groups: Sequence[int] = range(GROUPS)) -> list[Order]:
        return self.say(COLLECTOR, messages.Committed(Term(1), 1, vector(*groups), vector(*[upto] * len(groups))))

    def hold(self, peer: Peer, *groups: int, **more: int) -> list[Order]:
        return self.say(peer, messages.Holding(holdings(*groups, **more)))

    def checkpoint(self, peer: Peer, tag: int, *groups: int, version: int = 1) -> list[Order]:
        same = (vector(*[version] * len(groups)), vector(*[tag] * len(groups)))
        return self.say(peer, messages.Checkpointed(vector(*groups), *same))

    def producer(self, peer: Peer, stream: int) -> list[Order]:
        return self.say(peer, messages.Open(stream, ProducerId(peer)))

    def push(self, peer: Peer, sequence: int, *pairs: tuple[int, int], end: bool = False) -> list[Order]:
        return self.say(peer, push(1, sequence, *pairs, end=end))

    def run(self) -> "Driver":
        """All are there: groups 0, 1 with worker 0, groups 2, 3 with worker 1; both streams have a producer."""
        self.open()
        self.workers()
        self.collector()
        self.answer()
        self.hold(PEER0, 0, 1)
        self.hold(PEER1, 2, 3)
        self.producer(A, 0)
        self.producer(B, 1)
        self.durable()
        return self

    def end(self) -> int:
        """Both streams end; the number of the last record."""
        self.push(A, 0, (1, 1), end=True)
        self.push(B, 0, (1, 1), end=True)
        self.durable()
        return self.machine.intake.head.next_record - 1


@pytest.fixture
def driver() -> Driver:
    return Driver().run()


def acknowledged(made: list[Order]) -> list[tuple[Peer, int, int | None]]:
    return [(peer, message.sequence, message.record) for peer, message in sent(made, Acknowledge)]


# --- rule 1: records


def test_a_producer_is_not_acknowledged_before_its_record_is_durable(driver: Driver) -> None:
    made = driver.push(A, 0, (1, 1))
    assert (1, []) == (len(of(made, orders.AppendRecord)), acknowledged(made))


def test_a_producer_is_acknowledged_when_its_record_is_durable(driver: Driver) -> None:
    driver.push(A, 0, (1, 1))
    (append,) = driver.writing
    assert isinstance(append, orders.AppendRecord)
    assert [(A, 0, append.number)] == acknowledged(driver.tell(facts.Appended(append.number)))


def test_workers_are_not_sent_what_is_not_durable(driver: Driver) -> None:
    driver.tick(SECOND)
    driver.push(A, 0, (1, 1))
    assert [] == sent(driver.tick(SECOND), Exchange)


def test_workers_are_sent_what_is_durable_in_their_slots(driver: Driver) -> None:
    driver.push(A, 0, (1, 1))
    driver.durable()
    assert {PEER0, PEER1} == {peer for peer, _ in sent(driver.tick(SECOND // 1000), Exchange)}


def test_a_session_that_is_taken_over_is_told_because_what_it_has_waiting_is_dropped(driver: Driver) -> None:
    again = Peer("again")
    made = driver.say(again, messages.Open(0, ProducerId(A)))
    ((peer, refused),) = sent(made, messages.Refuse)
    assert (A, None, None) == (peer, refused.sequence, refused.expected)
    assert "fenced" in refused.reason


def test_one_record_is_written_at_a_time(driver: Driver) -> None:
    driver.push(A, 0, (1, 1))
    assert [] == of(driver.push(B, 0, (1, 1)), orders.AppendRecord)


def test_what_came_while_a_record_was_written_is_the_next_record(driver: Driver) -> None:
    driver.push(A, 0, (1, 1))
    driver.push(B, 0, (1, 1))
    driver.durable()
    driver.push(A, 1, (1, 2))
    driver.push(A, 2, (1, 3))
    driver.push(B, 1, (1, 2))
    (first,) = driver.writing
    assert isinstance(first, orders.AppendRecord)
    driver.writing.clear()
    (second,) = of(driver.tell(facts.Appended(first.number)), orders.AppendRecord)
    assert (first.number + 1, [(0, 2), (1, 1)]) == (
        second.number,
        [(batch.stream, batch.sequence) for batch in second.record.batches],
    )


def test_an_append_that_nobody_asked_for_is_a_bug(driver: Driver) -> None:
    with pytest.raises(Bug, match="was appended"):
        driver.tell(facts.Appended(RecordNo(99)))


def test_a_producer_that_is_gone_is_not_acknowledged(driver: Driver) -> None:
    driver.push(A, 0, (1, 1))
    driver.tell(facts.Disconnected(A))
    assert [] == acknowledged(driver.durable())


def test_a_producer_that_came_back_hears_what_is_durable_when_it_is(driver: Driver) -> None:
    driver.push(A, 0, (1, 1))
    driver.tell(facts.Disconnected(A))
    again = Peer("a again")
    assert [] == sent(driver.say(again, messages.Open(0, ProducerId(A))), Opened)
    ((peer, opened),) = sent(driver.durable(), Opened)
    assert (again, 1) == (peer, opened.expected)


def test_a_session_is_answered_at_once(driver: Driver) -> None:
    ((peer, opened),) = sent(driver.producer(Peer("new"), 0), Opened)
    assert ("new", Term(1), None) == (peer, opened.term, opened.expected)


def test_a_refused_batch_is_answered_at_once(driver: Driver) -> None:
    ((peer, refused),) = sent(driver.say(A, push(7, 0, (1, 1))), Refuse)
    assert (A, 0) == (peer, refused.sequence)


def test_a_batch_that_waits_when_its_stream_ends_is_refused(driver: Driver) -> None:
    driver.push(A, 0, (1, 1), end=True)
    late = Peer("late")
    driver.producer(late, 0)
    driver.push(late, 0, (1, 1))
    assert [late] == [peer for peer, _ in sent(driver.durable(), Refuse)]


def test_the_clock_rings_for_the_next_slot(driver: Driver) -> None:
    wakes = of(driver.tick(), orders.WakeAt)
    assert [True] == [driver.now < wake.at_ns <= driver.now + SECOND // 1000 for wake in wakes]


def test_a_silence_that_is_due_while_a_record_is_written_does_not_ring_the_clock_all_the_time() -> None:
    driver = Driver(spec_of(replicas=2, idle="1s", epochs={"distribution": "100ms"})).run()
    driver.push(A, 0, (1, 1))
    driver.durable()
    driver.push(A, 1, (1, 2))
    driver.now += SECOND + 1
    (wake,) = of(driver.tick(), orders.WakeAt)
    assert wake.at_ns > driver.now + 1


# --- pressure


def test_no_record_is_cut_while_too_much_waits_for_workers(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.push(A, 0, (1, 1))
    driver.durable()
    monkeypatch.setattr("joinery.machine.gateway.MAX_UNSENT_BYTES", 15)
    assert [] == of(driver.push(B, 0, (1, 1)), orders.AppendRecord)


def report(memory: int) -> messages.Load:
    return messages.Load(LoadReport(worker=W0, occupancy=0, busy=0, memory_bytes=memory, memory_limit=100))


def test_no_rows_are_recorded_while_a_workers_memory_is_full(driver: Driver) -> None:
    driver.say(PEER0, report(100))
    assert [] == of(driver.push(B, 0, (1, 1)), orders.AppendRecord)


def test_what_has_no_rows_is_recorded_while_a_workers_memory_is_full(driver: Driver) -> None:
    driver.say(PEER0, report(100))
    made = of(driver.producer(Peer("new"), 0) + driver.tick(1), orders.AppendRecord)
    assert [()] == [append.record.batches for append in made]


def test_only_the_slowest_stream_is_recorded_while_memory_is_short(driver: Driver) -> None:
    driver.push(A, 0, (1, 50))
    driver.push(B, 0, (1, 1))
    driver.durable()
    driver.say(PEER0, report(81))
    driver.push(A, 1, (1, 51))
    made = driver.push(B, 1, (1, 2))
    assert [[1]] == [[b.stream for b in append.record.batches] for append in of(made, orders.AppendRecord)]


# --- start


def test_a_start_opens_the_log() -> None:
    (made,) = Driver().tell(facts.Started("one"))
    assert isinstance(made, orders.OpenLog)
    assert "one" == made.instance


def test_what_comes_before_the_log_is_open_is_kept() -> None:
    driver = Driver()
    assert [] == driver.say(A, messages.Open(0, ProducerId("p")))
    assert [(A, "p")] == [(peer, opened.producer) for peer, opened in sent(driver.open(), Opened)]


def test_the_first_map_waits_for_the_workers_that_were_asked_for() -> None:
    driver = Driver()
    driver.open()
    first = of(driver.say(PEER0, hello("worker-0")), orders.WriteMap)
    (write,) = of(driver.say(PEER1, hello("worker-1")), orders.WriteMap)
    assert ([], [0, 0, 1, 1]) == (first, write.map["owners"])


def test_the_first_map_does_not_wait_for_ever() -> None:
    driver = Driver()
    driver.open()
    driver.say(PEER0, hello("worker-0"))
    driver.now = LOST
    driver.say(PEER0, messages.Alive())
    (write,) = of(driver.tick(1), orders.WriteMap)
    assert ["worker-0"] == write.map["workers"]


def test_owners_are_told_when_the_map_is_durable_and_a_collector_is_there() -> None:
    driver = Driver()
    driver.open()
    assert [] == sent(driver.workers(), Owners)
    assert [(COLLECTOR, [1, 1, 1, 1])] == [(peer, plainly(o.versions)) for peer, o in sent(driver.collector(), Owners)]


def test_groups_are_assigned_when_the_collector_has_answered() -> None:
    driver = Driver()
    driver.open()
    driver.workers()
    driver.collector()
    assert [PEER0, PEER1] == [peer for peer, _ in sent(driver.answer(), Assign)]


# --- rule 2: fencing


def test_a_gateway_that_was_replaced_stops(driver: Driver) -> None:
    (stop,) = driver.tell(facts.Fenced(2))
    assert isinstance(stop, orders.Stop)


def test_an_older_collector_is_sent_away(driver: Driver) -> None:
    newer = Peer("collector/2")
    driver.collector(term=2, peer=newer)
    made = driver.collector(term=1)
    assert ([orders.Disconnect(COLLECTOR)], newer) == (of(made, orders.Disconnect), driver.machine.placement.collector)


def test_an_answer_of_a_replaced_collector_assigns_nobody() -> None:
    driver = Driver()
    driver.open()
    driver.workers()
    driver.collector(term=1)
    driver.collector(term=2, peer=Peer("collector/2"))
    assert [] == sent(driver.answer(), Assign)


def test_an_older_instance_of_a_worker_is_sent_away(driver: Driver) -> None:
    driver.say(Peer("worker-0/2"), hello("worker-0", instance="two"))
    made = driver.say(Peer("worker-0/3"), hello("worker-0", instance="one"))
    assert [orders.Disconnect(Peer("worker-0/3"))] == of(made, orders.Disconnect)


def test_a_zombies_words_do_not_count(driver: Driver) -> None:
    driver.say(Peer("worker-0/2"), hello("worker-0", instance="two"))
    driver.hold(PEER0, 0, 1)
    assert [Phase.UNKNOWN] * 2 == driver.machine.placement.phase[:2].tolist()


# --- rule 3: restart


def restarted(driver: Driver) -> Driver:
    """Another gateway on the same log."""
    made = Driver(driver.spec, driver.log)
    made.now = driver.now
    made.open("two")
    return made


def test_after_a_restart_the_log_goes_on(driver: Driver) -> None:
    driver.push(A, 0, (1, 5))
    driver.durable()
    after = restarted(driver)
    assert (driver.machine.intake.head, Term(2)) == (after.machine.intake.head, after.machine.term)


def test_after_a_restart_a_producer_goes_on_after_what_is_durable(driver: Driver) -> None:
    driver.push(A, 0, (1, 5))
    driver.durable()
    driver.push(A, 1, (1, 6))
    ((_, opened),) = sent(restarted(driver).producer(A, 0), Opened)
    assert (2, 1) == (opened.session, opened.expected)


def test_after_a_restart_a_worker_is_served_after_what_it_received(driver: Driver) -> None:
    driver.push(A, 0, (1, 5))
    driver.durable()
    last = driver.machine.intake.head.next_record - 1
    after = restarted(driver)
    after.say(PEER0, hello("worker-0", 0, 1, received=last - 1))
    ((_, exchange),) = sent(after.tick(SECOND // 1000), Exchange)
    assert ([last - 1] * 2, last) == (plainly(exchange.after), exchange.upto)


def test_after_a_restart_rows_are_held_for_workers_that_need_them(driver: Driver) -> None:
    driver.push(A, 0, (1, 5))
    driver.durable()
    assert driver.machine.backlog.nbytes == restarted(driver).machine.backlog.nbytes > 0


def test_after_a_restart_workers_of_the_map_that_do_not_come_are_lost(driver: Driver) -> None:
    after = restarted(driver)
    after.say(PEER0, hello("worker-0", 0, 1))
    after.now += LOST
    after.say(PEER0, messages.Alive())
    (write,) = of(after.tick(1), orders.WriteMap)
    assert (["worker-0"], [0, 0, 0, 0]) == (write.map["workers"], write.map["owners"])


# --- workers


def test_a_lost_workers_groups_get_new_owners(driver: Driver) -> None:
    driver.now += LOST
    driver.say(PEER0, messages.Alive())
    (write,) = of(driver.tick(1), orders.WriteMap)
    assert (["worker-0"], [0, 0, 0, 0], [1, 1, 2, 2]) == (
        write.map["workers"],
        write.map["owners"],
        write.map["terms"],
    )


def test_a_worker_that_stands_still_is_disconnected_when_it_is_lost(driver: Driver) -> None:
    driver.now += LOST
    driver.say(PEER0, messages.Alive())
    assert [orders.Disconnect(PEER1)] == of(driver.tick(1), orders.Disconnect)


def test_a_broken_connection_alone_moves_nothing(driver: Driver) -> None:
    assert [] == of(driver.tell(facts.Disconnected(PEER1)), orders.WriteMap)


def test_a_worker_that_comes_back_in_time_goes_on(driver: Driver) -> None:
    driver.tell(facts.Disconnected(PEER1))
    made = driver.say(Peer("worker-1/again"), hello("worker-1", 2, 3))
    assert ([], [2, 3]) == (of(made, orders.WriteMap), plainly(driver.machine.placement.served_by(W1)))


def test_a_new_instance_of_a_worker_gets_its_groups_under_a_new_term(driver: Driver) -> None:
    (write,) = of(driver.say(Peer("worker-1/2"), hello("worker-1", instance="two")), orders.WriteMap)
    assert [1, 1, 2, 2] == write.map["terms"]


def test_a_worker_that_comes_later_joins_the_map(driver: Driver) -> None:
    (write,) = of(driver.say(Peer("worker-2/1"), hello("worker-2")), orders.WriteMap)
    assert ["worker-0", "worker-1", "worker-2"] == write.map["workers"]


def test_a_worker_that_came_while_the_first_map_was_written_joins_the_map() -> None:
    driver = Driver()
    driver.open()
    driver.say(PEER0, hello("worker-0"))
    driver.say(PEER1, hello("worker-1"))
    driver.say(Peer("worker-2/1"), hello("worker-2"))
    driver.durable()
    (write,) = of(driver.tick(1), orders.WriteMap)
    assert ["worker-0", "worker-1", "worker-2"] == write.map["workers"]


def test_groups_whose_results_are_lost_are_recovered(driver: Driver) -> None:
    (write,) = of(driver.say(PEER0, messages.ResultsLost(vector(1), vector(1))), orders.WriteMap)
    assert ([1, 2, 1, 1], [0, 0, 1, 1]) == (write.map["terms"], write.map["owners"])


def test_a_loss_under_an_older_version_is_known_already(driver: Driver) -> None:
    driver.say(PEER0, messages.ResultsLost(vector(1), vector(1)))
    driver.durable()
    assert [] == of(driver.say(PEER0, messages.ResultsLost(vector(1), vector(1))), orders.WriteMap)


def test_credit_lets_a_worker_be_served_again(driver: Driver) -> None:
    driver.machine.workforce.sent(W0, 1 << 20)
    driver.push(A, 0, (1, 1))
    driver.durable()
    skipped = [peer for peer, _ in sent(driver.tick(SECOND // 1000), Exchange)]
    driver.say(PEER0, messages.Credit(1 << 20))
    assert ([PEER1], [PEER0]) == (skipped, [peer for peer, _ in sent(driver.tick(SECOND // 1000), Exchange)])


# --- moves


def test_a_move_ends_with_a_new_owner_once_everything_is_committed(driver: Driver) -> None:
    driver.push(A, 0, (1, 1))
    driver.durable()
    ((peer, now),) = sent(driver.say(OPERATOR, messages.MoveGroup(0, W1)), messages.CheckpointNow)
    assert (PEER0, [0]) == (peer, plainly(now.groups))
    assert [PEER1] == [peer for peer, _ in sent(driver.checkpoint(PEER0, 1, 0), messages.Preload)]
    waits = driver.say(PEER1, messages.Preloaded(vector(0), vector(1)))
    assert [] == of(waits, orders.WriteMap)
    (write,) = of(driver.commit(1), orders.WriteMap)
    assert [1, 0, 1, 1] == write.map["owners"]


def test_a_checkpoint_under_an_older_version_does_not_count(driver: Driver) -> None:
    driver.say(PEER0, messages.ResultsLost(vector(0), vector(1)))
    driver.durable()
    driver.answer()
    driver.hold(PEER0, 0, version=2)
    driver.checkpoint(PEER0, 7, 0, version=1)
    driver.checkpoint(PEER0, 7, 1, version=1)
    assert [[], [7]] == driver.machine.trimming._tags[:2]


# --- trim


def test_workers_are_told_to_trim_when_a_tag_is_committed(driver: Driver) -> None:
    driver.push(A, 0, (1, 1))
    driver.durable()
    driver.checkpoint(PEER0, 1, 0, 1)
    trims = [(peer, plainly(t.groups), plainly(t.tags)) for peer, t in sent(driver.commit(1), Trim)]
    assert [(PEER0, [0, 1], [1, 1])] == trims


def test_the_log_is_trimmed_when_every_group_is(driver: Driver) -> None:
    driver.push(A, 0, (1, 1))
    driver.durable()
    driver.checkpoint(PEER0, 1, 0, 1)
    before = of(driver.commit(1), orders.TrimLog)
    (trim,) = of(driver.checkpoint(PEER1, 1, 2, 3), orders.TrimLog)
    assert ([], 2, 2) == (before, trim.head.next_record, trim.keep_from)


def test_trimmed_rows_are_not_held_any_more(driver: Driver) -> None:
    driver.push(A, 0, (1, 1))
    driver.durable()
    driver.tick(SECOND // 1000)
    driver.checkpoint(PEER0, 2, 0, 1)
    driver.checkpoint(PEER1, 2, 2, 3)
    driver.commit(2)
    assert 0 == driver.machine.backlog.nbytes


# --- changes of the spec


def test_a_change_of_the_spec_becomes_a_record(driver: Driver) -> None:
    (append,) = of(driver.say(OPERATOR, wish(1, "5s", "5s")), orders.AppendRecord)
    assert [1] == [change.version for change in append.record.changes()]


# --- the end


def test_the_query_is_drained_once_everything_is_committed(driver: Driver) -> None:
    last = driver.end()
    before = sent(driver.commit(last, groups=(0, 1, 2)), Drained)
    assert ([], [COLLECTOR]) == (before, [peer for peer, _ in sent(driver.commit(last, groups=(3,)), Drained)])


def test_nothing_is_drained_while_a_stream_is_open(driver: Driver) -> None:
    driver.push(A, 0, (1, 1), end=True)
    driver.durable()
    assert [] == sent(driver.commit(driver.machine.intake.head.next_record - 1), Drained)


def test_a_collector_is_told_of_the_end_once(driver: Driver) -> None:
    driver.commit(driver.end())
    assert [] == sent(driver.tick(SECOND), Drained)


def test_a_collector_that_comes_back_is_told_of_the_end_again(driver: Driver) -> None:
    driver.commit(driver.end())
    driver.tell(facts.Disconnected(COLLECTOR))
    newer = Peer("collector/2")
    assert [newer] == [peer for peer, _ in sent(driver.collector(term=2, peer=newer), Drained)]


def test_when_the_sinks_are_complete_everybody_is_told_and_the_gateway_stops(driver: Driver) -> None:
    driver.commit(driver.end())
    made = driver.say(COLLECTOR, messages.Finished())
    assert ({OPERATOR, PEER0, PEER1}, 1, True) == (
        {peer for peer, _ in sent(made, messages.Finished)},
        len(of(made, orders.Stop)),
        driver.machine.finished,
    )


def test_after_a_restart_the_end_is_still_known(driver: Driver) -> None:
    last = driver.end()
    after = restarted(driver)
    after.say(PEER0, hello("worker-0", 0, 1, received=last))
    after.say(PEER1, hello("worker-1", 2, 3, received=last))
    after.collector()
    assert [COLLECTOR] == [peer for peer, _ in sent(after.answer(*[last] * GROUPS), Drained)]
