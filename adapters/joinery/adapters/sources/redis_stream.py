"""Redis Streams as sources.

Rule 1: an entry has one field per column, as text (numbers in decimal, times in ISO 8601, bytes as they are), or one
        field `arrow`: rows as an Arrow IPC stream, as the Redis sink writes them. Fields that are no columns are passed
        over. Keys and the time must be there; any other field that is not is null.
Rule 2: a place is an entry's id as one number, (milliseconds << 20) + number within the millisecond; the rows of an
        entry stay together. Ids beyond that (only hand-made ones are) are refused.
Rule 3: the first run begins at the first entry that is still there, or behind the last one (`start: now`). The latter
        is pushed at once, without rows, so that a second run begins there too.
Rule 4: read with XREAD, no consumer groups: the log knows how far we are. A Redis that does not answer is asked again.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from typing import Any, Final, Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from redis import Redis
from redis import exceptions as failures

from joinery.adapters.redis_calls import calling
from joinery.adapters.sources.columns import check_names, check_types, conform
from joinery.adapters.sources.pieces import MAX_BYTES, MAX_ROWS, Pause, Piece
from joinery.model.errors import TryAgain, UserMustAct
from joinery.partition.format import StreamFormat

ARROW: Final = b"arrow"
NUMBER_BITS: Final = 20
_MOST_MS: Final = 1 << 43
_BLOCK_MS: Final = 100
"""How long Redis may wait for an entry before we look around."""
_FIRST_COUNT: Final = 16
_FIRST_WAIT_S: Final = 0.05
_LONGEST_WAIT_S: Final = 1.0
T = TypeVar("T")
Entries = list[tuple[bytes, list[bytes]]]
"""Ids and their fields: name, value, name, value ..."""


def place_of(entry_id: bytes) -> int:
    """An id as one number (rule 2)."""
    ms, _, number = entry_id.decode().partition("-")
    if int(ms) >= _MOST_MS or int(number) >= 1 << NUMBER_BITS:
        raise UserMustAct(
            f"found the entry id {ms}-{number}, wanted milliseconds below 2^43 and a number below 2^{NUMBER_BITS}; "
            "let Redis number the entries (XADD key *)"
        )
    return (int(ms) << NUMBER_BITS) + int(number)


def id_before(place: int) -> str:
    """The greatest id below a place: what XREAD takes."""
    last = max(0, place - 1)
    return f"{last >> NUMBER_BITS}-{last & ((1 << NUMBER_BITS) - 1)}"


@dataclass(frozen=True, slots=True)
class RedisReader:
    """Reads one Redis Stream, for one stream of the query."""

    connect: Callable[[], Redis]
    key: str
    start: Literal["earliest", "now"]
    form: StreamFormat

    @property
    def title(self) -> str:
        return f"Redis Stream {self.key}"

    def check(self) -> None:
        """An empty or missing stream is a stream that nobody has written to yet."""
        client = self._open()
        try:
            with calling():
                self._check_kind(client.type(self.key))
        finally:
            client.close()

    def _check_kind(self, found: Any) -> None:
        kind = found.decode() if isinstance(found, bytes) else str(found)
        if kind not in ("stream", "none"):
            raise UserMustAct(f"found a {kind} under the key {self.key}, wanted a Redis Stream; name another key")

    def _open(self) -> Redis:
        client = self.connect()
        client.set_response_callback("XREAD", _as_it_came)  # a dictionary per entry would cost more than all the rest
        return client

    def read(self, start: int | None) -> Iterator[Piece | Pause]:
        """Entries as they come; it never ends."""
        client = yield from _ask(self._open)
        try:
            place, count = start or 0, _FIRST_COUNT
            if start is None and self.start == "now":
                place = 1 + (yield from _ask(lambda: self._last_place(client)))
                yield Piece(place, place, self._no_rows())
            while True:
                entries = yield from _ask(partial(self._entries, client, place, count))
                if not entries:
                    yield Pause(0.0)
                    continue
                rows, after = self._rows(entries), place_of(entries[-1][0]) + 1
                yield Piece(place, after, rows)
                place, count = after, _next_count(count, len(entries), rows)
        finally:
            client.close()

    def _last_place(self, client: Redis) -> int:
        try:
            with calling():
                found = client.xinfo_stream(self.key)
        except failures.ResponseError:  # no such key
            return -1
        return place_of(found["last-generated-id"])

    def _entries(self, client: Redis, place: int, count: int) -> Entries:
        try:
            with calling():
                found: Any = client.execute_command(  # type: ignore[no-untyped-call]
                    "XREAD", "COUNT", count, "BLOCK", _BLOCK_MS, "STREAMS", self.key, id_before(place)
                )
        except failures.ResponseError as error:
            with calling():
                self._check_kind(client.type(self.key))
            raise UserMustAct(f"found Redis refusing to read ({error}), wanted entries; check the server") from error
        return found[0][1] if found else []

    # --- rows

    def _no_rows(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], schema=self.form.schema)

    def _rows(self, entries: Entries) -> pa.RecordBatch:
        """The rows of entries, in their order; runs of one kind are read together."""
        batches = [self._no_rows()]
        try:
            for is_arrow, run in groupby(entries, self._is_arrow):
                together = list(run)
                batches += self._of_arrow(together) if is_arrow else [self._of_fields(together)]
        except (pa.ArrowException, UserMustAct) as error:
            first, last = entries[0][0].decode(), entries[-1][0].decode()
            raise UserMustAct(f"entries {first} to {last}: {str(error).splitlines()[0]}") from error
        return pa.concat_batches(batches)

    def _is_arrow(self, entry: tuple[bytes, list[bytes]]) -> bool:
        return entry[1][0] == ARROW and ARROW.decode() not in self.form.schema.names

    def _of_arrow(self, entries: Entries) -> list[pa.RecordBatch]:
        found = []
        for _, fields in entries:
            found += [self._picked(batch) for batch in _read_arrow(fields[1])]
        return found

    def _picked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        check_names(self.form, batch.schema.names)
        check_types(self.form, batch.schema)
        return conform(self.form, batch)

    def _of_fields(self, entries: Entries) -> pa.RecordBatch:
        """Columns from fields, by Arrow: all names and values are one array each, sorted out per column."""
        flat = list(chain.from_iterable(fields for _, fields in entries))
        names, values = pa.array(flat[0::2], pa.binary()), pa.array(flat[1::2], pa.binary())
        row_of = np.repeat(np.arange(len(entries)), [len(fields) // 2 for _, fields in entries])
        needed = {*self.form.key.columns, self.form.time_column}
        columns = []
        for field in self.form.schema:
            is_here = pc.equal(names, pa.scalar(field.name.encode(), pa.binary()))
            here = np.flatnonzero(is_here.to_numpy(zero_copy_only=False))
            at = np.full(len(entries), -1)
            at[row_of[here]] = here
            if field.name in needed and (at < 0).any():
                found = entries[int(np.argmax(at < 0))][1][0::2]
                raise self._lacking([field.name], [one.decode(errors="replace") for one in found])
            columns.append(_typed(field, values.take(pa.array(at, mask=at < 0))))
        return pa.RecordBatch.from_arrays(columns, schema=self.form.schema)

    def _lacking(self, lacking: list[str], found: list[str]) -> UserMustAct:
        return UserMustAct(
            f"found the fields {', '.join(found[:50])}, wanted {', '.join(lacking)} in every entry; "
            f"write one field per column of stream {self.form.name}"
        )


def _read_arrow(written: bytes) -> list[pa.RecordBatch]:
    try:
        with pa.ipc.open_stream(written) as stream:
            batches: list[pa.RecordBatch] = stream.read_all().to_batches()
        for batch in batches:
            batch.validate(full=True)  # others wrote it
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        message = f"found {len(written)} bytes in a field {ARROW.decode()} that cannot be read ({reason})"
        raise UserMustAct(f"{message}, wanted an Arrow IPC stream; write it with an Arrow library") from error
    return batches


def _typed(field: pa.Field, values: pa.Array) -> pa.Array:
    """Texts in the type of a column."""
    kind = field.type
    try:
        if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
            return values.cast(kind)
        return values.cast(pa.string()).cast(kind)
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise UserMustAct(f"found {field.name} as {reason}, wanted {kind}; write that type") from error


def _next_count(count: int, found: int, rows: pa.RecordBatch) -> int:
    """How many entries to ask for next: as many as make about one piece."""
    if rows.nbytes > MAX_BYTES or rows.num_rows > MAX_ROWS:
        return max(1, count // 2)
    is_small = 2 * rows.nbytes < MAX_BYTES and 2 * rows.num_rows <= MAX_ROWS
    return min(2 * count, MAX_ROWS) if found == count and is_small else count


def _as_it_came(found: Any, **options: Any) -> Any:
    del options
    return found


def _ask(call: Callable[[], T]) -> Generator[Pause, None, T]:
    """The answer of a call, after as many pauses as Redis needs to give one."""
    wait_s = _FIRST_WAIT_S
    while True:
        try:
            return call()
        except TryAgain:
            yield Pause(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
