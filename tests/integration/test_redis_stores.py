"""Checkpoints and commits in a real Redis: what the contract suites cannot see. Keys, races, crashes, full servers."""

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from redis import Redis

from joinery.adapters import redis_checkpoints
from joinery.adapters.embedded_redis import EmbeddedRedis
from joinery.adapters.increment_bytes import encode
from joinery.adapters.redis_calls import run_of
from joinery.adapters.redis_checkpoints import VALUE_BYTES, RedisCheckpoints
from joinery.adapters.redis_commits import RedisCommits
from joinery.join.state import Increment
from joinery.machine.ports import Commit, Receipt, Stale
from joinery.machine.totals import Totals
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
    fetch, trimmed = RedisCheckpoints._blocks, []

    def slow(self: RedisCheckpoints, group: GroupId, links: list[Any]) -> Any:
        if not trimmed:
            trimmed.append(self.trim(G, MapVersion(1), RecordNo(5)))
        return fetch(self, group, links)

    monkeypatch.setattr(RedisCheckpoints, "_blocks", slow)
    chain = store.read(G, None, ())
    assert ((7,), [7], 5) == (chain.tags, [one.tag for one in chain.increments], chain.base)
    assert () == chain.damaged


# --- what is not what was written


def flip(client: Redis, key: bytes, at: int = -20) -> None:
    value = bytearray(client.hget(key, "0") or b"")
    value[at] ^= 1
    client.hset(key, "0", bytes(value))


def shorten(client: Redis, key: bytes) -> None:
    client.hset(key, "0", (client.hget(key, "0") or b"")[:-8])


def replace_by_a_text(client: Redis, key: bytes) -> None:
    client.delete(key)
    client.set(key, "hello")


def of_another_query(client: Redis, key: bytes) -> None:
    other = RedisCheckpoints(client, "other")
    other.write_blocks("w/1", [increment(G, 5, 7, 9)])
    client.copy("joinery:{other}:block:3:5:7:w/1", key, replace=True)


def of_another_group(client: Redis, key: bytes) -> None:
    client.hset(key, "0", bytes(encode(increment(4, 5, 7, 2))))


def of_another_tag(client: Redis, key: bytes) -> None:
    client.hset(key, "0", bytes(encode(increment(G, 5, 6, 2))))


def of_format(version: int, client: Redis, key: bytes) -> None:
    value = bytearray(client.hget(key, "0") or b"")
    value[8:12] = version.to_bytes(4, "little")
    client.hset(key, "0", bytes(value))


HARM: dict[str, tuple[Callable[[Redis, bytes], object], str]] = {
    "a flipped bit": (flip, "found a wrong checksum"),
    "a flipped bit in the head": (lambda client, key: flip(client, key, 0), "found bytes that begin with"),
    "a flipped bit in the length": (lambda client, key: flip(client, key, 16), "bytes, wanted"),
    "bytes missing at the end": (shorten, r"found \d+ of \d+ bytes"),
    "no bytes": (lambda client, key: client.hset(key, "0", b""), "found 0 bytes"),
    "a piece missing": (lambda client, key: client.hdel(key, "0"), "found 0 of 1 pieces"),
    "no number of pieces": (lambda client, key: client.hdel(key, "n"), "without the number of its pieces"),
    "no number": (lambda client, key: client.hset(key, "n", "many"), "without the number of its pieces"),
    "not there": (lambda client, key: client.delete(key), "found nothing"),
    "no hash": (replace_by_a_text, "no hash"),
    "another query's": (of_another_query, "written as b'joinery:{other}:block:3:5:7:w/1'"),
    "another group's": (of_another_group, r"the increment \(5, 7\] of group 4"),
    "another tag's": (of_another_tag, r"the increment \(5, 6\] of group 3"),
    "an older format": (partial(of_format, 0), "found format 0, wanted an increment of format 2"),
    "a newer format": (partial(of_format, 3), "found format 3, wanted an increment of format 2"),
}


@pytest.mark.parametrize("what", HARM)
@pytest.mark.parametrize("version", [None, MapVersion(2)], ids=["preload", "claim"])
def test_a_block_that_is_not_what_was_written_is_refused_by_its_key(
    what: str, version: MapVersion | None, client: Redis, store: RedisCheckpoints
) -> None:
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    write(store, 7, 9, 3)
    harm, reason = HARM[what]
    harm(client, b"joinery:{orders}:block:3:5:7:w/1")
    chain = store.read(G, version, ())
    [damage] = chain.damaged
    assert ((5, 7, 9), [5, 9]) == (chain.tags, [one.tag for one in chain.increments])
    assert (7, "joinery:{orders}:block:3:5:7:w/1") == (damage.tag, damage.key)
    assert re.search(reason, damage.reason), damage.reason


