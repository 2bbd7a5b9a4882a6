"""The checkpoints of a query in Redis (`ports.CheckpointStore`; docs/design.md §3, checkpoint and fencing).

    claims          hash    group -> the newest map version that claimed it
    bases           hash    group -> the tag up to which its increments were trimmed
    chain:G         list    the increments that count, in the order of their tags: since:tag:version:instance
    loose:G         set     increments that were written, but that no head names (yet): since:tag:instance
    block:G:...     hash    one increment (since:tag:instance), cut into values of about 1 MB: 0, 1 ...; n: how many

Rule 1: heads, claims and trims are one script call each, which compares the map version first; heads of many groups go
        together. Increments are not compressed: that would cost more time than it saves on the way to a near Redis.
Rule 2: an increment is noted as loose before it is written, and no longer once a head names it. So whatever a dead
        instance left behind is found: an accepted head removes the group's loose increments of other instances, which
        must have lost the group, and its own up to its tag; a refused head removes the increment that it was about.
        What a chain names is never removed by that: a write that was repeated may have noted it again.
Rule 3: a head that arrives again after later ones of the same owner, from a connection that was given up, has no
        effect: under one map version an instance's tags only grow.
Rule 4: what leaves a chain is deleted by the same script. A reader that claims nothing may find that a block of its
        chain has gone meanwhile: it begins again.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from redis import Redis

from joinery.adapters.increment_bytes import decode, encode
from joinery.adapters.redis_calls import calling, prefix_of
from joinery.join.state import Increment
from joinery.machine.log import BEFORE_ALL
from joinery.machine.ports import Chain, Stale
from joinery.model.errors import Bug, TryAgain
from joinery.model.ids import GroupId, MapVersion, RecordNo

VALUE_BYTES: Final = 2**20
"""Larger values are slower by the byte (measured)."""
_PIPE_BYTES: Final = 16 * VALUE_BYTES
"""About how much is under way at once."""
_READ_TOGETHER: Final = 16
"""Increments that are asked for at once."""
_READ_AGAIN: Final = 5

_SHARED: Final = """
local prefix = ARGV[1]
local claims, bases = prefix .. 'claims', prefix .. 'bases'
local function claimed(group) return tonumber(redis.call('HGET', claims, group) or '0') end
local function block(group, name) return prefix .. 'block:' .. group .. ':' .. name end
local function parse(link)
  local since, tag, version, instance = string.match(link, '^(%-?%d+):(%-?%d+):(%d+):(.*)$')
  return {tag = tonumber(tag), text = tag, version = tonumber(version), instance = instance,
          name = since .. ':' .. tag .. ':' .. instance}
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
  local kept, gone, last = redis.call('LLEN', chain), {}, nil
  while kept > 0 do
    last = parse(redis.call('LINDEX', chain, kept - 1))
    if last.version == version and last.instance == instance and last.tag > tag then return 'written' end  -- rule 3
    if last.tag <= since or (whole and last.tag < tag) then break end
    gone[#gone + 1], kept, last = last.name, kept - 1, nil
  end
  if redis.call('HEXISTS', block(group, name), 'n') == 0 then return 'unwritten' end
  local at = last and last.tag or tonumber(redis.call('HGET', bases, group) or 'nil')
  if not whole and at ~= since then return 'gap' end
  redis.call('HSET', claims, group, version)
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
return {0, redis.call('HGET', bases, group), redis.call('LRANGE', prefix .. 'chain:' .. group, 0, -1)}
"""
)

_TRIM: Final = (
    _SHARED
    + """
local group, version, base = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if version < claimed(group) then return 0 end
local chain = prefix .. 'chain:' .. group
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
        pipe, waiting = self._client.pipeline(transaction=False), 0
        with calling():
            for one in increments:
                name = _name(BEFORE_ALL if one.since is None else one.since, one.tag, instance)
                pipe.sadd(f"{self._prefix}loose:{one.group}", name)
                for field, value in _values(encode(one)):
                    pipe.hset(self._block(one.group, name), field, value)
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
        for _ in range(_READ_AGAIN):
            answer = self._ask(self._read, group, "" if version is None else version)
            if version is not None and answer[0] > 0:
                raise Stale(answer[0], version)
            _, base, names = answer
            links = [_parse(link) for link in names]
            tags = tuple(tag for tag, _ in links)
            wanted = [name for tag, name in links if tag not in known]
            increments = self._increments(group, wanted)
            if increments is not None:
                return Chain(tags, increments, None if base is None else RecordNo(int(base)))
        raise TryAgain(f"found the chain of group {group} changing under us {_READ_AGAIN} times; it is read again")

    def trim(self, group: GroupId, version: MapVersion, base: RecordNo) -> None:
        self._ask(self._trim, group, version, base)

    def _increments(self, group: GroupId, names: Sequence[str]) -> tuple[Increment, ...] | None:
        """None: one of them is gone (rule 4)."""
        found: list[Increment] = []
        for start in range(0, len(names), _READ_TOGETHER):
            pipe = self._client.pipeline(transaction=False)
            for name in names[start : start + _READ_TOGETHER]:
                pipe.hgetall(self._block(group, name))
            with calling():
                blocks = cast("list[dict[bytes, bytes]]", pipe.execute())
            if not all(blocks):
                return None
            found += [decode([block[b"%d" % at] for at in range(int(block[b"n"]))]) for block in blocks]
        return tuple(found)

    def _block(self, group: GroupId, name: str) -> str:
        return f"{self._prefix}block:{group}:{name}"

    def _ask(self, script: Any, *arguments: object) -> Any:
        with calling():
            return script(keys=[f"{self._prefix}claims"], args=[self._prefix, *arguments])


def _name(since: int, tag: int, instance: str) -> str:
    return f"{since}:{tag}:{instance}"


def _parse(link: bytes) -> tuple[RecordNo, str]:
    """Of an increment in a chain: its tag, and what its block is named by."""
    since, tag, _, instance = link.decode().split(":", 3)
    return RecordNo(int(tag)), _name(int(since), int(tag), instance)


def _values(data: memoryview) -> Iterator[tuple[str, memoryview | bytes]]:
    """Fields and values of a block; their number comes last, so that it says that all are there."""
    starts = range(0, len(data), VALUE_BYTES)
    for number, start in enumerate(starts):
        yield str(number), data[start : start + VALUE_BYTES]
    yield "n", b"%d" % len(starts)
