"""A checkpoint that is not what was written: never used, told by its key, mended by a living owner; else a group stops.

A group's chain is drawn as its tags; w: a whole state, d: damaged.
"""

import pytest

from joinery.join.state import Increment
from joinery.machine import facts, messages, orders
from joinery.machine.facts import CheckpointRead
from joinery.machine.loading import Loading
from joinery.machine.messages import CheckpointDamaged, CheckpointNow, EventKind, Holding, Preload, Release
from joinery.machine.orders import Order, RestoreGroup
from joinery.machine.placement import Phase
from joinery.machine.ports import Chain, Damage
from joinery.model.ids import GATEWAY, OPERATOR, GroupId, MapVersion, Peer, RecordNo, Term
from tests.unit.machine import test_gateway, test_worker
from tests.unit.machine.building import GROUPS, hello, increment, of, plainly, sent, spec_of
from tests.unit.machine.result_parts import vector
from tests.unit.machine.test_gateway import COLLECTOR, PEER0, PEER1, W0, W1
from tests.unit.machine.test_worker import batch_of, emitted, held

GROUP, VERSION = GroupId(1), MapVersion(3)

# --- loading: which tag a group can be put back at


def chain_of(text: str, base: int | None = None) -> Chain:
    """Out of "2w 5 8d": a whole state at 2, increments at 5 and 8, of which the last is damaged."""
    increments: list[Increment] = []
    damaged: list[Damage] = []
    before = base
    for word in text.split():
        tag = int(word.rstrip("wd"))
        if "d" in word:
            damaged.append(Damage(RecordNo(tag), f"block {tag}", "a wrong checksum", 10))
        else:
            increments.append(increment(1, tag, None if "w" in word else before))
        before = tag
    tags = tuple(RecordNo(int(word.rstrip("wd"))) for word in text.split())
    return Chain(tags, tuple(increments), None if base is None else RecordNo(base), tuple(damaged), "the chain")


def put_back(text: str, silent: int, base: int | None = None) -> tuple[list[int], list[str]]:
    """The tags that a group is restored from, and the keys that are told."""
    loading = Loading()
    made = loading.restore(CheckpointRead(GROUP, VERSION, chain_of(text, base)), RecordNo(silent), ())
    assert isinstance(made, RestoreGroup)
    return [int(one.tag) for one in made.increments], [one.key for one in loading.damages([GROUP])]


@pytest.mark.parametrize(
    ("text", "silent", "wanted"),
    [
        ("2w 5 8", 9, ([2, 5, 8], [])),
        ("2w 5 8d", 7, ([2, 5], [])),  # newer than what is committed: not needed
        ("2wd 5 8w 9", 9, ([8, 9], [])),  # a whole state follows
        ("2w 5d 8w", 8, ([8], [])),
        ("2w 5 8d", 9, ([2, 5], ["block 8"])),
        ("2w 5d 8", 9, ([2], ["block 5"])),
        ("2wd 5 8", 9, ([], ["block 2"])),
        ("2w 5 8wd 9", 9, ([2, 5], ["block 8"])),
        ("2w 5d 8d", 9, ([2], ["block 5"])),
    ],
)
def test_a_group_is_put_back_at_the_newest_tag_that_nothing_damaged_leads_to(
    text: str, silent: int, wanted: tuple[list[int], list[str]]
) -> None:
    assert wanted == put_back(text, silent)


def test_what_follows_trimmed_increments_leads_to_the_newest_tag_only() -> None:
    #  what was trimmed up to 3 is dead at 8, perhaps not at 5
    assert ([5, 8], []) == put_back("5 8", 9, base=3)
    assert ([], ["block 8"]) == put_back("5 8d", 9, base=3)


def test_a_chain_whose_first_increments_are_gone_is_told_by_its_own_key() -> None:
    assert ([], ["the chain"]) == put_back("8d", 5, base=3)


def test_the_rows_that_cannot_be_loaded_are_counted() -> None:
    loading = Loading()
    loading.restore(CheckpointRead(GROUP, VERSION, chain_of("2w 5d 8d")), RecordNo(9), ())
    whole = sum(len(batch) for batch in increment(1, 2, None).rows)
    assert [20 + whole] == [one.rows for one in loading.damages([GROUP])]


