"""The collector's term and its last commit in Redis (`ports.CommitStore`; docs/design.md §3, commit and fencing).

    collectors   hash    instance -> its term; the greatest is the number of them
    commit       hash    the last commit: term, number, committed, seen, before_ns, receipts, results, late, format

Vectors are plain little-endian int64; receipts and late (rows per stream) are JSON. A commit of a version that knew no
totals (results, late) has none: they count from there on.

Rule 1: opening and writing are one script call each. A term is given once per instance; a write under a lower term is
        refused in the same step, before anything else about it is looked at.
Rule 2: sinks that are Redis Streams become visible in the same step as the commit that makes them valid: what was
        staged for it is added to the stream by the same script (`sinks.redis_stream`).
"""

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from redis import Redis

from joinery.adapters.redis_calls import calling, prefix_of
from joinery.adapters.sinks.redis_stream import PUBLISH, StreamTarget
from joinery.machine.ports import Commit, Receipt, Stale
from joinery.machine.totals import Totals
from joinery.model.errors import Bug, UserMustAct
from joinery.model.ids import Term

FORMAT: Final = "1"

_OPEN: Final = """
local terms, commit = KEYS[1], KEYS[2]
local term = redis.call('HGET', terms, ARGV[1])
if not term then
  term = redis.call('HLEN', terms) + 1
  redis.call('HSET', terms, ARGV[1], term)
end
return {tonumber(term), redis.call('HGETALL', commit)}
"""

_WRITE: Final = (
    PUBLISH
    + """
local terms, commit = KEYS[1], KEYS[2]
local term, number, fields, targets = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), nil
local newest = redis.call('HLEN', terms)
if term < newest then return {'stale', newest} end
if term > newest then return {'unopened', newest} end
local last = redis.call('HMGET', commit, 'term', 'number')
local last_term, last_number = tonumber(last[1] or '0'), tonumber(last[2] or '0')
if last_term == term and last_number == number then return {'written', newest} end
if last_number + 1 ~= number then return {'out of turn', last_number} end
redis.call('DEL', commit)
for at = 4, 3 + 2 * fields, 2 do redis.call('HSET', commit, ARGV[at], ARGV[at + 1]) end
for at = 4 + 2 * fields, #ARGV, 3 do publish(ARGV[at], ARGV[at + 1], ARGV[1], tonumber(ARGV[at + 2])) end
return {'written', newest}
"""
)


class RedisCommits:
    """Keeps a query's last commit; `streams` are the sinks that it makes visible (rule 2)."""

    def __init__(self, client: Redis, query: str, streams: Sequence[StreamTarget] = ()) -> None:
        prefix = prefix_of(query)
        self._keys, self._streams = [f"{prefix}collectors", f"{prefix}commit"], streams
        self._open, self._write = client.register_script(_OPEN), client.register_script(_WRITE)

    def open(self, instance: str) -> tuple[Term, Commit | None]:
        with calling():
            term, flat = self._open(keys=self._keys, args=[instance])
        fields = dict(zip(flat[::2], flat[1::2], strict=True))
        return Term(term), _commit_of(fields) if fields else None

    def write(self, term: Term, commit: Commit) -> None:
        fields = _fields_of(term, commit)
        valid = {receipt.sink: receipt.valid for receipt in commit.receipts}
        flat: list[Any] = [part for pair in fields.items() for part in pair]
        for target in self._streams:
            if target.sink in valid:
                flat += [target.prefix, target.stream, valid[target.sink]]
        with calling():
            answer, held = self._write(keys=self._keys, args=[term, commit.number, len(fields), *flat])
        if answer == b"stale":
            raise Stale(held, term)
        if answer != b"written":
            raise Bug(f"commit {commit.number} under term {term} is {answer.decode()}: the store is at {held}")


def _fields_of(term: Term, commit: Commit) -> dict[str, bytes | str | int]:
    fields: dict[str, bytes | str | int] = {
        "format": FORMAT,
        "term": term,
        "number": commit.number,
        "committed": commit.committed.astype("<i8").tobytes(),
        "before_ns": commit.before_ns,
        "receipts": json.dumps([[receipt.sink, receipt.valid] for receipt in commit.receipts]),
        "results": commit.totals.results,
        "late": json.dumps(commit.totals.late),
    }
    return fields if commit.seen is None else {**fields, "seen": commit.seen.astype("<i8").tobytes()}


def _commit_of(fields: dict[bytes, bytes]) -> Commit:
    version = fields.get(b"format", b"none").decode()
    if version != FORMAT:
        raise UserMustAct(f"commit: found format {version}, wanted {FORMAT}; run the version of Joinery that wrote it")
    seen = fields.get(b"seen")
    return Commit(
        number=int(fields[b"number"]),
        committed=np.frombuffer(fields[b"committed"], "<i8"),
        receipts=tuple(Receipt(sink, valid) for sink, valid in json.loads(fields[b"receipts"])),
        seen=None if seen is None else np.frombuffer(seen, "<i8"),
        before_ns=int(fields[b"before_ns"]),
        totals=Totals(int(fields.get(b"results", 0)), tuple(json.loads(fields.get(b"late", b"[]")))),
    )
