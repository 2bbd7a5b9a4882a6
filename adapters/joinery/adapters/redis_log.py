"""The query's log, the gateway's term and the partition map in Redis (`ports.Log`; docs/design.md §3, durability).

    gateways   hash     instance -> its term; the greatest is the number of them
    log        stream   record n under the id (n + 1)-0, cut into values of about 1 MB: 0, 1 ...
    head       hash     head: what the first record after the trim builds on; at: its next record; next: the record to
                        come; first: the first record that the newest term may write
    map        string   the partition map, as JSON
    spec       hash     origin: what the log began with; now, version: the spec in force, once it was changed

Rule 1: opening, appending, trimming and the map are one script call each, which compares the term first.
Rule 2: a file of all writes grows although we trim. It is rewritten when it exceeds `AOF_FACTOR` times what Redis
        holds, by our asking: Redis' own rule would stall a hand-over. In a Redis of somebody else, who may refuse us
        that, it is theirs to look after.
Rule 3: records that come while one is written are the next record (`machine.gateway`), so one call, and with `wal` one
        fsync, stands for all that came meanwhile.
"""

import json
import time
from typing import Any, Final, cast

from redis import Redis
from redis import exceptions as failures

from joinery.adapters.record_bytes import decode_head, decode_record, encode_head, encode_record
from joinery.adapters.redis_calls import calling, prefix_of
from joinery.adapters.redis_spec import SPEC, read_kept
from joinery.machine.log import Head, Record
from joinery.machine.ports import Stale
from joinery.model.errors import Bug, UserMustAct
from joinery.model.ids import RecordNo, Term
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import KeptSpec, write_spec
from joinery.partition.map import StoredMap

VALUE_BYTES: Final = 2**20
_READ_TOGETHER: Final = 16
"""Records that are asked for at once."""
AOF_FACTOR: Final = 4
_SMALL_AOF: Final = 64 * 2**20
"""A file below this is not worth it."""
_TIDY_S: Final = 5.0
"""Between two looks at the file."""

_OPEN: Final = """
local terms, head = KEYS[1], KEYS[3]
if ARGV[4] ~= '' then redis.call('HSETNX', KEYS[5], 'origin', ARGV[4]) end
if redis.call('HSETNX', head, 'head', ARGV[2]) == 1 then
  redis.call('HSET', head, 'at', ARGV[3], 'next', ARGV[3], 'first', ARGV[3])
end
local term = redis.call('HGET', terms, ARGV[1])
if not term then
  term = redis.call('HLEN', terms) + 1
  redis.call('HSET', terms, ARGV[1], term)
  redis.call('HSET', head, 'first', redis.call('HGET', head, 'next'))
end
return tonumber(term)
"""

_CHECKED: Final = """
local terms, log, head, map = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local newest = redis.call('HLEN', terms)
if tonumber(ARGV[1]) < newest then return {'stale', newest} end
if tonumber(ARGV[1]) > newest then return {'a term that nobody opened; it is', newest} end
local function held(field) return tonumber(redis.call('HGET', head, field)) end
"""

_APPEND: Final = (
    _CHECKED
    + """
local number, next = tonumber(ARGV[2]), held('next')
if held('first') <= number and number < next then return {'done', next} end
if number ~= next then return {'out of turn; the next is', next} end
local fields = {}
for at = 3, #ARGV do
  fields[#fields + 1] = at - 3
  fields[#fields + 1] = ARGV[at]
end
redis.call('XADD', log, string.format('%d-0', number + 1), unpack(fields))
redis.call('HSET', head, 'next', number + 1)
return {'done', next}
"""
)

_TRIM: Final = (
    _CHECKED
    + """
local at, keep, next = tonumber(ARGV[2]), tonumber(ARGV[3]), held('next')
if keep > at or at > next then return {'a trim that would lose records; the next is', next} end
if at > held('at') then redis.call('HSET', head, 'head', ARGV[4], 'at', at) end
redis.call('XTRIM', log, 'MINID', string.format('%d-0', keep + 1))
return {'done', next}
"""
)

_MAP: Final = (
    _CHECKED
    + """
redis.call('SET', map, ARGV[2])
return {'done', newest}
"""
)

