"""The checkpoints of a query in Redis (`ports.CheckpointStore`; docs/design.md §3, checkpoint and fencing).

    claims          hash    group -> the newest map version that claimed it
    bases           hash    group -> the tag up to which its increments were trimmed
    tips            hash    group -> the newest tag of its chain, so that a chain that was cut short is noticed
    chain:G         list    the increments that count, in the order of their tags: since:tag:version:instance
    loose:G         set     increments that were written, but that no head names (yet): since:tag:instance
    block:G:...     hash    one increment (since:tag:instance), cut into values of about 1 MB: 0, 1 ...; n: how many;
                            as: its own key; rows: how many it holds

Rule 1: heads, claims and trims are one script call each, which compares the map version first; heads of many groups go
        together. Increments are not compressed: that would cost more time than it saves on the way to a near Redis.
Rule 2: an increment is noted as loose before it is written, and no longer once a head names it. So whatever a dead
        instance left behind is found: an accepted head removes the group's loose increments of other instances, which
        must have lost the group, and its own up to its tag; a refused head removes the increment that it was about.
        What a chain names is never removed by that: a write that was repeated may have noted it again.
Rule 3: a head that arrives again after later ones of the same owner, from a connection that was given up, has no
        effect: under one map version an instance's tags only grow.
Rule 4: what leaves a chain is deleted by the same script. A reader that claims nothing may find that a block of its
        chain has gone meanwhile: it begins again. A block that the chain still names then is not there at all.
Rule 5: what is not exactly what was written is never used. Each such increment is named by its key, with the reason
        (`ports.Damage`): a piece is missing, a byte differs, another format, another query's or another increment's.
        A chain that was cut or has a gap is damaged from there on. An owner that lives goes on writing behind it.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from redis import Redis

from joinery.adapters.increment_bytes import BadIncrement, decode, encode
from joinery.adapters.redis_calls import calling, prefix_of
from joinery.join.state import Increment
from joinery.machine.log import BEFORE_ALL
from joinery.machine.ports import Chain, Damage, Stale
from joinery.model.errors import Bug, TryAgain
from joinery.model.ids import GroupId, MapVersion, RecordNo

VALUE_BYTES: Final = 2**20
"""Larger values are slower by the byte (measured)."""
_PIPE_BYTES: Final = 8 * VALUE_BYTES
"""About how much is under way at once."""
_READ_TOGETHER: Final = 16
"""Increments that are asked for at once."""
_READ_AGAIN: Final = 5
_Block = dict[bytes, bytes]
_FOREIGN: Final[_Block] = {b"": b""}
"""Stands for a key that holds something else."""

_SHARED: Final = """
local prefix = ARGV[1]
local claims, bases, tips = prefix .. 'claims', prefix .. 'bases', prefix .. 'tips'
local function claimed(group) return tonumber(redis.call('HGET', claims, group) or '0') end
local function block(group, name) return prefix .. 'block:' .. group .. ':' .. name end
local function parse(link)
  local since, tag, version, instance = string.match(link, '^(%-?%d+):(%-?%d+):(%d+):(.*)$')
  if not since then return {tag = math.huge, text = '', version = -1, instance = '', name = ''} end  -- rule 5
  return {tag = tonumber(tag), text = tag, version = tonumber(version), instance = instance,
          name = since .. ':' .. tag .. ':' .. instance}
end
local function is_list(chain)
  local kind = redis.call('TYPE', chain).ok
  return kind == 'list' or kind == 'none'
end
"""

_HEADS: Final = (
    _SHARED
    + """
local instance = ARGV[2]

local function forget(group, name, named)  -- rule 2
  redis.call('SREM', prefix .. 'loose:' .. group, name)
  if not named[name] then redis.call('UNLINK', block(group, name)) end
end

local function names_of(group)
  local named = {}
  for _, link in ipairs(redis.call('LRANGE', prefix .. 'chain:' .. group, 0, -1)) do named[parse(link).name] = true end
  return named
end

local function sweep(group, own, tag)
  redis.call('SREM', prefix .. 'loose:' .. group, own)
  local loose = redis.call('SMEMBERS', prefix .. 'loose:' .. group)
  local named = #loose > 0 and names_of(group)
  for _, name in ipairs(loose) do
    local other, by = string.match(name, '^%-?%d+:(%-?%d+):(.*)$')
    if by ~= instance or tonumber(other) <= tag then forget(group, name, named) end
  end
end

