"""A worker, fact by fact, with its real join module and a memory store: groups, silence, results, checkpoints."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from joinery.join import state
from joinery.join.plan import JoinPlan
from joinery.machine import facts, messages, orders
from joinery.machine.facts import Fact
from joinery.machine.join_module import JoinModule
from joinery.machine.log import SpecChange
from joinery.machine.memory import MemoryCheckpoints
from joinery.machine.messages import Assign, Credit, Exchange, Holding, Preloaded, Results, ResultsLost, WorkerHello
from joinery.machine.orders import JoinBatch, ModuleOrder, Order
from joinery.machine.ports import Stale
from joinery.machine.worker import RETAINED_BYTES, WorkerMachine
from joinery.model.errors import Bug
from joinery.model.ids import COLLECTOR, GATEWAY, Peer, RecordNo, Term, WorkerId
from joinery.model.time import DEAD
from tests.support.queries import told
from tests.unit.machine.building import (
    GROUPS,
    SECOND,
    exchange,
    key_in,
    of,
    plainly,
    plan_of,
    sent,
    spec_of,
    tuples,
)
from tests.unit.machine.result_parts import vector

PLAN = plan_of()
STORE = (orders.ReadCheckpoint, orders.WriteBlocks, orders.WriteHeads, orders.TrimCheckpoint)


def batch_of(groups: Sequence[int], after: int, upto: int, **more: int) -> Exchange:
    """Every record of (after, upto] has one row of a and one of b for each group: place and time are its number."""
    batches = []
    for stream in range(2):
        pairs = [(key_in(group), record) for group in groups for record in range(after + 1, upto + 1)]
        places = vector(*(record for _ in groups for record in range(after + 1, upto + 1)))
        batches.append(replace(tuples(PLAN, stream, *pairs), places=places))
    return exchange(groups, after, upto, *batches, **more)  # type: ignore[arg-type]


class Driver:
    """A worker whose join module and store do what it orders when the test says so."""

    def __init__(
        self, retain: int = RETAINED_BYTES, store: MemoryCheckpoints | None = None, instance: str = "i"
    ) -> None:
        spec = spec_of(checkpoint={"interval": "1s"})
        self.machine = WorkerMachine(spec, WorkerId("worker-0"), retain)
        self.module, self.store, self.instance = JoinModule(JoinPlan.of(spec)), store or MemoryCheckpoints(), instance
        self.now = 0
        self.tell(facts.Started(instance))

    def tell(self, fact: Fact) -> list[Order]:
        made = self.machine.handle(fact, self.now)
        self.machine.check_invariants()
        return made

    def say(self, peer: Peer, message: messages.Message) -> list[Order]:
        return self.tell(facts.Received(peer, message))

    def carry_out(self, made: list[Order]) -> list[Order]:
        """Do what was ordered, and what follows from it; everything that was ordered."""
        done, waiting = list(made), list(made)
        while waiting:
            for fact in self.answers(waiting.pop(0)):
                more = self.tell(fact)
                done += more
                waiting += more
        return done

    def answers(self, order: Order) -> list[Fact]:
        if isinstance(order, ModuleOrder):
            return list(self.module.perform(order))
        match order:
            case orders.ReadCheckpoint():
                try:
                    chain = self.store.read(order.group, order.version, order.known)
                except Stale:
                    assert order.version is not None
                    return [facts.ClaimRefused(order.group, order.version)]
                return [facts.CheckpointRead(order.group, order.version, chain)]
            case orders.WriteBlocks():
                self.store.write_blocks(self.instance, order.increments)
                return [facts.BlocksWritten(order.number)]
            case orders.WriteHeads():
                versions = {group: version for group, version, _, _ in order.heads}
                tags = {group: (since, tag) for group, _, since, tag in order.heads}
                return [facts.HeadsWritten(order.number, self.store.write_heads(self.instance, versions, tags))]
            case orders.TrimCheckpoint():
                self.store.trim(order.group, order.version, order.base)
        return []

    def do(self, peer: Peer, message: messages.Message) -> list[Order]:
        return self.carry_out(self.say(peer, message))

    # --- the others

    def connect(self) -> "Driver":
        self.tell(facts.Connected(GATEWAY))
        self.collector()
        return self

    def collector(self, taken: int = -1, term: int = 1) -> list[Order]:
        """A collector connects, and says what it has taken of every group."""
        self.tell(facts.Connected(COLLECTOR))
        return self.do(COLLECTOR, messages.Resume(Term(term), vector(*[taken] * GROUPS)))

    def assign(
        self, *groups: int, version: int = 1, silent: int = -1, changes: tuple[SpecChange, ...] = ()
    ) -> list[Order]:
        return self.do(GATEWAY, self.assignment(*groups, version=version, silent=silent, changes=changes))

    def assignment(
        self, *groups: int, version: int = 1, silent: int = -1, term: int = 1, changes: tuple[SpecChange, ...] = ()
    ) -> Assign:
        same = [vector(*[value] * len(groups)) for value in (version, silent, -1)]
        return Assign(Term(term), vector(*groups), *same, changes)

    def batch(self, after: int, upto: int, *groups: int, **more: int) -> list[Order]:
        """A batch comes and is joined."""
        return self.do(GATEWAY, batch_of(groups or (0,), after, upto, **more))

    def checkpoint(self, *groups: int) -> list[Order]:
        return self.do(GATEWAY, messages.CheckpointNow(Term(1), vector(*groups)))

    def commit(self, upto: int, *groups: int) -> list[Order]:
        upto_each = vector(*[upto] * len(groups))
        return self.do(COLLECTOR, messages.Committed(Term(1), 1, vector(*groups), upto_each))


@pytest.fixture
def driver() -> Driver:
    """Connected to gateway and collector; groups 0 and 1 are here under version 1, empty."""
    driver = Driver().connect()
    driver.assign(0, 1)
    return driver


def emitted(made: list[Order]) -> list[tuple[list[int], list[int], int, list[int]]]:
    """Groups, begins, end and versions of the batches whose results were sent to their last part."""
    whole = [one for _, one in sent(made, Results) if one.last]
    return [(plainly(one.groups), plainly(one.after), int(one.upto), plainly(one.versions)) for one in whole]


def pairs(made: list[Order]) -> list[tuple[int | None, ...]]:
    return told(part for _, message in sent(made, Results) for part in message.parts)


def held(made: list[Order]) -> list[tuple[list[int], list[int], list[int]]]:
    found = [message.holdings for _, message in sent(made, Holding)]
    return [(plainly(one.groups), plainly(one.versions), plainly(one.received)) for one in found]


# --- groups come


def test_an_assigned_group_is_claimed_and_read_first() -> None:
    driver = Driver().connect()
    made = driver.say(GATEWAY, driver.assignment(2, version=5))
    assert [orders.ReadCheckpoint(2, 5, ())] == made


def test_a_group_without_a_checkpoint_starts_empty_and_is_held() -> None:
    assert [([2], [1], [-1])] == held(Driver().connect().assign(2))


def test_a_group_is_loaded_at_its_newest_tag_that_is_committed() -> None:
    first = Driver().connect()
    first.assign(0)
    for record in (0, 1, 2):
        first.batch(record - 1, record)
        first.checkpoint(0)
    second = Driver(store=first.store, instance="j").connect()
    assert [([0], [2], [1])] == held(second.assign(0, version=2, silent=1))


def test_an_assignment_of_a_version_that_is_here_changes_nothing(driver: Driver) -> None:
    assert [] == driver.assign(0, 1)


def test_a_refused_claim_means_that_the_group_is_anothers() -> None:
    driver = Driver().connect()
    driver.store.read(0, 7, ())
    driver.assign(0, version=1)
    assert 0 == driver.machine.versions[0]


def test_a_load_under_an_older_version_is_dropped_when_the_version_rises() -> None:
    driver = Driver().connect()
    (old,) = driver.say(GATEWAY, driver.assignment(0, version=1))
    (new,) = driver.say(GATEWAY, driver.assignment(0, version=2))
    stale, current = (driver.answers(one) for one in (old, new))
    assert ([], 1) == (driver.tell(stale[0]), len(driver.tell(current[0])))


def test_a_restored_group_that_left_meanwhile_is_dropped() -> None:
    driver = Driver().connect()
    (read,) = driver.say(GATEWAY, driver.assignment(0))
    (restore,) = driver.tell(driver.answers(read)[0])
    driver.say(GATEWAY, messages.Release(Term(1), vector(0)))
    assert [orders.DropGroups((0,))] == driver.tell(driver.answers(restore)[0])


# --- rule 1: versions


def test_a_group_that_is_assigned_anew_is_dropped_and_read_again(driver: Driver) -> None:
    made = driver.say(GATEWAY, driver.assignment(0, version=2))
    assert [orders.DropGroups((0,)), orders.ReadCheckpoint(0, 2, ())] == made


def test_a_released_group_is_dropped(driver: Driver) -> None:
    made = driver.say(GATEWAY, messages.Release(Term(1), vector(0)))
    assert ([orders.DropGroups((0,))], [False, True]) == (made, driver.machine.here[:2].tolist())


def test_a_batch_in_the_buffer_is_joined_without_the_groups_that_left(driver: Driver) -> None:
    driver.say(GATEWAY, batch_of([0, 1], -1, 0))
    driver.say(GATEWAY, batch_of([0, 1], 0, 1))
    driver.say(GATEWAY, messages.Release(Term(1), vector(0)))
    (first, _) = driver.machine._pending()
    (join,) = of(driver.tell(facts.BatchJoined(first.exchange, (), last=True)), JoinBatch)
    keys = [batch.rows.column("k").to_pylist() for batch in join.exchange.batches]
    assert ([1], [0], [[key_in(1)]] * 2) == (plainly(join.exchange.groups), plainly(join.exchange.after), keys)


def test_a_batch_of_which_no_group_is_left_is_credited_and_not_joined(driver: Driver) -> None:
    driver.say(GATEWAY, batch_of([0], -1, 0))
    driver.say(GATEWAY, batch_of([0], 0, 1))
    driver.say(GATEWAY, messages.Release(Term(1), vector(0)))
    (first, _) = driver.machine._pending()
    made = driver.tell(facts.BatchJoined(first.exchange, (), last=True))
    assert ([], 2) == (of(made, JoinBatch), len(sent(made, Credit)))


def test_a_batch_for_a_group_that_is_not_here_is_credited_and_not_joined(driver: Driver) -> None:
    made = driver.say(GATEWAY, batch_of([3], 4, 5))
    assert ([], [32]) == (of(made, JoinBatch), [message.nbytes for _, message in sent(made, Credit)])


def test_a_batch_that_came_under_an_older_version_is_not_joined_under_the_newer(driver: Driver) -> None:
    driver.say(GATEWAY, batch_of([1], -1, 0))
    driver.say(GATEWAY, batch_of([0], -1, 0))
    (first, _) = driver.machine._pending()
    driver.assign(0, version=2)
    assert [] == of(driver.tell(facts.BatchJoined(first.exchange, (), last=True)), JoinBatch)


def test_a_batch_that_does_not_follow_what_was_received_is_a_bug(driver: Driver) -> None:
    with pytest.raises(Bug, match="received"):
        driver.say(GATEWAY, batch_of([0], 3, 4))


def test_results_of_a_group_that_left_during_its_join_carry_the_version_that_they_were_made_under(
    driver: Driver,
) -> None:
    made = driver.say(GATEWAY, batch_of([0], -1, 0))
    driver.assign(0, version=2)
    assert [([0], [-1], 0, [1])] == emitted(driver.tell(driver.answers(made[0])[0]))


# --- rule 2: silence


def recovered(tag: int, silent: int, last: int) -> Driver:
    """Group 0 was checkpointed at `tag`, committed up to `silent`; a new owner has loaded it."""
    first = Driver().connect()
    first.assign(0)
    first.batch(-1, tag)
    first.checkpoint(0)
    first.batch(tag, last)
    second = Driver(store=first.store, instance="j").connect()
    second.assign(0, version=2, silent=silent)
    return second


def test_up_to_what_is_committed_the_join_emits_nothing() -> None:
    assert [] == emitted(recovered(tag=1, silent=3, last=5).batch(1, 3))


def test_a_silent_join_is_credited() -> None:
    assert 1 == len(sent(recovered(tag=1, silent=3, last=5).batch(1, 3), Credit))


def test_a_silent_join_keeps_nothing() -> None:
    driver = recovered(tag=1, silent=3, last=5)
    driver.batch(1, 3)
    assert 0 == driver.machine.retained_bytes


def test_the_first_results_start_where_the_committed_ones_end() -> None:
    driver = recovered(tag=1, silent=3, last=5)
    driver.batch(1, 3)
    assert [([0], [3], 5, [2])] == emitted(driver.batch(3, 5))


def test_rows_joined_in_silence_meet_later_ones() -> None:
    driver = recovered(tag=1, silent=3, last=5)
    driver.batch(1, 3)
    new = [(left, right) for left in range(5) for right in range(5) if 4 in (left, right)]
    assert new == pairs(driver.batch(3, 4))


def test_of_a_message_only_the_groups_past_their_silence_emit(driver: Driver) -> None:
    driver.assign(2, silent=0)
    made = driver.batch(-1, 0, 1, 2)
    assert ([([1], [-1], 0, [1])], [(0, 0)]) == (emitted(made), pairs(made))


# --- results


def test_a_batch_is_joined_and_its_results_are_sent(driver: Driver) -> None:
    made = driver.batch(-1, 0, 0, 1)
    assert ([([0, 1], [-1, -1], 0, [1, 1])], [(0, 0), (0, 0)]) == (emitted(made), pairs(made))


def test_a_batch_without_results_is_told_too(driver: Driver) -> None:
    made = driver.do(GATEWAY, exchange([0], -1, 0))
    assert ([([0], [-1], 0, [1])], []) == (emitted(made), pairs(made))


def test_a_joined_batch_gives_its_credit_back(driver: Driver) -> None:
    assert [(GATEWAY, 64)] == [(peer, message.nbytes) for peer, message in sent(driver.batch(-1, 1), Credit)]


def test_batches_are_joined_one_after_the_other(driver: Driver) -> None:
    first = driver.say(GATEWAY, batch_of([0], -1, 0))
    second = driver.say(GATEWAY, batch_of([0], 0, 1))
    assert (1, 0) == (len(of(first, JoinBatch)), len(of(second, JoinBatch)))


def test_parts_of_results_are_numbered_and_only_the_last_says_so(driver: Driver) -> None:
    driver.say(GATEWAY, batch_of([0], -1, 0))
    (waiting,) = driver.machine._pending()
    made = [
        order
        for last in (False, False, True)
        for order in driver.tell(facts.BatchJoined(waiting.exchange, (), last=last))
    ]
    assert [(0, False), (1, False), (2, True)] == [(one.part, one.last) for _, one in sent(made, Results)]


def test_before_the_collector_has_said_what_it_has_nothing_is_sent() -> None:
    driver = Driver()
    driver.tell(facts.Connected(GATEWAY))
    driver.assign(0)
    driver.tell(facts.Connected(COLLECTOR))
    assert [] == emitted(driver.batch(-1, 0))


def test_a_collector_that_comes_is_sent_what_it_lacks(driver: Driver) -> None:
    driver.batch(-1, 0)
    driver.batch(0, 1)
    driver.tell(facts.Disconnected(COLLECTOR))
    driver.batch(1, 2)
    assert [([0], [0], 1, [1]), ([0], [1], 2, [1])] == emitted(driver.collector(taken=0))


def test_a_batch_whose_parts_are_still_coming_is_sent_again_whole(driver: Driver) -> None:
    driver.say(GATEWAY, batch_of([0], -1, 0))
    (waiting,) = driver.machine._pending()
    driver.tell(facts.BatchJoined(waiting.exchange, (), last=False))
    driver.tell(facts.Disconnected(COLLECTOR))
    made = driver.collector()
    made += driver.tell(facts.BatchJoined(waiting.exchange, (), last=True))
    assert [(0, False), (1, True)] == [(one.part, one.last) for _, one in sent(made, Results)]


def test_committed_results_are_not_kept(driver: Driver) -> None:
    driver.batch(-1, 0)
    before = driver.machine.retained_bytes
    driver.commit(0, 0)
    assert (True, 0) == (before > 0, driver.machine.retained_bytes)


# --- rule 3: the bounded cache


@pytest.fixture
def small() -> Driver:
    """A worker that can keep hardly anything."""
    driver = Driver(retain=1).connect()
    driver.assign(0)
    return driver


def test_a_full_cache_never_stops_a_worker_with_a_collector(small: Driver) -> None:
    made = [order for record in range(5) for order in small.batch(record - 1, record)]
    assert [0, 1, 2, 3, 4] == [upto for _, _, upto, _ in emitted(made)]


def test_a_cache_that_is_exactly_full_does_not_stop_a_worker_with_a_collector() -> None:
    driver = Driver(retain=32).connect()  # one result row
    driver.assign(0)
    driver.batch(-1, 0)
    assert (True, 1) == (driver.machine.retention.is_full, len(of(driver.batch(0, 1), JoinBatch)))


def test_a_full_cache_stops_a_worker_without_a_collector(small: Driver) -> None:
    small.tell(facts.Disconnected(COLLECTOR))
    first, second = small.batch(-1, 0), small.batch(0, 1)
    assert (1, 0) == (len(of(first, JoinBatch)), len(of(second, JoinBatch)))


def test_a_worker_that_waited_for_a_collector_goes_on_when_it_comes(small: Driver) -> None:
    small.tell(facts.Disconnected(COLLECTOR))
    small.batch(-1, 0)
    small.batch(0, 1)
    assert [([0], [-1], 0, [1]), ([0], [0], 1, [1])] == emitted(small.collector())


def test_results_that_a_collector_asks_for_in_vain_are_told_to_the_gateway(small: Driver) -> None:
    small.batch(-1, 0)
    small.batch(0, 1)
    small.tell(facts.Disconnected(COLLECTOR))
    lost = [(plainly(m.groups), plainly(m.versions)) for _, m in sent(small.collector(taken=-1), ResultsLost)]
    assert [([0], [1])] == lost


def test_lost_results_are_told_again_to_a_gateway_that_comes_back(small: Driver) -> None:
    small.batch(-1, 0)
    small.collector(taken=-1)
    small.tell(facts.Disconnected(GATEWAY))
    assert 1 == len(sent(small.tell(facts.Connected(GATEWAY)), ResultsLost))


def test_lost_results_are_not_told_any_more_when_the_group_has_a_new_version(small: Driver) -> None:
    small.batch(-1, 0)
    small.collector(taken=-1)
    small.assign(0, version=2)
    assert [] == sent(small.tell(facts.Connected(GATEWAY)), ResultsLost)


# --- rule 4: checkpoints


def test_a_checkpoint_is_taken_every_interval(driver: Driver) -> None:
    driver.batch(-1, 0)
    driver.now = SECOND
    made = driver.carry_out(driver.tell(facts.Tick()))
    ((_, told_of),) = sent(made, messages.Checkpointed)
    assert ([0], [0]) == (plainly(told_of.groups), plainly(told_of.tags))


def test_between_intervals_no_checkpoint_is_taken(driver: Driver) -> None:
    driver.batch(-1, 0)
    driver.now = SECOND - 1
    assert [] == of(driver.tell(facts.Tick()), orders.TakeIncrements)


def test_a_second_checkpoint_is_taken_since_the_first(driver: Driver) -> None:
    driver.batch(-1, 0)
    driver.checkpoint(0)
    driver.batch(0, 1)
    (heads,) = of(driver.checkpoint(0), orders.WriteHeads)
    assert ((0, 1, 0, 1),) == heads.heads


def test_a_refused_head_means_that_the_group_has_another_owner(driver: Driver) -> None:
    driver.batch(-1, 0)
    driver.store.read(0, 9, ())
    made = driver.checkpoint(0)
    assert ([orders.DropGroups((0,))], 0) == (of(made, orders.DropGroups), driver.machine.versions[0])


def test_an_increment_of_a_group_that_left_is_not_written(driver: Driver) -> None:
    driver.batch(-1, 0)
    made = driver.say(GATEWAY, messages.CheckpointNow(Term(1), vector(0)))
    (taken,) = driver.answers(made[0])
    driver.say(GATEWAY, messages.Release(Term(1), vector(0)))
    assert [] == driver.tell(taken)


def test_a_trim_drops_dead_increments() -> None:
    driver = Driver().connect()
    driver.assign(0)
    driver.batch(-1, 0)
    driver.checkpoint(0)
    driver.do(GATEWAY, exchange([0], 0, 1, marks=(500, 500)))
    driver.checkpoint(0)
    driver.do(GATEWAY, messages.Trim(Term(1), vector(0), vector(1)))
    assert ((RecordNo(1),), RecordNo(0)) == driver.store.tags(0)


def test_a_preload_claims_nothing_and_tells_the_newest_tag(driver: Driver) -> None:
    driver.batch(-1, 0)
    driver.checkpoint(0)
    other = Driver(store=driver.store, instance="j").connect()
    made = other.do(GATEWAY, messages.Preload(Term(1), vector(0)))
    ((_, done),) = sent(made, Preloaded)
    driver.batch(0, 1)
    driver.checkpoint(0)
    assert ([0], [0], (0, 1)) == (plainly(done.groups), plainly(done.tags), driver.store.tags(0)[0])


def test_a_group_that_is_being_put_in_place_is_told_when_it_is_though_more_was_read_meanwhile(driver: Driver) -> None:
    driver.batch(-1, 0)
    driver.checkpoint(0)
    other = Driver(store=driver.store, instance="j").connect()
    (read,) = other.say(GATEWAY, messages.Preload(Term(1), vector(0)))
    driver.batch(0, 1)
    driver.checkpoint(0)
    assert [] == other.say(GATEWAY, messages.Preload(Term(1), vector(0)))
    prepare, again = [order for fact in other.answers(read) for order in other.tell(fact)]
    assert [] == sent([order for fact in other.answers(again) for order in other.tell(fact)], Preloaded)
    ((_, done),) = sent(other.carry_out([prepare]), Preloaded)
    assert ([0], [1]) == (plainly(done.groups), plainly(done.tags))


def test_a_group_that_is_put_in_place_by_pieces_is_told_with_the_last(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "_PIECE_ROWS", 1)
    driver.batch(-1, 0)
    driver.checkpoint(0)
    other = Driver(store=driver.store, instance="j").connect()
    (read,) = other.say(GATEWAY, messages.Preload(Term(1), vector(0)))
    orders_made = [order for fact in other.answers(read) for order in other.tell(fact)]
    kinds = []
    while orders_made:
        kinds += [type(order) for order in orders_made]
        orders_made = [order for one in orders_made for fact in other.answers(one) for order in other.tell(fact)]
    assert kinds[0] is orders.PrepareGroup
    assert ({orders.PrepareMore}, orders.Send) == (set(kinds[1:-1]), kinds[-1])


def test_what_was_preloaded_is_not_read_again_with_the_claim(driver: Driver) -> None:
    driver.batch(-1, 0)
    driver.checkpoint(0)
    other = Driver(store=driver.store, instance="j").connect()
    other.do(GATEWAY, messages.Preload(Term(1), vector(0)))
    made = other.say(GATEWAY, other.assignment(0, version=2, silent=0))
    assert [orders.ReadCheckpoint(0, 2, (0,))] == made


def test_a_group_that_is_here_is_not_preloaded(driver: Driver) -> None:
    assert [] == driver.say(GATEWAY, messages.Preload(Term(1), vector(0)))


# --- rule 5: terms


@pytest.mark.parametrize(
    "message",
    [
        messages.Release(Term(1), vector(0)),
        messages.CheckpointNow(Term(1), vector(0)),
        messages.Preload(Term(1), vector(3)),
        messages.Trim(Term(1), vector(0), vector(0)),
        Assign(Term(1), vector(3), vector(9), vector(-1), vector(-1), ()),
        exchange([0], 0, 1),
    ],
)
def test_messages_of_a_lower_gateway_term_are_ignored(driver: Driver, message: messages.Message) -> None:
    driver.batch(-1, 0, 0, 1)
    driver.say(GATEWAY, messages.Release(Term(2), vector(1)))
    assert ([], True, 0) == (driver.say(GATEWAY, message), bool(driver.machine.here[0]), driver.machine.received[0])


def test_a_commit_of_a_lower_collector_term_is_ignored(driver: Driver) -> None:
    driver.batch(-1, 0)
    driver.collector(taken=-1, term=2)
    driver.commit(0, 0)
    assert driver.machine.retained_bytes > 0


def test_a_lower_collector_term_is_sent_nothing(driver: Driver) -> None:
    driver.batch(-1, 0)
    driver.collector(taken=0, term=2)
    assert [] == driver.say(COLLECTOR, messages.Resume(Term(1), vector(*[-1] * GROUPS)))


# --- hellos and reports


def hello_of(made: list[Order]) -> WorkerHello:
    ((_, message),) = sent(made, WorkerHello)
    return message


def test_a_worker_introduces_itself_with_what_it_holds(driver: Driver) -> None:
    driver.batch(-1, 2, 0, 1)
    driver.checkpoint(0)
    held_now = hello_of(driver.tell(facts.Connected(GATEWAY))).holdings
    assert ([0, 1], [1, 1], [2, -1], [2, 2]) == (
        plainly(held_now.groups),
        plainly(held_now.versions),
        plainly(held_now.tags),
        plainly(held_now.received),
    )


def test_what_waits_in_the_buffer_counts_as_received(driver: Driver) -> None:
    driver.say(GATEWAY, batch_of([0], -1, 0))
    driver.say(GATEWAY, batch_of([0], 0, 1))
    hello = hello_of(driver.tell(facts.Connected(GATEWAY)))
    assert ([1, -1], 64, 2) == (plainly(hello.holdings.received), hello.buffered_bytes, hello.buffered_messages)


def test_a_group_that_is_still_being_loaded_is_not_held() -> None:
    driver = Driver().connect()
    driver.say(GATEWAY, driver.assignment(0))
    assert [] == plainly(hello_of(driver.tell(facts.Connected(GATEWAY))).holdings.groups)


def test_a_worker_gives_a_sign_of_life_several_times_in_an_epoch(driver: Driver) -> None:
    made = driver.tell(facts.Tick())
    (wake,) = of(made, orders.WakeAt)
    assert (1, SECOND // 2) == (len(sent(made, messages.Alive)), wake.at_ns)


def test_a_worker_reports_its_load_once_in_an_epoch(driver: Driver) -> None:
    driver.batch(-1, 0)
    driver.now = 2 * SECOND
    ((_, load),) = sent(driver.carry_out(driver.tell(facts.Tick())), messages.Load)
    assert ("worker-0", {0, 1}) == (load.report.worker, {part.group for part in load.report.groups})


def test_without_a_gateway_nothing_is_said_to_it(driver: Driver) -> None:
    driver.tell(facts.Disconnected(GATEWAY))
    assert [] == sent(driver.tell(facts.Tick()), messages.Alive)


def test_a_worker_stops_when_the_query_has_ended(driver: Driver) -> None:
    (stop,) = driver.say(GATEWAY, messages.Finished())
    assert isinstance(stop, orders.Stop)


def test_the_marks_of_a_batch_go_with_its_results(driver: Driver) -> None:
    made = driver.do(GATEWAY, exchange([0], -1, 0, marks=(7, DEAD)))
    assert [(7, DEAD)] == [message.marks.watermarks for _, message in sent(made, Results)]


def test_one_measurement_is_under_way_at_most() -> None:
    """Behind a long join a second one would report an epoch of no length, and a busy worker would look idle."""
    driver = Driver()
    ordered = []
    for _ in range(3):
        driver.now += 100 * SECOND
        ordered.append(of(driver.tell(facts.Tick()), orders.MeasureState))
    assert [1, 0, 0] == [len(one) for one in ordered]
    driver.carry_out(ordered[0])
    driver.now += 100 * SECOND
    assert 1 == len(of(driver.tell(facts.Tick()), orders.MeasureState))


def test_a_worker_whose_windows_may_have_grown_by_much_reports_before_the_epoch_ends() -> None:
    driver = Driver().connect()
    driver.assign(0)
    assert [] == sent(driver.batch(-1, 3), messages.Load)
    limit = driver.machine.spec.worker.model_copy(update={"memory": 80})
    driver.machine.spec = driver.machine.meter.spec = driver.machine.spec.model_copy(update={"worker": limit})
    [(_, told)] = sent(driver.batch(3, 5), messages.Load)
    assert isinstance(told, messages.Load)
    assert (80, True) == (told.report.memory_limit, told.report.memory_share > 1)