def test_a_damaged_preload_is_told_and_everything_is_read_again() -> None:
    #  the owner may write the whole state at a tag that was known: nothing may be known
    loading = Loading()
    told = loading.preloaded(GROUP, chain_of("2wd 5 8"))
    assert CheckpointDamaged(GROUP, MapVersion(0), RecordNo(-1), "block 2", "a wrong checksum", 10) == told
    assert [orders.ReadCheckpoint(GROUP, None, ())] == loading.preload([GROUP])


def test_a_preload_with_a_whole_state_after_the_damage_is_good() -> None:
    assert 9 == Loading().preloaded(GROUP, chain_of("2wd 5 8w 9"))


def test_what_was_preloaded_before_it_was_damaged_is_good() -> None:
    loading = Loading()
    loading.preloaded(GROUP, chain_of("2w 5"))
    [last] = chain_of("8", base=5).increments
    made = loading.restore(CheckpointRead(GROUP, VERSION, Chain(chain_of("2w 5 8").tags, (last,))), RecordNo(9), ())
    assert isinstance(made, RestoreGroup)
    assert [2, 5, 8] == [one.tag for one in made.increments]


def test_a_preload_leads_to_its_own_tag_if_what_came_later_is_damaged() -> None:
    #  (3, 5] stands on what was trimmed up to 3, which was dead at 5 when it was read
    loading = Loading()
    loading.preloaded(GROUP, chain_of("5", base=3))
    later = chain_of("5 8d", base=3)
    chain = Chain(later.tags, (), later.base, later.damaged)
    made = loading.restore(CheckpointRead(GROUP, VERSION, chain), RecordNo(9), ())
    assert isinstance(made, RestoreGroup)
    assert ([5], 3) == ([one.tag for one in made.increments], made.base)
    assert [("block 8", 5)] == [(one.key, one.tag) for one in loading.damages([GROUP])]


@pytest.mark.parametrize("silent", [4, 9])
def test_a_preload_is_not_used_beyond_what_is_committed_or_before_what_is_trimmed(silent: int) -> None:
    loading = Loading()
    loading.preloaded(GROUP, chain_of("5", base=3))
    later = chain_of("3d 5 8d", base=2) if silent == 4 else chain_of("8d", base=6)
    chain = Chain(later.tags, (), later.base, later.damaged)
    made = loading.restore(CheckpointRead(GROUP, VERSION, chain), RecordNo(silent), ())
    assert isinstance(made, RestoreGroup)
    assert () == made.increments


# --- the worker


def with_checkpoints(*tags: int) -> test_worker.Driver:
    """A worker that has written group 0 at these tags."""
    driver = test_worker.Driver().connect()
    driver.assign(0)
    before = -1
    for tag in tags:
        driver.batch(before, tag)
        driver.checkpoint(0)
        before = tag
    return driver


def told(made: list[Order]) -> list[tuple[int, int, int, str]]:
    found = [message for _, message in sent(made, CheckpointDamaged)]
    return [(one.group, one.version, one.tag, one.reason) for one in found]


def test_a_new_owner_tells_the_damage_before_it_says_what_it_holds() -> None:
    first = with_checkpoints(0, 1, 2)
    first.store.damage(GroupId(0), RecordNo(2), "3 of 4 pieces")
    second = test_worker.Driver(store=first.store, instance="j").connect()
    made = second.assign(0, version=2, silent=2)
    kinds = [type(one.message) for one in of(made, orders.Send)]
    assert [CheckpointDamaged, Holding] == kinds
    assert ([(0, 2, 1, "3 of 4 pieces")], [([0], [2], [1])]) == (told(made), held(made))


def test_a_group_put_back_at_an_older_tag_gives_out_what_is_not_committed_and_mends_the_chain() -> None:
    first = with_checkpoints(0, 1, 2)
    first.store.damage(GroupId(0), RecordNo(2), "a wrong checksum")
    second = test_worker.Driver(store=first.store, instance="j").connect()
    second.assign(0, version=2, silent=2)
    assert [] == emitted(second.batch(1, 2))
    assert [([0], [2], 3, [2])] == emitted(second.batch(2, 3))
    second.checkpoint(0)
    chain = second.store.read(GroupId(0), None, ())
    assert ((0, 1, 3), ()) == (chain.tags, chain.damaged)