local function add(group, version, since, tag)
  local name, chain = since .. ':' .. tag .. ':' .. instance, prefix .. 'chain:' .. group
  local link, whole = since .. ':' .. tag .. ':' .. version .. ':' .. instance, since == '-1'
  since, tag, version = tonumber(since), tonumber(tag), tonumber(version)
  if version < claimed(group) then
    if redis.call('SISMEMBER', prefix .. 'loose:' .. group, name) == 1 then forget(group, name, names_of(group)) end
    return 'refused'
  end
  if not is_list(chain) then redis.call('DEL', chain) end
  local kept, gone, last = redis.call('LLEN', chain), {}, nil
  while kept > 0 do
    last = parse(redis.call('LINDEX', chain, kept - 1))
    if last.version == version and last.instance == instance and last.tag > tag then return 'written' end  -- rule 3
    if last.tag <= since or (whole and last.tag < tag) then break end
    gone[#gone + 1], kept, last = last.name, kept - 1, nil
  end
  if redis.call('HEXISTS', block(group, name), 'n') == 0 then return 'unwritten' end
  local at = last and last.tag or tonumber(redis.call('HGET', bases, group) or 'nil')
  if not whole and at ~= since and tonumber(redis.call('HGET', tips, group) or 'nil') ~= since then return 'gap' end
  redis.call('HSET', claims, group, version)
  redis.call('HSET', tips, group, tag)
  if kept == 0 then redis.call('DEL', chain) else redis.call('LTRIM', chain, 0, kept - 1) end
  redis.call('RPUSH', chain, link)
  for _, old in ipairs(gone) do
    if old ~= name then redis.call('UNLINK', block(group, old)) end
  end
  sweep(group, name, tag)
  return 'written'
end

local answers = {}
for at = 3, #ARGV, 4 do answers[#answers + 1] = add(ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]) end
return answers
"""
)

_READ: Final = (
    _SHARED
    + """
local group, version = ARGV[2], ARGV[3]
if version ~= '' then
  if tonumber(version) < claimed(group) then return {claimed(group)} end
  redis.call('HSET', claims, group, version)
end
local chain = prefix .. 'chain:' .. group
local links = is_list(chain) and redis.call('LRANGE', chain, 0, -1) or {}
return {0, redis.call('HGET', bases, group), redis.call('HGET', tips, group), links}
"""
)

_TRIM: Final = (
    _SHARED
    + """
local group, version, base = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if version < claimed(group) then return 0 end
local chain = prefix .. 'chain:' .. group
if not is_list(chain) then return 0 end
local first = redis.call('LINDEX', chain, 0)
while first and parse(first).tag <= base do
  redis.call('LPOP', chain)
  redis.call('HSET', bases, group, parse(first).text)
  redis.call('UNLINK', block(group, parse(first).name))
  first = redis.call('LINDEX', chain, 0)
end
return 1
"""
)


class RedisCheckpoints:
    """Keeps a query's checkpoints; may be used by several threads."""

    def __init__(self, client: Redis, query: str) -> None:
        self._client, self._prefix = client, prefix_of(query)
        self._heads, self._read, self._trim = (client.register_script(text) for text in (_HEADS, _READ, _TRIM))

    def write_blocks(self, instance: str, increments: Sequence[Increment]) -> None:
        pipe, waiting = self._client.pipeline(transaction=True), 0
        with calling():
            for one in increments:
                name = _name(BEFORE_ALL if one.since is None else one.since, one.tag, instance)
                pipe.sadd(f"{self._prefix}loose:{one.group}", name)
                key, rows = self._block(one.group, name), sum(len(batch) for batch in one.rows)
                pipe.hset(key, mapping={"as": key, "rows": rows})
                for field, value in _values(encode(one)):
                    pipe.hset(key, field, value)
                    waiting += len(value)
                    if waiting >= _PIPE_BYTES:
                        pipe.execute()
                        waiting = 0
            pipe.execute()

    def write_heads(
        self, instance: str, version_of: dict[GroupId, MapVersion], tag_of: dict[GroupId, tuple[RecordNo, RecordNo]]
    ) -> tuple[GroupId, ...]:
        wanted = [(group, version_of[group], since, tag) for group, (since, tag) in tag_of.items()]
        answers = self._ask(self._heads, instance, *(number for head in wanted for number in head))
        found = [(group, answer.decode()) for group, answer in zip(tag_of, answers, strict=True)]
        for group, answer in found:
            if answer not in ("written", "refused"):
                since, tag = tag_of[group]
                why = {"unwritten": "which nobody wrote; write blocks first", "gap": "which continues no tag there"}
                raise Bug(f"a head of group {group} names ({since}, {tag}] of {instance}, {why[answer]}")
        return tuple(group for group, answer in found if answer == "refused")

    def read(self, group: GroupId, version: MapVersion | None, known: Sequence[RecordNo]) -> Chain:
        missing: set[str] = set()
        for _ in range(_READ_AGAIN):
            answer = self._ask(self._read, group, "" if version is None else version)
            if version is not None and answer[0] > 0:
                raise Stale(answer[0], version)
            _, base, tip, found = answer
            at = None if base is None else RecordNo(int(base))
            links = [link for text in found if (link := _parse(text)) is not None]
            key = f"{self._prefix}chain:{group}"
            broken = _gaps(links, at, None if tip is None else int(tip), key)
            gaps = {one.tag for one in broken}
            wanted = [link for link in links if link.tag not in known and link.tag not in gaps]
            blocks = self._blocks(group, wanted)
            gone = {link.name for link, block in zip(wanted, blocks, strict=True) if not block}
            if gone - missing:
                missing = gone
                continue
            parts = [self._decoded(group, link, block) for link, block in zip(wanted, blocks, strict=True)]
            increments = tuple(part for part in parts if isinstance(part, Increment))
            damaged = (*(part for part in parts if isinstance(part, Damage)), *broken)
            return Chain(tuple(sorted({link.tag for link in links} | gaps)), increments, at, damaged, key)
        raise TryAgain(f"found the chain of group {group} changing under us {_READ_AGAIN} times; it is read again")

    def trim(self, group: GroupId, version: MapVersion, base: RecordNo) -> None:
        self._ask(self._trim, group, version, base)

    def _blocks(self, group: GroupId, links: Sequence["_Link"]) -> list[_Block]:
        """The blocks of these increments; an empty one is not there (rule 4)."""
        found: list[Any] = []
        for start in range(0, len(links), _READ_TOGETHER):
            pipe = self._client.pipeline(transaction=False)
            for link in links[start : start + _READ_TOGETHER]:
                pipe.hgetall(self._block(group, link.name))
            with calling():
                found += pipe.execute(raise_on_error=False)
        with calling():
            for block in found:
                if isinstance(block, Exception) and not str(block).startswith("WRONGTYPE"):
                    raise block
        return [_FOREIGN if isinstance(block, Exception) else block for block in found]

    def _decoded(self, group: GroupId, link: "_Link", block: _Block) -> Increment | Damage:
        """What a block holds, if it is what its name says (rule 5)."""
        key = self._block(group, link.name)
        try:
            return _increment(block, key, group, link)
        except BadIncrement as bad:
            rows = block.get(b"rows", b"")
            return Damage(link.tag, key, bad.reason, int(rows) if rows.isdigit() else 0)

    def _block(self, group: GroupId, name: str) -> str:
        return f"{self._prefix}block:{group}:{name}"

    def _ask(self, script: Any, *arguments: object) -> Any:
        with calling():
            return script(keys=[f"{self._prefix}claims"], args=[self._prefix, *arguments])


@dataclass(frozen=True, slots=True)
class _Link:
    """An increment as a chain names it."""

    since: int
    tag: RecordNo
    name: str


def _name(since: int, tag: int, instance: str) -> str:
    return f"{since}:{tag}:{instance}"


def _parse(text: bytes) -> _Link | None:
    """An entry of a chain; None: it is none."""
    found = re.fullmatch(rb"(-?\d+):(-?\d+):\d+:(.*)", text)
    if found is None:
        return None
    since, tag, instance = int(found[1]), int(found[2]), found[3].decode(errors="replace")
    return _Link(since, RecordNo(tag), _name(since, tag, instance))


def _gaps(links: Sequence[_Link], base: RecordNo | None, tip: int | None, key: str) -> tuple[Damage, ...]:
    """Where a chain is not as it was left: an increment that continues nothing, or an end before its newest tag."""
    found, before = [], base
    for link in links:
        if link.since not in (BEFORE_ALL, before):
            reason = f"found an increment since record {link.since} after one of {before}, wanted a chain without a gap"
            found.append(Damage(link.tag, key, reason))
        before = link.tag
    if tip is not None and tip > (BEFORE_ALL if before is None else before):
        reason = f"found a chain that ends at record {before}, wanted it as it was left, up to record {tip}"
        found.append(Damage(RecordNo(tip), key, reason))
    return tuple(found)


def _increment(block: _Block, key: str, group: GroupId, link: _Link) -> Increment:
    """`BadIncrement`: this is not the increment that was written there."""
    if block is _FOREIGN:
        raise BadIncrement("a value that is no hash")
    if not block:
        raise BadIncrement("nothing")
    if (written_as := block.get(b"as")) not in (None, key.encode()):
        raise BadIncrement(f"a block that was written as {written_as!r}")
    pieces = block.get(b"n", b"")
    if not pieces.isdigit():
        raise BadIncrement("a block without the number of its pieces")
    missing = [at for at in range(int(pieces)) if b"%d" % at not in block]
    if missing:
        raise BadIncrement(f"{int(pieces) - len(missing)} of {int(pieces)} pieces")
    try:
        one = decode([block[b"%d" % at] for at in range(int(pieces))])
    except (ValueError, RuntimeError, struct.error, pa.ArrowException) as error:  # whole, but not ours
        raise BadIncrement(f"bytes that say something else ({error})") from error
    since = BEFORE_ALL if one.since is None else one.since
    if (one.group, since, one.tag) != (group, link.since, link.tag):
        raise BadIncrement(f"the increment ({since}, {one.tag}] of group {one.group}")
    return one


def _values(data: memoryview) -> Iterator[tuple[str, memoryview | bytes]]:
    """Fields and values of a block; their number comes last, so that it says that all are there."""
    starts = range(0, len(data), VALUE_BYTES)
    for number, start in enumerate(starts):
        yield str(number), data[start : start + VALUE_BYTES]
    yield "n", b"%d" % len(starts)
