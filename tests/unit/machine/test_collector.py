"""The collector, fact by fact: what is taken, what is committed, who is told."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import pytest

from joinery.join.results import Kind, ResultPart
from joinery.machine import facts, messages, orders
from joinery.machine.collector import CollectorMachine
from joinery.machine.facts import Fact
from joinery.machine.messages import Holdings, Results, Token
from joinery.machine.orders import Order
from joinery.machine.ports import Commit, Kept, Receipt
from joinery.machine.totals import Totals
from joinery.model.errors import Bug
from joinery.model.ids import GATEWAY, Peer, RecordNo, Term, WorkerId
from joinery.model.spec import JoinQuerySpec
from joinery.model.time import DEAD, FOREVER
from joinery.window.sliding import Marks
from tests.unit.machine.result_parts import marks, numbers, part, times, vector

W0, W1, READER = Peer("worker-0"), Peer("worker-1"), Peer("reader")
RECEIPTS = (Receipt("file", 7),)
GROUPS = 3
T = TypeVar("T")


def spec_of(**more: object) -> JoinQuerySpec:
    streams = [{"name": name, "schema": {"k": "int64"}, "window": "10s"} for name in "ab"]
    return JoinQuerySpec.parse({"streams": streams, "join": {"on": ["k"]}, "partitions": GROUPS, **more})


def hello() -> messages.WorkerHello:
    nothing = Holdings(*(vector() for _ in fields(Holdings)))
    return messages.WorkerHello(WorkerId("worker-0"), "one", nothing)


def results(
    groups: Sequence[int],
    after: Sequence[int],
    upto: int,
    *parts: ResultPart,
    version: int | Sequence[int] = 1,
    part_number: int = 0,
    last: bool = True,
    watermark: int = 0,
) -> Results:
    versions = [version] * len(groups) if isinstance(version, int) else version
    return Results(
        vector(*groups), vector(*after), vector(*versions), RecordNo(upto), marks(watermark), part_number, last, parts
    )


class Driver:
    """Tells a machine facts, and checks it after each one."""

    def __init__(self, spec: JoinQuerySpec | None = None) -> None:
        self.machine = CollectorMachine(spec or spec_of())

    def tell(self, fact: Fact) -> list[Order]:
        made = self.machine.handle(fact, now_ns=0)
        self.machine.check_invariants()
        return made

    def say(self, peer: Peer, message: messages.Message) -> list[Order]:
        return self.tell(facts.Received(peer, message))

    def start(self, commit: Commit | None = None, term: int = 1) -> "Driver":
        self.tell(facts.Started("one"))
        self.tell(facts.CollectorOpened(Term(term), commit))
        self.tell(facts.SinksReady())
        return self

    def connect(self) -> "Driver":
        """The gateway and a worker are there, all groups have version 1."""
        self.tell(facts.Connected(GATEWAY))
        self.tell(facts.Connected(W0))
        self.say(W0, hello())
        self.owners(1, 1, 1)
        return self

    def owners(self, *versions: int, term: int = 1) -> list[Order]:
        return self.say(GATEWAY, messages.Owners(Term(term), vector(*versions)))

    def finish_commit(self) -> list[Order]:
        """Stage and write the commit under way."""
        number = self.machine._last.number + 1
        (write,) = self.tell(facts.Staged(number, RECEIPTS))
        assert isinstance(write, orders.WriteCommit)
        return self.tell(facts.CommitWritten(number))


def sent(made: list[Order], kind: type[T]) -> list[tuple[Peer, T]]:
    return [(one.to, one.message) for one in made if isinstance(one, orders.Send) and isinstance(one.message, kind)]


def only(made: list[Order], kind: type[T]) -> T:
    (found,) = [one for one in made if isinstance(one, kind)]
    return found


@pytest.fixture
def driver() -> Driver:
    return Driver().start().connect()


# --- start


def test_a_start_opens_the_commits() -> None:
    assert [orders.OpenCommits("one")] == Driver().tell(facts.Started("one"))


def test_sinks_are_recovered_to_the_last_commit() -> None:
    driver = Driver()
    commit = Commit(4, vector(1, 2, 3), RECEIPTS)
    assert [orders.RecoverSinks(Term(2), RECEIPTS)] == driver.tell(facts.CollectorOpened(Term(2), commit))


def test_the_gateway_is_greeted_when_the_sinks_are_ready() -> None:
    driver = Driver()
    assert [] == driver.tell(facts.Connected(GATEWAY))
    driver.tell(facts.CollectorOpened(Term(2), None))
    made = driver.tell(facts.SinksReady())
    assert [Term(2)] == [message.term for _, message in sent(made, messages.CollectorHello)]


def test_the_gateway_is_greeted_when_it_connects_later() -> None:
    made = Driver().start().tell(facts.Connected(GATEWAY))
    assert 1 == len(sent(made, messages.CollectorHello))


def test_a_commit_of_another_number_of_groups_is_a_bug() -> None:
    with pytest.raises(Bug, match="2 groups, not 3"):
        Driver().tell(facts.CollectorOpened(Term(1), Commit(1, vector(0, 0))))


# --- owners


def test_the_answer_to_owners_tells_versions_and_what_is_committed() -> None:
    driver = Driver().start(Commit(4, vector(1, 2, 3)))
    driver.tell(facts.Connected(GATEWAY))
    ((to, vector_),) = sent(driver.owners(5, 6, 7), messages.Vector)
    assert (GATEWAY, [5, 6, 7], [1, 2, 3], [-1, -1, -1]) == (
        to,
        vector_.versions.tolist(),
        vector_.committed.tolist(),
        vector_.seen.tolist(),
    )


def test_owners_that_change_nothing_are_answered_too(driver: Driver) -> None:
    assert 1 == len(sent(driver.owners(1, 1, 1, term=2), messages.Vector))


def test_owners_of_a_lower_gateway_term_are_ignored(driver: Driver) -> None:
    driver.owners(1, 1, 1, term=5)
    assert [] == driver.owners(9, 9, 9, term=4)
    assert [1, 1, 1] == driver.machine.versions.tolist()


def test_owners_before_the_sinks_are_ready_are_ignored() -> None:
    assert [] == Driver().owners(1, 1, 1)


def test_a_new_owner_drops_what_was_taken_and_not_committed(driver: Driver) -> None:
    driver.say(W0, results([0, 1], [-1, -1], 4))
    driver.say(W0, results([0, 1], [4, 4], 6, part([(1, 0, 5), (2, 1, 5)])))
    made = driver.owners(2, 1, 1)
    assert [] == sent(made, messages.Vector)
    made = driver.finish_commit()
    ((_, answer),) = sent(made, messages.Vector)
    assert ([4, 4, -1], [4, 6, -1]) == (answer.committed.tolist(), driver.machine.taken.tolist())
    assert [2] == numbers(only(made, orders.StageResults).parts)


def test_results_of_the_old_owner_are_refused_at_once(driver: Driver) -> None:
    driver.say(W0, results([0, 1], [-1, -1], 4))
    driver.owners(2, 1, 1)
    made = driver.say(W0, results([0, 1], [4, 4], 6))
    assert ((1,), 6) == (only(made, orders.Take).groups, only(made, orders.Take).upto)


def test_results_of_the_new_owner_go_on_from_what_is_committed(driver: Driver) -> None:
    driver.say(W0, results([0], [-1], 4))
    driver.finish_commit()
    driver.owners(2, 1, 1)
    made = driver.say(W0, results([0], [4], 9, version=2))
    assert (0,) == only(made, orders.Take).groups


def test_an_answer_that_the_gateway_did_not_wait_for_is_not_sent(driver: Driver) -> None:
    driver.say(W0, results([0], [-1], 4))
    driver.owners(2, 1, 1)
    driver.tell(facts.Disconnected(GATEWAY))
    driver.tell(facts.Connected(GATEWAY))
    assert [] == sent(driver.finish_commit(), messages.Vector)


# --- resume


def test_no_worker_is_asked_for_anything_before_the_owners_are_known() -> None:
    driver = Driver().start()
    driver.tell(facts.Connected(W0))
    assert [] == driver.say(W0, hello())


def test_workers_that_wait_are_told_what_was_taken_once_the_owners_are_known() -> None:
    driver = Driver().start(Commit(4, vector(1, 2, 3)))
    for peer in (GATEWAY, W0, W1):
        driver.tell(facts.Connected(peer))
    driver.say(W0, hello())
    found = sent(driver.owners(1, 1, 1), messages.Resume)
    assert [(W0, [1, 2, 3])] == [(peer, message.taken.tolist()) for peer, message in found]


def test_a_worker_that_comes_later_is_told_at_its_hello(driver: Driver) -> None:
    driver.say(W0, results([0], [-1], 4))
    driver.tell(facts.Connected(W1))
    found = sent(driver.say(W1, hello()), messages.Resume)
    assert [(W1, [4, -1, -1])] == [(peer, message.taken.tolist()) for peer, message in found]


def test_a_worker_that_comes_while_a_group_changes_hands_is_told_afterwards(driver: Driver) -> None:
    driver.say(W0, results([0], [-1], 4))
    driver.say(W0, results([0], [4], 6))
    driver.owners(2, 1, 1)
    driver.tell(facts.Connected(W1))
    assert [] == driver.say(W1, hello())
    found = sent(driver.finish_commit(), messages.Resume)
    assert [(W1, [4, -1, -1])] == [(peer, message.taken.tolist()) for peer, message in found]


def test_vectors_that_left_the_machine_do_not_change(driver: Driver) -> None:
    ((_, resume),) = sent(driver.say(W0, hello()), messages.Resume)
    driver.say(W0, results([0], [-1], 4))
    assert [-1, -1, -1] == resume.taken.tolist()


# --- taking


def test_nothing_is_taken_before_the_owners_are_known() -> None:
    driver = Driver().start()
    driver.tell(facts.Connected(W0))
    driver.say(W0, hello())
    assert [] == driver.say(W0, results([0], [-1], 4))


def test_results_of_another_version_are_refused(driver: Driver) -> None:
    assert [] == driver.say(W0, results([0], [-1], 4, version=2))


def test_results_that_do_not_follow_what_was_taken_are_refused(driver: Driver) -> None:
    assert [] == driver.say(W0, results([0], [2], 4))


def test_results_that_come_twice_are_taken_once(driver: Driver) -> None:
    message = results([0], [-1], 4, part([(1, 0, 5)]))
    driver.say(W0, message)
    assert [] == driver.say(W0, message)


def test_of_a_message_only_the_rows_of_accepted_groups_are_taken(driver: Driver) -> None:
    rows = [part([(1, 0, 5), (2, 1, 5)]), part([(3, 1, 5), (4, 0, 5)], Kind.LATE)]
    stage = only(driver.say(W0, results([0, 1], [-1, 3], 4, *rows)), orders.StageResults)
    assert ([1], [4]) == (numbers(stage.parts), numbers(stage.parts, Kind.LATE))


def test_parts_wait_for_the_last_one(driver: Driver) -> None:
    assert [] == driver.say(W0, results([0], [-1], 4, part([(1, 0, 5)]), last=False))
    made = driver.say(W0, results([0], [-1], 4, part([(2, 0, 6)]), part_number=1))
    assert [1, 2] == numbers(only(made, orders.StageResults).parts)


def test_a_group_that_left_between_two_parts_is_not_taken(driver: Driver) -> None:
    driver.say(W0, results([0, 1], [-1, -1], 4, part([(1, 0, 5), (2, 1, 5)]), last=False))
    made = driver.say(W0, results([1], [-1], 4, part([(3, 1, 6)]), part_number=1))
    assert ((1,), [2, 3]) == (only(made, orders.Take).groups, numbers(only(made, orders.StageResults).parts))


def test_parts_of_a_broken_connection_are_dropped(driver: Driver) -> None:
    driver.say(W0, results([0], [-1], 4, part([(1, 0, 5)]), last=False))
    driver.tell(facts.Connected(W0))
    driver.say(W0, hello())
    driver.say(W0, results([0], [-1], 4, part([(1, 0, 5)]), last=False))
    made = driver.say(W0, results([0], [-1], 4, part_number=1))
    assert [1] == numbers(only(made, orders.StageResults).parts)


def test_a_message_that_begins_anew_replaces_its_first_parts(driver: Driver) -> None:
    driver.say(W0, results([0], [-1], 4, part([(1, 0, 5)]), last=False))
    made = driver.say(W0, results([0], [-1], 4, part([(1, 0, 5)])))
    assert [1] == numbers(only(made, orders.StageResults).parts)


def test_a_part_without_its_forerunner_closes_the_connection(driver: Driver) -> None:
    assert [orders.Disconnect(W0)] == driver.say(W0, results([0], [-1], 4, part_number=1))
    assert [] == driver.say(W0, results([0], [-1], 4))


# --- committing


def test_taking_starts_a_commit(driver: Driver) -> None:
    made = driver.say(W0, results([0], [-1], 4, part([(1, 0, 5)])))
    assert (1, [1]) == (only(made, orders.StageResults).number, numbers(only(made, orders.StageResults).parts))


def test_a_staged_commit_is_written_with_its_receipts(driver: Driver) -> None:
    driver.say(W0, results([0], [-1], 4))
    commit = only(driver.tell(facts.Staged(1, RECEIPTS)), orders.WriteCommit).commit
    assert (1, [4, -1, -1], RECEIPTS, DEAD) == (
        commit.number,
        commit.committed.tolist(),
        commit.receipts,
        commit.before_ns,
    )


def test_a_written_commit_is_told_to_the_gateway_and_to_every_worker(driver: Driver) -> None:
    driver.tell(facts.Connected(W1))
    driver.say(W1, hello())
    driver.say(W0, results([0, 2], [-1, -1], 4))
    found = sent(driver.finish_commit(), messages.Committed)
    told = [(peer, news.number, news.groups.tolist(), news.upto.tolist()) for peer, news in found]
    assert [(peer, 1, [0, 2], [4, 4]) for peer in (GATEWAY, W0, W1)] == told


def test_totals_go_on_from_the_last_commit_and_are_told_to_the_gateway() -> None:
    driver = Driver().start(Commit(4, vector(0, 0, 0), totals=Totals(10, (0, 3)))).connect()
    ((_, answer),) = sent(driver.owners(1, 1, 1), messages.Vector)
    assert Totals(10, (0, 3)) == answer.totals
    late = part([(3, 0, 5)], Kind.LATE)
    driver.say(W0, results([0], [0], 4, part([(1, 0, 5), (2, 0, 5)]), late))
    told = {peer: news.totals for peer, news in sent(driver.finish_commit(), messages.Committed)}
    assert {GATEWAY: Totals(12, (1, 3)), W0: None} == told


def test_what_is_taken_meanwhile_is_one_commit(driver: Driver) -> None:
    driver.say(W0, results([0], [-1], 4))
    driver.say(W0, results([1], [-1], 4, part([(1, 1, 5)])))
    driver.say(W0, results([0], [4], 6, part([(2, 0, 5)])))
    stage = only(driver.finish_commit(), orders.StageResults)
    assert (2, [1, 2]) == (stage.number, numbers(stage.parts))


def test_a_batch_without_rows_is_committed_too(driver: Driver) -> None:
    assert () == only(driver.say(W0, results([0], [-1], 4)), orders.StageResults).parts
    driver.finish_commit()
    assert [4, -1, -1] == driver.machine.committed.tolist()


def test_numbers_go_on_after_the_last_commit() -> None:
    driver = Driver().start(Commit(4, vector(1, 2, 3), RECEIPTS)).connect()
    assert 5 == only(driver.say(W0, results([0], [1], 2)), orders.StageResults).number


def test_answers_for_another_commit_change_nothing(driver: Driver) -> None:
    driver.say(W0, results([0], [-1], 4))
    assert [] == driver.tell(facts.Staged(9, ())) + driver.tell(facts.CommitWritten(1))


def test_a_fenced_collector_stops_and_does_nothing_more(driver: Driver) -> None:
    driver.say(W0, results([0], [-1], 4))
    assert isinstance(driver.tell(facts.Fenced(2))[0], orders.Stop)
    assert [] == driver.tell(facts.Staged(1, ()))


# --- output in order


def test_ordered_rows_wait_for_every_group_and_the_commit_says_up_to_where_they_are_out() -> None:
    driver = Driver(spec_of(output={"order": "time"})).start().connect()
    assert 1 == len(driver.say(W0, results([0, 1], [-1, -1], 4, part([(1, 0, 9), (2, 1, 3)]), watermark=8)))
    made = driver.say(W0, results([2], [-1], 4, watermark=8))
    assert [2] == numbers(only(made, orders.StageResults).parts)
    commit = only(driver.tell(facts.Staged(1, ())), orders.WriteCommit).commit
    assert commit.seen is not None
    assert ([-1, 4, 4], [4, 4, 4], 8) == (commit.committed.tolist(), commit.seen.tolist(), commit.before_ns)


def test_the_gateway_is_told_where_batches_made_again_must_end() -> None:
    spec = spec_of(output={"order": "time"})
    driver = Driver(spec).start(Commit(1, vector(-1, 4, 4), (), vector(4, 4, 4), 8))
    driver.tell(facts.Connected(GATEWAY))
    ((_, answer),) = sent(driver.owners(1, 1, 1), messages.Vector)
    assert [4, 4, 4] == answer.seen.tolist()


def test_a_new_collector_gives_out_what_the_old_one_held() -> None:
    spec = spec_of(output={"order": "time"})
    driver = Driver(spec).start(Commit(1, vector(-1, 4, 4), (), vector(4, 4, 4), 8)).connect()
    driver.say(W0, results([0], [-1], 4, part([(1, 0, 9), (3, 0, 2)]), watermark=8))
    ended = Results(
        vector(0, 1, 2), vector(4, 4, 4), vector(1, 1, 1), RecordNo(5), Marks((FOREVER, FOREVER)), 0, True, ()
    )
    made = driver.say(W0, ended)
    assert [1] == numbers(only(made, orders.StageResults).parts)


# --- end


def drained(term: int = 1) -> messages.Drained:
    return messages.Drained(Term(term))


def test_a_drained_query_finishes_the_sinks_with_the_last_receipts(driver: Driver) -> None:
    driver.say(W0, results([0], [-1], 4))
    driver.finish_commit()
    assert [orders.FinishSinks(RECEIPTS)] == driver.say(GATEWAY, drained())


def test_the_sinks_are_finished_after_the_commit_under_way(driver: Driver) -> None:
    driver.say(W0, results([0], [-1], 4))
    assert [] == driver.say(GATEWAY, drained())
    assert RECEIPTS == only(driver.finish_commit(), orders.FinishSinks).receipts


def test_drained_of_a_lower_term_is_ignored(driver: Driver) -> None:
    driver.owners(1, 1, 1, term=3)
    assert [] == driver.say(GATEWAY, drained(term=2))


def test_asked_twice_the_sinks_are_finished_once(driver: Driver) -> None:
    driver.say(GATEWAY, drained())
    assert [] == driver.say(GATEWAY, drained())


def test_the_gateway_hears_that_the_sinks_are_finished_as_often_as_it_asks(driver: Driver) -> None:
    driver.say(GATEWAY, drained())
    assert 1 == len(sent(driver.tell(facts.SinksFinished()), messages.Finished))
    assert 1 == len(sent(driver.say(GATEWAY, drained(term=2)), messages.Finished))


# --- subscribers


def commit_rows(driver: Driver, after: int, *rows: int) -> list[Order]:
    """One commit of group 0 with these rows, in parts of one row."""
    driver.say(W0, results([0], [after], after + 1, *(part([(number, 0, 5)]) for number in rows)))
    return driver.finish_commit()


def subscribe(driver: Driver, token: Token | None) -> list[Any]:
    driver.tell(facts.Connected(READER))
    made = driver.say(READER, messages.Subscribe(token))
    if any(isinstance(one, orders.KeepResults) for one in made):
        made += driver.tell(facts.ResultsKept())
    return [message for _, message in sent(made, object)]


def test_a_subscriber_gets_every_new_commit(driver: Driver) -> None:
    assert [] == subscribe(driver, None)
    ((to, delivery),) = sent(commit_rows(driver, -1, 1, 2), messages.Delivery)
    assert (READER, [1, 2], Token(2, 0)) == (to, numbers(delivery.parts), delivery.token)


def test_late_rows_are_not_delivered(driver: Driver) -> None:
    subscribe(driver, None)
    driver.say(W0, results([0], [-1], 1, part([(1, 0, 5)], Kind.LATE)))
    assert [] == sent(driver.finish_commit(), messages.Delivery)


def test_a_subscriber_without_a_token_begins_with_the_oldest_results_left(driver: Driver) -> None:
    commit_rows(driver, -1, 1)
    commit_rows(driver, 0, 2)
    found = subscribe(driver, None)
    assert [([1], Token(2, 0)), ([2], Token(3, 0))] == [(numbers(one.parts), one.token) for one in found]


def test_a_token_resumes_in_the_middle_of_a_commit(driver: Driver) -> None:
    commit_rows(driver, -1, 1, 2, 3)
    commit_rows(driver, 0, 4)
    assert [[3], [4]] == [numbers(one.parts) for one in subscribe(driver, Token(1, 2))]


def test_a_token_at_the_end_of_a_commit_gets_only_what_follows(driver: Driver) -> None:
    commit_rows(driver, -1, 1, 2)
    assert [] == subscribe(driver, Token(1, 2)) + subscribe(driver, Token(2, 0))


def test_a_commit_without_rows_is_no_gap_for_tokens(driver: Driver) -> None:
    commit_rows(driver, -1)
    commit_rows(driver, 0, 1)
    assert [[1]] == [numbers(one.parts) for one in subscribe(driver, Token(1, 0))]


def test_a_token_that_is_no_longer_kept_is_refused_with_the_oldest_one() -> None:
    driver = Driver(spec_of(results={"retain": "0.04k"})).start().connect()
    for after in range(4):
        commit_rows(driver, after - 1, after)
    assert [messages.TokenTooOld(Token(3, 0))] == subscribe(driver, Token(2, 0))
    assert [[2], [3]] == [numbers(one.parts) for one in subscribe(driver, Token(3, 0))]


def test_a_new_collector_refuses_older_tokens_and_knows_the_next() -> None:
    driver = Driver().start(Commit(4, vector(0, 0, 0))).connect()
    assert [messages.TokenTooOld(Token(5, 0))] == subscribe(driver, Token(4, 0))
    assert [] == subscribe(driver, Token(5, 0))


@pytest.mark.parametrize("token", [Token(3, 0), Token(1, 9), Token(2, 1), Token(1, -1)])
def test_a_token_that_was_never_given_out_is_refused(driver: Driver, token: Token) -> None:
    commit_rows(driver, -1, 1)
    assert [messages.TokenTooOld(Token(1, 0))] == subscribe(driver, token)


def test_a_subscriber_that_came_before_the_sinks_were_ready_is_served_then() -> None:
    driver = Driver(spec_of(checkpoint={"durability": "memory"}))
    assert [] == subscribe(driver, Token(1, 0))
    driver.tell(facts.CollectorOpened(Term(1), Commit(4, vector(0, 0, 0))))
    made = driver.tell(facts.SinksReady())
    assert [(READER, messages.TokenTooOld(Token(5, 0)))] == sent(made, messages.TokenTooOld)


def test_the_first_subscriber_waits_until_results_are_kept_for_it_and_later_ones_do_not(driver: Driver) -> None:
    commit_rows(driver, -1, 1)
    driver.tell(facts.Connected(READER))
    assert [orders.KeepResults(1)] == driver.say(READER, messages.Subscribe(None))
    assert [] == sent(commit_rows(driver, 0, 2), messages.Delivery)
    told = sent(driver.tell(facts.ResultsKept()), messages.Delivery)
    assert [(READER, [1]), (READER, [2])] == [(peer, numbers(one.parts)) for peer, one in told]
    driver.tell(facts.Connected(W1))
    assert [[1], [2]] == [numbers(one.message.parts) for one in driver.say(W1, messages.Subscribe(None))]  # type: ignore[union-attr]


def test_where_nothing_is_kept_on_disk_no_subscriber_waits() -> None:
    driver = Driver(spec_of(checkpoint={"durability": "memory"})).start().connect()
    driver.tell(facts.Connected(READER))
    assert [] == driver.say(READER, messages.Subscribe(None))
    assert 1 == len(sent(commit_rows(driver, -1, 1), messages.Delivery))


def test_the_end_waits_for_a_subscriber_for_whom_results_are_being_kept(driver: Driver) -> None:
    driver.say(GATEWAY, drained())
    driver.tell(facts.Connected(READER))
    driver.say(READER, messages.Subscribe(None))
    assert [] == driver.tell(facts.SinksFinished())
    made = driver.tell(facts.ResultsKept())
    assert 1 == len(sent(made, messages.Ended))
    assert 1 == len(sent(made, messages.Finished))


def test_a_new_collector_serves_what_the_one_before_it_kept() -> None:
    driver = Driver()
    driver.tell(facts.Started("two"))
    driver.tell(facts.CollectorOpened(Term(2), Commit(4, vector(0, 0, 0))))
    driver.tell(facts.SinksReady(Kept(2, ((2, (part([(1, 0, 5), (2, 0, 5)]),)), (4, (part([(3, 0, 5)]),))))))
    assert [[2], [3]] == [numbers(one.parts) for one in subscribe(driver, Token(2, 1))]
    assert [[3]] == [numbers(one.parts) for one in subscribe(driver, Token(3, 0))]
    assert [messages.TokenTooOld(Token(2, 0))] == subscribe(driver, Token(1, 0))
    assert [messages.TokenTooOld(Token(2, 0))] == subscribe(driver, Token(2, 3))


def test_a_subscriber_that_left_is_told_nothing(driver: Driver) -> None:
    subscribe(driver, None)
    driver.tell(facts.Disconnected(READER))
    assert [] == sent(commit_rows(driver, -1, 1), messages.Delivery)


# --- all of it, at random

RECORDS = 20


class World:
    """A collector that may crash before and after its writes, groups that may move, and a worker that may lag."""

    def __init__(self, seed: int, output: dict[str, object]) -> None:
        self.rng, self.spec = np.random.default_rng(seed), spec_of(output=output)
        self.last: Commit | None = None
        self.rows: list[int] = []
        self.times: list[int] = []
        self.versions = np.ones(GROUPS, np.int64)
        self.starts = 0
        self.restart()

    def restart(self) -> None:
        self.starts += 1
        self.driver = Driver(self.spec).start(self.last, term=self.starts).connect()
        self.driver.owners(*self.versions.tolist())

    def move(self) -> None:
        self.versions[self.rng.integers(GROUPS)] += 1
        self.driver.owners(*self.versions.tolist())

    def commit(self, dies: bool) -> None:
        now = self.driver.machine._under_way
        if now is None:
            return
        self.last = only(self.driver.tell(facts.Staged(now.number, ())), orders.WriteCommit).commit
        self.rows += numbers(now.draft.parts)
        self.times += times(now.draft.parts)
        if dies:
            self.restart()
        else:
            self.driver.tell(facts.CommitWritten(now.number))

    def emit(self) -> None:
        """A group's next batch, one part per record; sometimes of an older owner."""
        group, machine = int(self.rng.integers(GROUPS)), self.driver.machine
        after, seen = int(machine.taken[group]), machine._last.seen
        end = RECORDS - 1 if seen is None or seen[group] <= after else int(seen[group])
        upto = min(end, after + int(self.rng.integers(1, 4)))
        version = int(self.versions[group]) - int(self.rng.random() < 0.1)
        for number, record in enumerate(range(after + 1, upto + 1)):
            row = (record * GROUPS + group, group, record + (record * 7 + group) % 5)
            watermark = FOREVER if upto == RECORDS - 1 else upto + 1
            message = results(
                [group], [after], upto, part([row]), version=version, part_number=number, last=record == upto,
                watermark=watermark,
            )  # fmt: skip
            self.driver.say(W0, message)

    def run(self) -> None:
        for step in range(600):
            chance = self.rng.random() if step < 300 else self.rng.uniform(0.1, 1)
            if chance < 0.04:
                self.restart()
            elif chance < 0.1:
                self.move()
            elif chance < 0.4:
                self.commit(dies=step < 300 and self.rng.random() < 0.2)
            else:
                self.emit()


@pytest.mark.parametrize("output", [{}, {"order": "time"}, {"order": "time", "disorder": 3}], ids=str)
def test_any_parts_moves_and_crashes_commit_every_row_once(output: dict[str, Any]) -> None:
    for seed in range(40):
        world = World(seed, output)
        world.run()
        assert list(range(RECORDS * GROUPS)) == sorted(world.rows), f"seed {seed}"
        if output:
            stamps = np.array(world.times)
            overtaken = max(int((stamps[:place] > time).sum()) for place, time in enumerate(stamps))
            assert overtaken <= output.get("disorder", 0), f"seed {seed}"