def test_the_damage_is_told_again_to_a_gateway_that_comes_back_until_the_group_is_gone() -> None:
    first = with_checkpoints(0, 1)
    first.store.damage(GroupId(0), RecordNo(1), "a wrong checksum")
    second = test_worker.Driver(store=first.store, instance="j").connect()
    second.assign(0, version=2, silent=1)
    assert [(0, 2, 0, "a wrong checksum")] == told(second.tell(facts.Connected(GATEWAY)))
    second.do(GATEWAY, Release(Term(1), vector(0)))
    assert [] == told(second.tell(facts.Connected(GATEWAY)))


def test_the_owner_writes_a_damaged_group_whole_and_a_preload_is_good_again() -> None:
    owner = with_checkpoints(0, 1)
    owner.store.damage(GroupId(0), RecordNo(0), "a wrong checksum")
    consumer = test_worker.Driver(store=owner.store, instance="j").connect()
    assert [(0, 0, -1, "a wrong checksum")] == told(consumer.do(GATEWAY, Preload(Term(1), vector(0))))
    (heads,) = of(owner.do(GATEWAY, CheckpointNow(Term(1), vector(0), whole=True)), orders.WriteHeads)
    assert ((0, 1, -1, 1),) == heads.heads  # nothing came since: the same tag, but whole
    made = consumer.do(GATEWAY, Preload(Term(1), vector(0)))
    assert [[1]] == [plainly(done.tags) for _, done in sent(made, messages.Preloaded)]
    owner.batch(1, 2)
    (heads,) = of(owner.checkpoint(0), orders.WriteHeads)
    assert ((0, 1, 1, 2),) == heads.heads


def test_a_group_that_was_written_whole_is_the_same_group() -> None:
    owner = with_checkpoints(0, 1)
    owner.store.damage(GroupId(0), RecordNo(0), "a wrong checksum")
    owner.do(GATEWAY, CheckpointNow(Term(1), vector(0), whole=True))
    consumer = test_worker.Driver(store=owner.store, instance="j").connect()
    consumer.assign(0, version=2, silent=1)
    assert test_worker.pairs(owner.batch(1, 2)) == test_worker.pairs(consumer.batch(1, 2))


def test_a_whole_state_that_is_asked_for_during_a_checkpoint_is_written_after_it() -> None:
    owner = with_checkpoints(0)
    owner.do(GATEWAY, batch_of([0], 0, 1))
    under_way = owner.say(GATEWAY, CheckpointNow(Term(1), vector(0)))
    assert [] == owner.say(GATEWAY, CheckpointNow(Term(1), vector(0), whole=True))
    heads = of(owner.carry_out(under_way), orders.WriteHeads)
    assert [((0, 1, 0, 1),), ((0, 1, -1, 1),)] == [one.heads for one in heads]


# --- the gateway


@pytest.fixture
def driver() -> test_gateway.Driver:
    return test_gateway.Driver().run()


def recorded(driver: test_gateway.Driver, rows: int = 8) -> None:
    """Some records, served, checkpointed and committed; the log is trimmed up to them."""
    driver.push(test_gateway.A, 0, *((key, 1) for key in range(rows)))
    driver.durable()
    driver.tick(1_000_000)
    for peer, groups in ((PEER0, (0, 1)), (PEER1, (2, 3))):
        driver.checkpoint(peer, 2, *groups)
    driver.commit(2)
    assert 3 == driver.machine.backlog.first


def damage(driver: test_gateway.Driver, peer: Peer, group: int, tag: int, version: int) -> list[Order]:
    message = CheckpointDamaged(GroupId(group), MapVersion(version), RecordNo(tag), "block:7", "a wrong checksum", 55)
    return driver.say(peer, message)


def events(driver: test_gateway.Driver, kind: EventKind) -> list[str]:
    return [event.text for event in driver.machine.watch.events if event.kind is kind]


def lose_worker_1(driver: test_gateway.Driver, *received: int) -> list[Order]:
    """Worker 1 comes back as a new instance; its groups 2 and 3 are assigned anew under version 2."""
    peer = Peer("worker-1/2")
    driver.say(peer, hello("worker-1", instance="two"))
    driver.durable()
    driver.answer(*[2] * GROUPS)
    made = damage(driver, peer, 2, received[0], 2) if received else []
    driver.hold(peer, 3, version=2, received=2, tag=2)
    return made


