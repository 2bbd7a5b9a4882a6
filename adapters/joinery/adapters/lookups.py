"""The lookup application of a stored table, as gateway and workers see it (lookup.proto).

A question is a call of its own: it fails alone, and whoever asked asks again (`shell.StoreRunner`). Words of keys do
not travel: they are made from the rows.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import grpc
import numpy as np
import pyarrow as pa

from joinery.adapters.codec.frames import Incoming, Outgoing, pack, unpack
from joinery.adapters.links import OPTIONS
from joinery.adapters.security import PLAIN, Security
from joinery.hybrid.grouped import GroupedCut
from joinery.hybrid.hybrid import Probe
from joinery.hybrid.segments import Relation, Segment, row_bytes
from joinery.join.plan import JoinPlan
from joinery.machine.facts import Fact, TableIs, TableRead
from joinery.machine.hybrid_module import TABLE, stored_schema
from joinery.machine.orders import Order
from joinery.machine.table_orders import AskTable, ReadTable
from joinery.model.errors import Bug, TryAgain
from joinery.model.tuples import I64Array
from joinery.v1 import lookup_pb2 as wire

METHOD: Final = "/joinery.v1.Lookup/Look"
UNBOUNDED_OPTIONS: Final = (
    *(option for option in OPTIONS if "message_length" not in option[0]),
    ("grpc.max_send_message_length", -1),  # a segment of one hot key may be of any size
    ("grpc.max_receive_message_length", -1),
)
PATIENCE_S: Final = 20.0
"""How long one question may take."""
_I64: Final = ("lows", "highs", "shifts", "starts", "firsts")


class Lookups:
    """Asks the lookup application; its answers are facts."""

    def __init__(self, address: str, plan: JoinPlan, security: Security = PLAIN) -> None:
        self._address, self._plan, self._schema = address, plan, stored_schema(plan)
        self._channel = security.channel(address, UNBOUNDED_OPTIONS)
        self._call: Callable[..., Iterable[bytes]] = self._channel.stream_stream(
            METHOD,
            request_serializer=wire.Question.SerializeToString,
            response_deserializer=bytes,  # a segment is large, and is used where it lies
        )
        self.close: Callable[[], None] = self._channel.close

    def carry_out(self, order: Order) -> Fact:
        """Ask what an order asks for; `TryAgain` if there is no answer."""
        match order:
            case AskTable():
                return TableIs(self.newest(order.oldest))
            case ReadTable():
                relation = None if order.version is None else self.relation(order.version)
                return TableRead(relation, tuple(self.segments(order.probes)))
            case _:
                raise Bug(f"a lookup application cannot do {type(order).__name__}")

    def newest(self, oldest: int) -> int:
        """The newest version; 0: none is cut yet."""
        ((answer, _),) = self._ask(wire.Question(ask_version=wire.AskVersion(oldest=oldest)))
        return int(answer.version.version)

    def relation(self, version: int) -> Relation:
        """How a version is cut."""
        ((answer, _),) = self._ask(wire.Question(ask_relation=wire.AskRelation(version=version)))
        return relation_of(answer.relation)

    def segments(self, probes: Iterable[Probe]) -> Iterator[Segment]:
        """Whole segments, all with one question."""
        names = np.array(list(probes), np.int64).reshape(-1, 2)
        if not len(names):
            return
        question = wire.AskSegments(stamps=names[:, 0].tobytes(), numbers=names[:, 1].tobytes())
        for answer, bodies in self._ask(wire.Question(ask_segments=question)):
            yield self._segment(answer.segment, bodies)

    def _segment(self, message: wire.Segment, bodies: Incoming) -> Segment:
        rows = read_rows(bodies.get(message, "rows_body"), self._schema)
        _, words, _ = self._plan.formats[TABLE].key.digest(rows)
        return Segment(message.number, message.stamp, words.copy(), rows, int(row_bytes(rows).sum()))

    def _ask(self, question: wire.Question) -> list[tuple[wire.Answer, Incoming]]:
        try:
            answers = self._call(iter([question]), timeout=PATIENCE_S, wait_for_ready=True)
            return [unpack(wire.Answer, answer) for answer in answers]
        except grpc.RpcError as error:
            found = f"{error.code().name}: {error.details()}" if isinstance(error, grpc.Call) else str(error)
            raise TryAgain(
                f"lookup application at {self._address}: found no answer ({found}), wanted one; rows wait for it"
            ) from error


def relation_of(message: wire.Relation) -> Relation:
    """A version as it travels, for the join."""
    arrays = {name: _numbers(getattr(message, name)) for name in _I64}
    slots = np.frombuffer(message.slots, "<i4").astype(np.int32)
    return Relation(
        message.version, GroupedCut(kind=message.kind, slots=slots, **arrays), _numbers(message.sizes),
        _numbers(message.stamps),
    )  # fmt: skip


def relation_message(relation: Relation) -> wire.Relation:
    """A version as it travels, and as it is stored."""
    cut = relation.cut
    if not isinstance(cut, GroupedCut):
        raise Bug("a stored relation is cut by groups")
    arrays = {name: getattr(cut, name).astype("<i8").tobytes() for name in _I64}
    return wire.Relation(
        version=relation.version, kind=cut.kind, slots=cut.slots.astype("<i4").tobytes(),
        sizes=relation.sizes.astype("<i8").tobytes(), stamps=relation.stamps.astype("<i8").tobytes(), **arrays,
    )  # fmt: skip


def segment_answer(stamp: int, number: int, rows: bytes) -> bytes:
    """A segment as it travels."""
    out = Outgoing()
    segment = wire.Segment(stamp=stamp, number=number, rows_body=out.add(rows))
    return pack(wire.Answer(segment=segment), out.bodies)


def read_rows(data: bytes | memoryview, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a stored segment, where they lie."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
        table = stream.read_all()
    rows = table.combine_chunks().to_batches() if table.num_rows else []
    return rows[0].cast(schema) if rows else pa.RecordBatch.from_pylist([], schema)


def write_rows(rows: pa.RecordBatch) -> bytes:
    """The rows of a segment as they are stored and travel."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return bytes(sink.getvalue())


def _numbers(data: bytes) -> I64Array:
    return np.frombuffer(data, "<i8").astype(np.int64)