_SPEC: Final = (
    _CHECKED
    + """
redis.call('HSET', KEYS[5], 'version', ARGV[2], 'now', ARGV[3])
return {'done', newest}
"""
)


class RedisLog:
    """Keeps a query's log; used by one thread."""

    def __init__(self, client: Redis, query: str) -> None:
        prefix = prefix_of(query)
        self._client = client
        self._keys = [f"{prefix}{name}" for name in ("gateways", "log", "head", "map", SPEC)]
        self._may_tidy, self._look_again_s = True, 0.0
        scripts = (_OPEN, _APPEND, _TRIM, _MAP, _SPEC)
        self._open, self._append, self._trim, self._map, self._spec = map(client.register_script, scripts)

    def open(self, first: Head, instance: str, spec: JoinQuerySpec | None = None) -> Term:
        origin = "" if spec is None else write_spec(spec)
        with calling():
            term = self._open(keys=self._keys, args=[instance, bytes(encode_head(first)), first.next_record, origin])
        self._check_shape(first)
        return Term(term)

    def append(self, term: Term, number: RecordNo, record: Record) -> None:
        data = encode_record(record)
        values = [data[start : start + VALUE_BYTES] for start in range(0, len(data), VALUE_BYTES)]
        self._ask(self._append, term, number, *values)

    def read(self) -> tuple[Head, list[tuple[RecordNo, Record]]]:
        with calling():
            head = decode_head(cast("bytes", self._client.hget(self._keys[2], "head")))
        found: list[tuple[RecordNo, Record]] = []
        after = "-"
        while True:
            with calling():
                page: list[Any] = cast("list[Any]", self._client.xrange(self._keys[1], after, "+", _READ_TOGETHER))
            for name, fields in page:
                number = RecordNo(int(name.partition(b"-")[0]) - 1)
                found.append((number, decode_record([fields[b"%d" % at] for at in range(len(fields))])))
            if len(page) < _READ_TOGETHER:
                return head, found
            after = f"({page[-1][0].decode()}"

    def trim(self, term: Term, head: Head, keep_from: RecordNo) -> None:
        self._ask(self._trim, term, head.next_record, keep_from, bytes(encode_head(head)))

    def tidy(self) -> int | None:
        now_s = time.monotonic()
        if not self._may_tidy or now_s < self._look_again_s:
            return None
        self._look_again_s = now_s + _TIDY_S
        try:
            with calling():
                found = self._info()
                used = int(found["used_memory"])
                if found["aof_enabled"] and not found["aof_rewrite_in_progress"]:
                    size = int(found["aof_current_size"])
                    if size > max(_SMALL_AOF, AOF_FACTOR * used):
                        self._client.bgrewriteaof()
        except (failures.ResponseError, UserMustAct):  # rule 2
            self._may_tidy = False
            return None
        return used

    def _info(self) -> dict[str, Any]:
        return {**self._client.info("persistence"), **self._client.info("memory")}

    def write_map(self, term: Term, stored: StoredMap) -> None:
        self._ask(self._map, term, json.dumps(stored))

    def read_map(self) -> StoredMap | None:
        with calling():
            text = self._client.get(self._keys[3])
        return None if text is None else cast("StoredMap", json.loads(cast("bytes", text)))

    def write_spec(self, term: Term, kept: KeptSpec) -> None:
        self._ask(self._spec, term, kept.version, write_spec(kept.spec))

    def read_spec(self) -> KeptSpec | None:
        return read_kept(self._client, self._keys[4])

    def _check_shape(self, first: Head) -> None:
        """A log of another query under this name."""
        with calling():
            held = decode_head(cast("bytes", self._client.hget(self._keys[2], "head")))
        if (len(held.clocks), len(held.counts)) != (len(first.clocks), len(first.counts)):
            raise UserMustAct(
                f"log: found the log of a query with {len(held.clocks)} streams, wanted {len(first.clocks)} and the "
                "same kind of windows; give this query another name, or remove the old one's state"
            )

    def _ask(self, script: Any, term: Term, *arguments: object) -> None:
        with calling():
            answer, held = script(keys=self._keys, args=[term, *arguments])
        if answer == b"stale":
            raise Stale(held, term)
        if answer != b"done":
            raise Bug(f"the log refuses {arguments[0]} under term {term}: {answer.decode()} {held}")