def test_the_owner_of_a_group_with_a_damaged_preload_writes_it_anew_and_the_move_goes_on(
    driver: test_gateway.Driver,
) -> None:
    recorded(driver)
    driver.say(OPERATOR, messages.MoveGroup(GroupId(0), W1))
    driver.checkpoint(PEER0, 2, 0)
    ((peer, now),) = sent(damage(driver, PEER1, 0, -1, 0), CheckpointNow)
    assert (PEER0, [0], True) == (peer, plainly(now.groups), now.whole)
    assert ["block:7: a wrong checksum; worker-0, which holds group 0, writes it anew"] == events(
        driver, EventKind.CHECKPOINT_DAMAGED
    )
    assert [PEER1] == [to for to, _ in sent(driver.checkpoint(PEER0, 2, 0), Preload)]
    (write,) = of(driver.say(PEER1, messages.Preloaded(vector(0), vector(2))), orders.WriteMap)
    assert [1, 0, 1, 1] == write.map["owners"]


def test_a_move_whose_newer_checkpoint_is_damaged_is_not_handed_over(driver: test_gateway.Driver) -> None:
    recorded(driver)
    driver.say(OPERATOR, messages.MoveGroup(GroupId(0), W1))
    driver.checkpoint(PEER0, 5, 0)
    driver.say(PEER1, messages.Preloaded(vector(0), vector(5)))
    damage(driver, PEER1, 0, -1, 0)
    assert [] == of(driver.commit(5), orders.WriteMap)


def test_a_group_that_the_log_still_reaches_is_served_from_its_older_tag(driver: test_gateway.Driver) -> None:
    driver.push(test_gateway.A, 0, (0, 1))
    driver.durable()
    lose_worker_1(driver, -1)
    driver.hold(Peer("worker-1/2"), 2, version=2)
    assert ([2, 3], [], 1) == (
        plainly(driver.machine.placement.served_by(W1)),
        events(driver, EventKind.STATE_LOST),
        len(events(driver, EventKind.CHECKPOINT_DAMAGED)),
    )


def test_the_log_is_kept_for_a_group_that_went_back(driver: test_gateway.Driver) -> None:
    driver.push(test_gateway.A, 0, (0, 1))
    driver.durable()
    driver.checkpoint(PEER0, 0, 0, 1)
    driver.checkpoint(PEER1, 2, 2, 3)
    driver.commit(2)
    lose_worker_1(driver, 0)  # trimmed were 2 and 3 up to 2, the log up to 0
    driver.checkpoint(PEER0, 2, 0, 1)
    assert 1 == driver.machine.backlog.first
    assert 0 == driver.machine.trimming.trim[2]


def test_a_group_that_the_log_no_longer_reaches_stops_and_the_loss_is_told(driver: test_gateway.Driver) -> None:
    recorded(driver)
    ((peer, release),) = sent(lose_worker_1(driver, -1), Release)
    assert (Peer("worker-1/2"), [2]) == (peer, plainly(release.groups))
    assert Phase.STOPPED == driver.machine.placement.phase[2]
    [text] = events(driver, EventKind.STATE_LOST)
    assert text.startswith("StateLost: group 2 has stopped: block:7: a wrong checksum; 55 rows of its window are lost")


def test_a_stopped_group_gets_nothing_and_the_others_go_on(driver: test_gateway.Driver) -> None:
    recorded(driver)
    lose_worker_1(driver, -1)
    driver.hold(Peer("worker-1/2"), 2, version=2)  # on its way when the release was sent
    driver.push(test_gateway.B, 0, *((key, 2) for key in range(40)))
    made = driver.durable() + driver.tick(1_000_000)
    served = {group for _, message in sent(made, messages.Exchange) for group in plainly(message.groups)}
    assert ({0, 1, 3}, False) == (served, driver.machine.serving.has_unsent(driver.machine.backlog))
    came = driver.machine.backlog.rows_of(2, RecordNo(2))
    assert (True, 0) == (came > 0, driver.machine.serving.unsent_rows(driver.machine.backlog))
    driver.checkpoint(PEER0, 3, 0, 1)
    driver.checkpoint(Peer("worker-1/2"), 3, 3, version=2)
    (trim,) = of(driver.commit(3, (0, 1, 3)), orders.TrimLog)
    assert 4 == trim.keep_from
    assert (1, came) == (driver.machine.losses.groups, driver.machine.losses.rows)
    assert f"{came} rows that came for it after record 2 are not joined" in (driver.machine.losses.text or "")
    assert ", and 0 rows that" not in (driver.machine.losses.text or "")