def test_a_block_of_a_version_that_did_not_write_its_name_is_read(client: Redis, store: RedisCheckpoints) -> None:
    write(store, -1, 5, 1)
    client.hdel("joinery:{orders}:block:3:-1:5:w/1", "as", "rows")
    client.delete("joinery:{orders}:tips")
    chain = store.read(G, None, ())
    assert ((), [5]) == (chain.damaged, [one.tag for one in chain.increments])


CHAIN = "joinery:{orders}:chain:3"
CUT: dict[str, tuple[Callable[[Redis], object], list[int], list[int]]] = {
    #  what was done to the chain 5 -> 7 -> 9; the tags that are damaged, and those that can be read
    "without its end": (lambda client: client.rpop(CHAIN), [9], [5, 7]),
    "without its beginning": (lambda client: client.lpop(CHAIN), [7], [9]),
    "without its middle": (lambda client: client.lrem(CHAIN, 1, "5:7:1:w/1"), [9], [5]),
    "not there": (lambda client: client.delete(CHAIN), [9], []),
    "no list": (lambda client: [client.delete(CHAIN), client.set(CHAIN, "hello")], [9], []),
    "an entry that is none": (lambda client: client.lset(CHAIN, 1, "hello"), [9], [5]),
}


@pytest.mark.parametrize("what", CUT)
def test_a_chain_that_was_cut_is_damaged_from_there_and_named_by_its_key(
    what: str, client: Redis, store: RedisCheckpoints
) -> None:
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    write(store, 7, 9, 3)
    harm, damaged, readable = CUT[what]
    harm(client)
    chain = store.read(G, MapVersion(2), ())
    assert (damaged, readable) == ([one.tag for one in chain.damaged], [one.tag for one in chain.increments])
    assert {CHAIN} == {one.key for one in chain.damaged}


@pytest.mark.parametrize("what", CUT)
def test_an_owner_goes_on_writing_behind_a_chain_that_was_cut_and_a_whole_state_mends_it(
    what: str, client: Redis, store: RedisCheckpoints
) -> None:
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    write(store, 7, 9, 3)
    CUT[what][0](client)
    assert () == write(store, 9, 11, 4)
    assert [] != list(store.read(G, None, ()).damaged)
    assert () == write(store, -1, 13, 1, 2, 3, 4)
    last = store.read(G, None, ())
    assert (13, None) == (last.increments[-1].tag, last.increments[-1].since)
    assert 13 not in [one.tag for one in last.damaged]


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


def test_a_commit_of_a_version_without_totals_is_read_and_counts_from_there_on(client: Redis) -> None:
    store = RedisCommits(client, "orders")
    term, _ = store.open("c/1")
    store.write(term, commit(1, 4))
    client.hdel("joinery:{orders}:commit", "results", "late")
    _, found = store.open("c/2")
    assert found is not None
    assert (1, Totals()) == (found.number, found.totals)


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


UNABLE = {
    "full": (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0")),
    "without replicas": (
        ("CONFIG", "SET", "min-replicas-to-write", "1"),
        ("CONFIG", "SET", "min-replicas-to-write", "0"),
    ),
    "read-only": (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
}


@pytest.mark.parametrize("what", UNABLE)
def test_a_server_that_takes_no_writes_asks_to_be_tried_again_by_every_call(
    what: str, client: Redis, store: RedisCheckpoints
) -> None:
    write(store, -1, 5, 1)
    store.write_blocks("w/1", [increment(G, 5, 7, 2)])
    commits = RedisCommits(client, "orders")
    term, _ = commits.open("c/1")
    begin, end = UNABLE[what]
    calls: list[Callable[[], object]] = [
        lambda: store.write_blocks("w/1", [increment(G, 7, 9, 2)]),  # a pipeline
        lambda: heads(store, 5, 7),  # scripts
        lambda: store.read(G, MapVersion(2), ()),
        lambda: commits.open("c/2"),
    ]
    if what != "full":  # a full one takes a trim, and a commit in place of the last one
        calls += [
            lambda: store.trim(G, MapVersion(1), RecordNo(5)),
            lambda: commits.write(term, commit(1, 4)),
        ]
    client.execute_command(*begin)
    try:
        for call in calls:
            with pytest.raises(TryAgain, match="unable to write"):
                call()
    finally:
        client.execute_command(*end)
    assert () == heads(store, 5, 7)
    commits.write(term, commit(1, 4))
    assert commit_seen(commit(1, 4)) == commit_seen(commits.open("c/2")[1])
    assert (5, 7) == store.read(G, None, ()).tags


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
