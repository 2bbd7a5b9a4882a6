"""Station 8 of 8, sink: a Redis Stream in the query's own Redis.

An entry of the stream has one field, `arrow`: some rows (about 256 KB) as an Arrow IPC stream with its schema. What the
key held before is kept: entries are added behind it.

    parts           hash    term -> the commit that was the last one when its collector began
    staged          set     term:number of everything that is staged
    staged:T:N      list    entries of commit N, as collector T staged them
    published       the last commit whose entries are in the stream

Rule 1: a receipt is the number of a commit: valid is what was staged for commits up to it, each by the collector that
        wrote it.
Rule 2: entries get into the stream by a script, in the order of their commits, each once: by the one that writes the
        commit (`redis_commits`), so that both are seen at the same moment. `recover` and `finish` make up for a commit
        that was written without it.
Rule 3: a former collector's entries are never published, and are removed by the next `recover` or `finish`.

The stream's key need not share the hash tag of the query's keys: this sink is for a single Redis, not for a cluster.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from redis import Redis

from joinery.adapters.redis_calls import calling, prefix_of
from joinery.adapters.sinks.chosen import Chosen
from joinery.join.results import ResultPart
from joinery.machine.ports import Receipt, Stale
from joinery.model.errors import UserMustAct, require
from joinery.model.ids import Term

FIELD: Final = "arrow"
_ENTRY_BYTES: Final = 2**18

PUBLISH: Final = f"""
local function publish(prefix, stream, term, upto)
  local done = tonumber(redis.call('GET', prefix .. 'published') or '0')
  for number = done + 1, upto do
    local entry = term .. ':' .. string.format('%d', number)
    for _, rows in ipairs(redis.call('LRANGE', prefix .. 'staged:' .. entry, 0, -1)) do
      redis.call('XADD', stream, '*', '{FIELD}', rows)
    end
    redis.call('UNLINK', prefix .. 'staged:' .. entry)
    redis.call('SREM', prefix .. 'staged', entry)
  end
  if upto > done then redis.call('SET', prefix .. 'published', string.format('%d', upto)) end
end
"""
"""Lua: add the entries of a collector's commits up to one to the stream; those that are there are passed over."""

_SWEEP: Final = """
local function sweep(prefix, below)  -- rule 3
  for _, entry in ipairs(redis.call('SMEMBERS', prefix .. 'staged')) do
    if tonumber(string.match(entry, '^%d+')) < below then
      redis.call('UNLINK', prefix .. 'staged:' .. entry)
      redis.call('SREM', prefix .. 'staged', entry)
    end
  end
end
"""

_RECOVER: Final = (
    PUBLISH
    + _SWEEP
    + """
local prefix, stream, term, valid = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local parts, bases = redis.call('HGETALL', prefix .. 'parts'), {}
for at = 1, #parts, 2 do
  if tonumber(parts[at]) < term then bases[#bases + 1] = {tonumber(parts[at]), tonumber(parts[at + 1])} end
end
table.sort(bases, function(one, other) return one[1] < other[1] end)
for number = tonumber(redis.call('GET', prefix .. 'published') or '0') + 1, valid do
  local writer = '0'
  for _, part in ipairs(bases) do
    if part[2] < number then writer = string.format('%d', part[1]) end
  end
  publish(prefix, stream, writer, number)
end
sweep(prefix, term)
redis.call('HSET', prefix .. 'parts', ARGV[3], ARGV[4])
return 0
"""
)

_FINISH: Final = (
    PUBLISH
    + _SWEEP
    + """
local prefix, stream, term, valid = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local is_known = false
for _, known in ipairs(redis.call('HKEYS', prefix .. 'parts')) do
  if tonumber(known) > term then return tonumber(known) end
  is_known = is_known or tonumber(known) == term
end
if not is_known then return 0 end
publish(prefix, stream, ARGV[3], valid)
sweep(prefix, term + 1)
redis.call('DEL', prefix .. 'parts')
return 0
"""
)


@dataclass(frozen=True, slots=True)
class StreamTarget:
    """What whoever publishes must know of a sink."""

    sink: str
    prefix: str
    stream: str


class RedisStreamSink:
    """A Redis Stream as a sink (`ports.Sink`)."""

    def __init__(self, name: str, client: Redis, query: str, key: str, chosen: Chosen) -> None:
        self.name = name
        self.target = StreamTarget(name, f"{prefix_of(query)}sink:{name}:", key)
        self._client, self._chosen = client, chosen
        self._recover, self._finish = client.register_script(_RECOVER), client.register_script(_FINISH)
        self._term: Term | None = None

    def recover(self, term: Term, valid: Receipt | None) -> None:
        self._check_kind()
        self._ask(self._recover, term, valid)
        self._term = term

    def stage(self, number: int, parts: Sequence[ResultPart]) -> Receipt:
        entry = f"{self._own_term()}:{number}"
        pipe = self._client.pipeline(transaction=True)
        pipe.sadd(f"{self.target.prefix}staged", entry)
        pipe.delete(f"{self.target.prefix}staged:{entry}")
        for rows in self._chosen.rows(parts):
            for piece in entries_of(rows):
                pipe.rpush(f"{self.target.prefix}staged:{entry}", piece)
        with calling():
            pipe.execute()
        return Receipt(self.name, number)

    def finish(self, valid: Receipt | None) -> None:
        newer = self._ask(self._finish, self._own_term(), valid)
        if newer:
            raise Stale(newer, self._own_term())

    def _check_kind(self) -> None:
        """Nobody could commit: the script that does would be refused for ever."""
        with calling():
            found: Any = self._client.type(self.target.stream)
        kind = found.decode() if isinstance(found, bytes) else str(found)
        if kind not in ("stream", "none"):
            raise UserMustAct(
                f"found a {kind} under the key {self.target.stream}, wanted a Redis Stream or nothing to write "
                "results to; name another key in spec.sinks[].redisStream, or remove what is there"
            )

    def _own_term(self) -> Term:
        require(self._term is not None, f"sink {self.name} was used before recover told it the term")
        return Term(self._term or 0)

    def _ask(self, script: Any, term: Term, valid: Receipt | None) -> int:
        named = self.name if valid is None else valid.sink
        require(named == self.name, f"sink {self.name} was given the receipt of {named}")
        arguments = [self.target.prefix, self.target.stream, term, 0 if valid is None else valid.valid]
        with calling():
            return int(script(keys=[f"{self.target.prefix}parts"], args=arguments))


def entries_of(rows: pa.RecordBatch) -> Iterator[bytes]:
    """Rows as the `arrow` fields of entries."""
    step = max(1, rows.num_rows * _ENTRY_BYTES // max(1, rows.nbytes))
    for start in range(0, rows.num_rows, step):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_batch(rows.slice(start, step))
        yield sink.getvalue().to_pybytes()


def rows_of(entry: bytes) -> pa.Table:
    """The rows of an `arrow` field."""
    with pa.ipc.open_stream(entry) as stream:
        return stream.read_all()