def test_a_query_with_a_stopped_group_ends_with_the_reason_once_all_else_is_committed(
    driver: test_gateway.Driver,
) -> None:
    recorded(driver)
    lose_worker_1(driver, -1)
    driver.push(test_gateway.A, 1, (1, 2), end=True)
    driver.push(test_gateway.B, 0, (1, 2), end=True)
    driver.durable()
    last = driver.machine.intake.head.next_record - 1
    assert [] == of(driver.commit(last, (0, 1)), orders.Stop)
    made = driver.commit(last, (3,))
    [stop] = of(made, orders.Stop)
    assert (driver.machine.losses.text, False) == (stop.because, driver.machine.finished)
    assert [] == sent(made, messages.Drained)


def test_a_query_in_order_stops_at_once() -> None:
    spec = spec_of(replicas=2, epochs={"distribution": "1ms"}, output={"order": "time"})
    driver = test_gateway.Driver(spec).run()
    recorded(driver)
    assert 1 == len(of(lose_worker_1(driver, -1), orders.Stop))


def test_a_stopped_group_is_not_asked_for_again_and_leaves_a_drained_worker_at_once(
    driver: test_gateway.Driver,
) -> None:
    recorded(driver)
    lose_worker_1(driver, -1)
    again = hello("worker-1", 3, version=2, instance="two", received=2, tag=2)
    assert [] == of(driver.say(Peer("worker-1/3"), again), orders.WriteMap)
    (write,) = of(driver.say(OPERATOR, messages.Drain((W1,))), orders.WriteMap)
    assert [0, 0, 0, 1] == write.map["owners"]
    driver.durable()
    driver.answer(*[2] * GROUPS)
    assert (W0, Phase.STOPPED) == (driver.machine.placement.owner(2), driver.machine.placement.phase[2])


def test_a_group_that_is_held_where_the_log_does_not_reach_stops_even_if_nobody_told_a_damage(
    driver: test_gateway.Driver,
) -> None:
    recorded(driver)
    lose_worker_1(driver)
    driver.hold(Peer("worker-1/2"), 2, version=2)
    assert Phase.STOPPED == driver.machine.placement.phase[2]
    damage(driver, Peer("worker-1/2"), 2, -1, 2)
    first, second = events(driver, EventKind.STATE_LOST)
    assert ("found its checkpoint at record -1" in first, "block:7" in second) == (True, True)


def test_a_damage_that_is_told_again_after_the_group_was_made_anew_stops_nothing(driver: test_gateway.Driver) -> None:
    driver.push(test_gateway.A, 0, (0, 1))
    driver.durable()
    lose_worker_1(driver, -1)
    peer = Peer("worker-1/2")
    driver.hold(peer, 2, version=2)
    driver.tick(1_000_000)
    driver.checkpoint(PEER0, 2, 0, 1)
    driver.checkpoint(peer, 2, 2, 3, version=2)
    driver.commit(2)
    assert 3 == driver.machine.backlog.first
    damage(driver, peer, 2, -1, 2)
    assert ([], Phase.SERVED) == (events(driver, EventKind.STATE_LOST), driver.machine.placement.phase[2])


def test_a_damage_of_a_former_owner_counts_for_nothing(driver: test_gateway.Driver) -> None:
    recorded(driver)
    assert [] == sent(damage(driver, PEER1, 0, -1, 1), Release)
    assert [] == sent(damage(driver, PEER0, 0, -1, 7), Release)
    assert Phase.SERVED == driver.machine.placement.phase[0]


def test_the_collector_of_a_query_with_a_stopped_group_is_not_told_that_it_is_drained(
    driver: test_gateway.Driver,
) -> None:
    recorded(driver)
    lose_worker_1(driver, -1)
    driver.tell(facts.Disconnected(COLLECTOR))
    assert [] == sent(driver.collector(2), messages.Drained)
