"""Checkpoints and commits in a real Redis: what the contract suites cannot see. Keys, races, crashes, full servers."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from redis import Redis

from joinery.adapters import redis_checkpoints
from joinery.adapters.embedded_redis import EmbeddedRedis
from joinery.adapters.increment_bytes import BadIncrement
from joinery.adapters.redis_calls import run_of
from joinery.adapters.redis_checkpoints import VALUE_BYTES, RedisCheckpoints
from joinery.adapters.redis_commits import RedisCommits
from joinery.join.state import Increment
from joinery.machine.ports import Commit, Receipt, Stale
from joinery.model.errors import Bug, TryAgain, UserMustAct
from joinery.model.ids import GroupId, MapVersion, RecordNo, Term
from joinery.model.tuples import TupleBatch
from tests.contract.samples import commit, commit_seen, increment, increment_seen

G = GroupId(3)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis() as running:
        yield running


@pytest.fixture
def client(server: EmbeddedRedis) -> Iterator[Redis]:
    with server.connect() as connected:
        connected.flushall()
        yield connected


@pytest.fixture
def store(client: Redis) -> RedisCheckpoints:
    return RedisCheckpoints(client, "orders")


def write(
    store: RedisCheckpoints, since: int, tag: int, *values: int, version: int = 1, instance: str = "w/1"
) -> tuple[GroupId, ...]:
    store.write_blocks(instance, [increment(G, since, tag, *values)])
    return heads(store, since, tag, version, instance)


def heads(
    store: RedisCheckpoints, since: int, tag: int, version: int = 1, instance: str = "w/1"
) -> tuple[GroupId, ...]:
    return store.write_heads(instance, {G: MapVersion(version)}, {G: (RecordNo(since), RecordNo(tag))})


def blocks(client: Redis) -> set[str]:
    return {key.decode().split(":block:")[1] for key in client.scan_iter("*:block:*")}


def large(rows: int, tag: int = 5) -> Increment:
    """An increment of about 100 bytes a row."""
    numbers = np.arange(rows, dtype=np.int64)
    rng = np.random.default_rng(tag)
    columns = {name: rng.integers(0, 2**60, rows) for name in "abcdefgh"}
    batch = TupleBatch(
        0, numbers, numbers.astype(np.uint64), numbers, None, numbers, pa.RecordBatch.from_pydict(columns)
    )
    return replace(increment(G, -1, tag, 1), rows=(batch,), flags=(np.zeros(rows, np.uint8),))


# --- keys


def test_all_keys_of_a_query_share_one_hash_tag(client: Redis, store: RedisCheckpoints) -> None:
    write(store, -1, 5, 1)
    write(store, 5, 7, 1)
    store.trim(G, MapVersion(1), RecordNo(5))
    RedisCommits(client, "orders").open("c/1")
    assert {b"joinery:{orders}:"} == {key[: len(b"joinery:{orders}:")] for key in client.keys("*")}


def test_queries_do_not_see_each_other(client: Redis, store: RedisCheckpoints) -> None:
    write(store, -1, 5, 1, version=9)
    other = RedisCheckpoints(client, "other")
    assert ((), None) == (other.read(G, MapVersion(1), ()).tags, other.read(G, None, ()).base)


def test_a_name_cannot_break_the_hash_tag(client: Redis) -> None:
    for name in ("a}b", "a{b", "my query ü", "a%7Db"):
        write(RedisCheckpoints(client, name), -1, 5, 1)
    tags = {key.split(b"{")[1].split(b"}")[0] for key in client.keys("*")}
    assert {b"a%7Db", b"a%7Bb", b"my%20query%20%C3%BC", b"a%257Db"} == tags


def test_a_run_keeps_its_name_for_as_long_as_its_keys(client: Redis) -> None:
    first = run_of(client, "orders")
    assert (first, True) == (run_of(client, "orders"), first != run_of(client, "other"))
    client.flushall()
    assert first != run_of(client, "orders")


def test_a_large_increment_is_cut_into_values_of_a_megabyte(client: Redis, store: RedisCheckpoints) -> None:
    one = large(50_000)
    store.write_blocks("w/1", [one])
    heads(store, -1, 5)
    [key] = client.keys("*:block:*")
    sizes = [client.hstrlen(key, str(at)) for at in range(int(client.hget(key, "n") or 0))]
    assert [VALUE_BYTES] * (len(sizes) - 1) == sizes[:-1]
    assert 3 < len(sizes) < 8
    [found] = store.read(G, None, ()).increments
    assert one.rows[0].rows.equals(found.rows[0].rows)
    assert increment_seen(one) == increment_seen(found)


def test_more_than_goes_at_once_is_written_whole(
    client: Redis, store: RedisCheckpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_checkpoints, "_PIPE_BYTES", 2000)
    monkeypatch.setattr(redis_checkpoints, "VALUE_BYTES", 500)
    monkeypatch.setattr(redis_checkpoints, "_READ_TOGETHER", 3)
    for tag in range(10):
        write(store, tag - 1, tag, *range(tag))
    wanted = [increment(G, tag - 1, tag, *range(tag)) for tag in range(10)]
    assert list(map(increment_seen, wanted)) == list(map(increment_seen, store.read(G, None, ()).increments))


# --- what is left behind


def test_what_a_head_drops_is_deleted(client: Redis, store: RedisCheckpoints) -> None:
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    write(store, 7, 9, 3)
    write(store, 5, 8, 4, version=2, instance="w/2")
    assert {"3:-1:5:w/1", "3:5:8:w/2"} == blocks(client)


def test_what_is_trimmed_is_deleted(client: Redis, store: RedisCheckpoints) -> None:
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    store.trim(G, MapVersion(1), RecordNo(5))
    assert {"3:5:7:w/1"} == blocks(client)


def test_blocks_of_a_dead_instance_are_deleted_by_the_next_owner_s_head(client: Redis, store: RedisCheckpoints) -> None:
    write(store, -1, 5, 1)
    store.write_blocks("w/1", [increment(G, 5, 7, 2)])
    store.read(G, MapVersion(2), ())
    write(store, 5, 8, 4, version=2, instance="w/2")
    assert {"3:-1:5:w/1", "3:5:8:w/2"} == blocks(client)
    assert [] == client.keys("*:loose:*")


def test_a_block_whose_head_is_refused_is_deleted(client: Redis, store: RedisCheckpoints) -> None:
    write(store, -1, 5, 1)
    store.read(G, MapVersion(2), ())
    assert (G,) == write(store, 5, 7, 2)
    assert {"3:-1:5:w/1"} == blocks(client)


def test_own_blocks_that_no_head_took_are_deleted_later_ones_stay(client: Redis, store: RedisCheckpoints) -> None:
    store.write_blocks("w/1", [increment(G, -1, 3), increment(G, 5, 7, 2)])
    write(store, -1, 5, 1)
    assert {"3:-1:5:w/1", "3:5:7:w/1"} == blocks(client)
    heads(store, 5, 7)
    assert (5, 7) == store.read(G, None, ()).tags


def test_a_block_that_a_chain_names_is_never_deleted_as_loose(client: Redis, store: RedisCheckpoints) -> None:
    #  a write that is repeated by a connection that was given up notes the block again
    write(store, -1, 5, 1)
    store.write_blocks("w/1", [increment(G, -1, 5, 1)])
    assert () == write(store, 5, 8, 4, version=2, instance="w/2")
    store.write_blocks("w/1", [increment(G, -1, 5, 1)])
    assert (G,) == heads(store, -1, 5)
    found = store.read(G, None, ()).increments
    assert [increment_seen(increment(G, -1, 5, 1)), increment_seen(increment(G, 5, 8, 4))] == list(
        map(increment_seen, found)
    )


def test_a_block_that_is_not_whole_is_not_named(client: Redis, store: RedisCheckpoints) -> None:
    store.write_blocks("w/1", [increment(G, -1, 5, 1)])
    [key] = client.keys("*:block:*")
    client.hdel(key, "n")
    with pytest.raises(Bug, match="nobody wrote"):
        heads(store, -1, 5)


# --- races


def test_a_head_that_comes_again_after_later_ones_has_no_effect(store: RedisCheckpoints) -> None:
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    write(store, 7, 9, 3)
    assert () == heads(store, 5, 7)
    assert (5, 7, 9) == store.read(G, None, ()).tags


def test_an_owner_that_comes_back_under_a_newer_version_drops_what_it_wrote_before(store: RedisCheckpoints) -> None:
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    write(store, 7, 9, 3)
    store.read(G, MapVersion(3), ())
    write(store, 5, 6, 4, version=3)
    assert (5, 6) == store.read(G, None, ()).tags


def test_of_two_owners_at_once_only_the_newer_one_gets_through(server: EmbeddedRedis, store: RedisCheckpoints) -> None:
    write(store, -1, 0, 0)
    accepted: dict[str, list[int]] = {"w/1": [], "w/2": []}
    begun = threading.Event()

    def own(instance: str, version: int, first: int, limit: int) -> None:
        mine = RedisCheckpoints(server.connect(), "orders")
        since = mine.read(G, MapVersion(version), ()).tags[-1]
        for tag in range(first, first + limit):
            if write(mine, since, tag, tag, version=version, instance=instance):
                return
            accepted[instance].append(tag)
            since = RecordNo(tag)
            if tag == first + 10:
                begun.set()

    old = threading.Thread(target=own, args=("w/1", 1, 1, 999_999))
    old.start()
    begun.wait(10)
    own("w/2", 2, 1_000_000, 60)
    old.join()
    assert 60 == len(accepted["w/2"])
    tags = store.read(G, None, ()).tags
    assert (0, *accepted["w/1"], *accepted["w/2"]) == tags
    assert len(tags) == len(store.read(G, None, ()).increments)


def test_a_preload_reads_again_when_a_block_goes_under_it(
    client: Redis, store: RedisCheckpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    fetch, trimmed = RedisCheckpoints._increments, []

    def slow(self: RedisCheckpoints, group: GroupId, names: list[str]) -> object:
        if not trimmed:
            trimmed.append(self.trim(G, MapVersion(1), RecordNo(5)))
        return fetch(self, group, names)

    monkeypatch.setattr(RedisCheckpoints, "_increments", slow)
    chain = store.read(G, None, ())
    assert ((7,), [7], 5) == (chain.tags, [one.tag for one in chain.increments], chain.base)


def test_a_block_that_stays_away_is_not_read_for_ever(client: Redis, store: RedisCheckpoints) -> None:
    write(store, -1, 5, 1)
    client.delete(*client.keys("*:block:*"))
    with pytest.raises(TryAgain, match="group 3"):
        store.read(G, None, ())


def test_a_damaged_block_is_refused(client: Redis, store: RedisCheckpoints) -> None:
    write(store, -1, 5, 1)
    [key] = client.keys("*:block:*")
    value = bytearray(client.hget(key, "0") or b"")
    value[-20] ^= 1
    client.hset(key, "0", bytes(value))
    with pytest.raises(BadIncrement, match="checksum"):
        store.read(G, None, ())


# --- commits


def test_a_commit_comes_back_with_everything_it_said(client: Redis) -> None:
    store = RedisCommits(client, "orders")
    term, _ = store.open("c/1")
    full = Commit(
        1, np.array([5, -1, 2**60]), (Receipt('sink "ü"', 2**60),), np.array([-1, 7, 2**62]), before_ns=-(2**63)
    )
    store.write(term, full)
    assert commit_seen(full) == commit_seen(store.open("c/1")[1])
    store.write(term, commit(2, 6, 7, 8))
    assert commit_seen(commit(2, 6, 7, 8)) == commit_seen(store.open("c/2")[1])


def test_a_commit_of_another_format_is_refused_by_its_name(client: Redis) -> None:
    store = RedisCommits(client, "orders")
    term, _ = store.open("c/1")
    store.write(term, commit(1, 4))
    client.hset("joinery:{orders}:commit", "format", "7")
    with pytest.raises(UserMustAct, match="found format 7, wanted 1"):
        store.open("c/2")


def test_terms_that_are_asked_for_at_once_are_all_different(server: EmbeddedRedis, client: Redis) -> None:
    terms: list[Term] = []

    def ask(number: int) -> None:
        store = RedisCommits(server.connect(), "orders")
        terms.extend({store.open(f"c/{number}")[0] for _ in range(5)})

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(range(1, 9)) == sorted(terms)


# --- a server that fails


def test_without_a_server_every_call_asks_to_be_made_again() -> None:
    with EmbeddedRedis() as short:
        client = short.connect()
        store, commits = RedisCheckpoints(client, "orders"), RedisCommits(client, "orders")
        write(store, -1, 5, 1)
        term, _ = commits.open("c/1")
    calls = [
        lambda: store.write_blocks("w/1", [increment(G, 5, 7, 1)]),
        lambda: heads(store, 5, 7),
        lambda: store.read(G, MapVersion(1), ()),
        lambda: store.trim(G, MapVersion(1), RecordNo(5)),
        lambda: commits.open("c/2"),
        lambda: commits.write(term, commit(1, 4)),
    ]
    for call in calls:
        with pytest.raises(TryAgain, match="asked again"):
            call()


def test_a_full_server_asks_to_be_tried_again_and_loses_nothing(client: Redis, store: RedisCheckpoints) -> None:
    write(store, -1, 5, 1)
    client.config_set("maxmemory", "1mb")
    try:
        with pytest.raises(TryAgain, match="memory"):
            store.write_blocks("w/1", [large(20_000, tag=7)])
    finally:
        client.config_set("maxmemory", "0")
    assert [increment_seen(increment(G, -1, 5, 1))] == [
        increment_seen(one) for one in store.read(G, MapVersion(1), ()).increments
    ]


def test_what_was_answered_survives_a_killed_server_and_writing_goes_on(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path, durability="wal").start()
    client = server.connect()
    store, commits = RedisCheckpoints(client, "orders"), RedisCommits(client, "orders")
    term, _ = commits.open("c/1")
    process = int(client.info("server")["process_id"])
    killer = threading.Timer(0.4, os.kill, (process, signal.SIGKILL))
    killer.start()
    tag, number = -1, 0
    with suppress(TryAgain):
        while True:
            write(store, tag, tag + 1, *range(20))
            tag += 1
            commits.write(term, commit(number + 1, tag))
            number += 1
    killer.join()
    server.stop()
    with EmbeddedRedis(tmp_path, durability="wal") as again:
        client = again.connect()
        store, commits = RedisCheckpoints(client, "orders"), RedisCommits(client, "orders")
        chain = store.read(G, MapVersion(2), ())
        assert list(range(tag + 1)) == list(chain.tags[: tag + 1])
        assert len(chain.tags) in (tag + 1, tag + 2)
        assert len(chain.tags) == len(chain.increments)
        newer, last = commits.open("c/2")
        assert last is not None
        assert last.number in (number, number + 1)
        with pytest.raises(Stale):
            commits.write(term, commit(last.number + 1, 0))
        commits.write(newer, commit(last.number + 1, 0))
