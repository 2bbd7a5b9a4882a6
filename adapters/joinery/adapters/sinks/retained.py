"""The last results in Redis, for subscribers who come back to another collector (`ports.Retained`, `retaining`).

    retained            hash    term: the newest collector that began; first: no result from this commit on is missing
                                (it is there from the first subscriber on)
    retained:index      hash    commit -> term, bytes and rows of what is kept of it
    retained:T:N        list    the results of commit N, as collector T staged them: frames of about 1 MB

A frame is a delivery as it goes to a subscriber (`codec.collect`), with a head and a checksum around it (`framed`).

Rule 1: a stage is one transaction, and one fsync: new results, what they push out, and the index. A collector that was
        replaced changes nothing: its last step takes back what it wrote.
Rule 2: what is not exactly what was written is not kept: whoever reads begins after it, and older tokens are refused.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

from redis import Redis

from joinery.adapters.codec.collect import decode_to_subscriber, encode_to_subscriber
from joinery.adapters.codec.errors import WireError
from joinery.adapters.framed import Reader, Writer, item_size
from joinery.adapters.redis_calls import calling, prefix_of
from joinery.join.plan import JoinPlan
from joinery.join.results import ResultPart
from joinery.machine import result_rows
from joinery.machine.messages import Delivery, Token
from joinery.machine.ports import Kept, Receipt, Stale
from joinery.machine.retaining import Entry, Window, kept_of
from joinery.model.errors import require
from joinery.model.ids import Term

_MAGIC: Final = b"JNYKEPT\0"
_VERSION: Final = 1
_FRAME_BYTES: Final = 1 << 20

_RECOVER: Final = """
local head, index, term, valid = KEYS[1], KEYS[2], tonumber(ARGV[1]), tonumber(ARGV[2])
local newest = tonumber(redis.call('HGET', head, 'term') or '0')
if newest > term then return {newest, '', {}} end
redis.call('HSET', head, 'term', ARGV[1])
if valid < 0 then redis.call('HDEL', head, 'first') end
local held = redis.call('HGETALL', index)
for at = 1, #held, 2 do
  if tonumber(held[at]) > valid then
    redis.call('UNLINK', head .. ':' .. string.match(held[at + 1], '^%d+') .. ':' .. held[at])
    redis.call('HDEL', index, held[at])
  end
end
return {0, redis.call('HGET', head, 'first') or '', redis.call('HGETALL', index)}
"""

_NOTE: Final = """
local head, index, term, added = KEYS[1], KEYS[2], tonumber(ARGV[1]), tonumber(ARGV[3])
local newest = tonumber(redis.call('HGET', head, 'term') or '0')
if newest > term then
  for at = 4, 3 + 2 * added, 2 do redis.call('UNLINK', head .. ':' .. ARGV[1] .. ':' .. ARGV[at]) end
  return newest
end
redis.call('HSET', head, 'first', ARGV[2])
for at = 4, 3 + 2 * added, 2 do redis.call('HSET', index, ARGV[at], ARGV[at + 1]) end
for at = 4 + 2 * added, #ARGV, 2 do
  redis.call('UNLINK', head .. ':' .. ARGV[at + 1] .. ':' .. ARGV[at])
  redis.call('HDEL', index, ARGV[at])
end
return 0
"""


class RedisRetained:
    """The last `retain` bytes of results."""

    name = "retained"

    def __init__(self, client: Redis, query: str, plan: JoinPlan, retain: int) -> None:
        self._client, self._plan, self._retain = client, plan, retain
        self._head = f"{prefix_of(query)}retained"
        self._keys = [self._head, f"{self._head}:index"]
        self._recover, self._note = client.register_script(_RECOVER), client.register_script(_NOTE)
        self._term: Term | None = None
        self._window, self._is_wanted = Window(retain), False

    def recover(self, term: Term, valid: Receipt | None) -> None:
        require(valid is None or valid.sink == self.name, f"{self.name} was given the receipt of {valid}")
        with calling():
            newer, first, flat = self._recover(keys=self._keys, args=[term, -1 if valid is None else valid.valid])
        if newer:
            raise Stale(newer, term)
        self._term, self._window, self._is_wanted = term, Window(self._retain), bool(first)
        self._window.first = int(first) if first else None
        for number, about in sorted((int(key), about) for key, about in zip(flat[::2], flat[1::2], strict=True)):
            writer, nbytes, rows = map(int, about.split())
            self._window.entries.append(Entry(number, Term(writer), rows, nbytes, is_written=True))

    def stage(self, number: int, parts: Sequence[ResultPart]) -> Receipt:
        self._window.stage(number, self._own_term(), parts)
        if self._is_wanted and (self._window.unwritten or self._window.gone):
            self._write()
        return Receipt(self.name, number)

    def keep(self, first: int) -> None:
        self._window.begin_with(first)
        self._write()
        self._is_wanted = True

    def read(self) -> Kept | None:
        if not self._is_wanted or self._window.first is None:
            return None
        held = [(entry.number, entry.rows, self._read(entry)) for entry in self._window.entries]
        return kept_of(self._window.first, held)

    def finish(self, valid: Receipt | None) -> None:  # noqa: ARG002 - what is kept can be asked for until the very end
        with calling():
            newest = int(self._client.hget(self._head, "term") or 0)
        if newest > self._own_term():
            raise Stale(newest, self._own_term())

    def _write(self) -> None:
        """Rule 1."""
        term, window = self._own_term(), self._window
        about: list[Any] = []
        pipe = self._client.pipeline(transaction=True)
        for entry in window.unwritten:
            key = self._key(entry)
            pipe.delete(key)
            for piece in result_rows.pieces(entry.parts, _FRAME_BYTES):
                pipe.rpush(key, self._frame(entry.number, piece))
            about += [entry.number, f"{entry.term} {entry.nbytes} {entry.rows}"]
        gone = [word for entry in window.gone for word in (entry.number, int(entry.term))]
        self._note(keys=self._keys, args=[term, window.first or 0, len(about) // 2, *about, *gone], client=pipe)
        with calling():
            newer = int(pipe.execute()[-1])
        if newer:
            raise Stale(newer, term)
        window.written()

    def _read(self, entry: Entry) -> tuple[ResultPart, ...]:
        with calling():
            frames = cast("list[bytes]", self._client.lrange(self._key(entry), 0, -1))
        try:
            return tuple(part for frame in frames for part in _parts_of(frame))
        except (ValueError, WireError):  # rule 2
            return ()

    def _frame(self, number: int, parts: tuple[ResultPart, ...]) -> memoryview:
        data = encode_to_subscriber(Delivery(parts, Token(number, 0)), self._plan)
        writer = Writer(_MAGIC, _VERSION, item_size(len(data)))
        writer.put(data)
        return writer.sealed()

    def _key(self, entry: Entry) -> str:
        return f"{self._head}:{entry.term}:{entry.number}"

    def _own_term(self) -> Term:
        require(self._term is not None, f"{self.name} was used before recover told it the term")
        return Term(self._term or 0)


def _parts_of(frame: bytes) -> tuple[ResultPart, ...]:
    data = Reader([frame], _MAGIC, _VERSION, ValueError).next()
    found = decode_to_subscriber(bytes(data))
    return found.parts if isinstance(found, Delivery) else ()
