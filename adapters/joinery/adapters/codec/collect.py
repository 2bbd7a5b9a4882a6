"""The wire of worker and collector, and of collector and subscriber (collect.proto).

Where a result's members stood (`origin`, `members`) is of use to tests only, and takes 20 bytes per row: it stays with
the worker. A subscriber does not know the query, so a delivery tells the schema of its rows, always: a few hundred
bytes, and one encoding serves all subscribers.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa

from joinery.adapters.codec.columns import read_column, write_column
from joinery.adapters.codec.errors import BadMessage, WireError
from joinery.adapters.codec.fields import (
    MIN_I64,
    choice,
    chosen,
    flag,
    groups,
    i64,
    inner,
    maybe_number,
    number,
    vector,
)
from joinery.adapters.codec.frames import Incoming, Outgoing, pack, parse, unpack
from joinery.adapters.codec.rows import read_rows, read_schema
from joinery.adapters.codec.shared import (
    read_committed,
    read_hello,
    read_marks,
    write_committed,
    write_hello,
    write_marks,
)
from joinery.flow.stamps import NO_ARRIVALS, Arrivals
from joinery.join.plan import JoinPlan
from joinery.join.results import Kind, ResultPart
from joinery.machine.messages import (
    Committed,
    Delivery,
    Ended,
    Grant,
    Results,
    Resume,
    Subscribe,
    Token,
    TokenTooOld,
    WorkerHello,
)
from joinery.model.errors import require
from joinery.model.ids import RecordNo, Term
from joinery.v1 import collect_pb2 as wire

_TO_WIRE: Final = {Kind.RESULT: wire.RESULT_KIND_RESULT, Kind.LATE: wire.RESULT_KIND_LATE}
_KINDS: Final = {number: kind for kind, number in _TO_WIRE.items()}
_MAX_STREAM: Final = 1 << 16
_MAX_GROUPS: Final = 1 << 16
_MAX_CREDIT: Final = 1 << 20


# --- worker and collector


def encode_to_collector(message: WorkerHello | Results, plan: JoinPlan) -> bytes:
    """The bytes of a worker's message to the collector."""
    if isinstance(message, WorkerHello):
        return pack(wire.WorkerToCollector(worker_hello=write_hello(message)))
    out, schema = Outgoing(), plan.schema
    results = wire.Results(
        groups=i64(message.groups),
        after=i64(message.after),
        versions=i64(message.versions),
        upto=message.upto,
        marks=write_marks(message.marks),
        part=message.part,
        last=message.last,
        parts=[
            _write_part(part, schema if part.kind is Kind.RESULT else plan.formats[part.stream].schema, out)
            for part in message.parts
        ],
        produced_ns=message.produced_ns,
        arrival_stamps_ns=i64(message.arrivals.stamps),
        arrival_rows=i64(message.arrivals.rows),
    )
    return pack(wire.WorkerToCollector(results=results), out.bodies)


def decode_to_collector(data: bytes, plan: JoinPlan) -> WorkerHello | Results:
    """A worker's message."""
    envelope, bodies = unpack(wire.WorkerToCollector, data)
    kind, message = chosen(envelope)
    if kind == "worker_hello":
        return read_hello(message, plan)
    own = groups(message, plan.partitions)
    return Results(
        own,
        vector(message, "after", own.size),
        vector(message, "versions", own.size),
        RecordNo(number(message, "upto")),
        read_marks(inner(message, "marks"), plan),
        number(message, "part"),
        flag(message, "last"),
        _read_parts(message.parts, plan, bodies),
        message.produced_ns,
        _read_arrivals(message),
    )


def _read_arrivals(message: wire.Results) -> Arrivals:
    if not message.HasField("arrival_rows"):
        return NO_ARRIVALS
    rows = vector(message, "arrival_rows", low=0)
    return Arrivals(vector(message, "arrival_stamps_ns", rows.size, MIN_I64), rows)


def encode_to_worker(message: Resume | Committed) -> bytes:
    """The bytes of the collector's message to a worker."""
    if isinstance(message, Committed):
        return pack(wire.CollectorToWorker(committed=write_committed(message)))
    return pack(wire.CollectorToWorker(resume=wire.Resume(term=message.term, taken=i64(message.taken))))


def decode_to_worker(data: bytes, plan: JoinPlan) -> Resume | Committed:
    """The collector's message."""
    kind, message = chosen(parse(wire.CollectorToWorker, data))
    if kind == "committed":
        return read_committed(message, plan)
    return Resume(Term(number(message, "term")), vector(message, "taken", plan.partitions))


# --- collector and subscriber


def encode_from_subscriber(message: Subscribe | Grant) -> bytes:
    """The bytes of a subscriber's message."""
    if isinstance(message, Grant):
        return pack(wire.SubscriberToCollector(grant=wire.Grant(credit_deliveries=message.credit)))
    token = None if message.token is None else _write_token(message.token)
    subscribe = wire.Subscribe(token=token, credit_deliveries=message.credit, only_kept=message.only_kept)
    return pack(wire.SubscriberToCollector(subscribe=subscribe))


def decode_from_subscriber(data: bytes) -> Subscribe | Grant:
    """A subscriber's message, or a `BadMessage`."""
    try:
        kind, message = chosen(parse(wire.SubscriberToCollector, data))
        if kind == "grant":
            return Grant(number(message, "credit_deliveries", 1, _MAX_CREDIT))
        token = _read_token(message.token) if message.HasField("token") else None
        credit = maybe_number(message, "credit_deliveries", 1, _MAX_CREDIT)
        return Subscribe(token, credit, message.only_kept)
    except WireError as error:
        raise BadMessage.of(error) from error


def encode_to_subscriber(message: Delivery | TokenTooOld | Ended, plan: JoinPlan) -> bytes:
    """The bytes of the collector's message to any subscriber."""
    if isinstance(message, TokenTooOld):
        return pack(wire.CollectorToSubscriber(token_too_old=wire.TokenTooOld(oldest=_write_token(message.oldest))))
    if isinstance(message, Ended):
        schema_bytes = message.schema.serialize().to_pybytes()
        ended = wire.Ended(token=_write_token(message.token), arrow_schema=schema_bytes)
        return pack(wire.CollectorToSubscriber(ended=ended))
    out, schema = Outgoing(), plan.schema
    require(all(part.kind is Kind.RESULT for part in message.parts), "late rows on their way to a subscriber")
    delivery = wire.Delivery(
        token=_write_token(message.token),
        arrow_schema=schema.serialize().to_pybytes(),
        parts=[_write_part(part, schema, out) for part in message.parts],
    )
    return pack(wire.CollectorToSubscriber(delivery=delivery), out.bodies)


def decode_to_subscriber(data: bytes) -> Delivery | TokenTooOld | Ended:
    """The collector's message."""
    envelope, bodies = unpack(wire.CollectorToSubscriber, data)
    kind, message = chosen(envelope)
    if kind == "token_too_old":
        return TokenTooOld(_read_token(inner(message, "oldest")))
    try:
        schema = read_schema(message.arrow_schema)
    except BadMessage as error:
        raise WireError("Delivery.arrow_schema", error.found, error.wanted) from error
    if kind == "ended":
        return Ended(_read_token(inner(message, "token")), schema)
    parts = tuple(_read_part(one, Kind.RESULT, schema, _MAX_GROUPS, bodies) for one in message.parts)
    return Delivery(parts, _read_token(inner(message, "token")))


def _write_token(token: Token) -> wire.Token:
    return wire.Token(number=token.number, row=token.row)


def _read_token(message: wire.Token) -> Token:
    return Token(number(message, "number"), number(message, "row"))


# --- parts


def _write_part(part: ResultPart, schema: pa.Schema, out: Outgoing) -> wire.ResultPart:
    require(part.rows.schema.equals(schema), f"results of {part.rows.schema}, but the query has {schema}")
    return wire.ResultPart(
        kind=_TO_WIRE[part.kind],
        stream=part.stream,
        rows_body=out.add(part.rows.serialize()),
        groups_body=out.add(np.ascontiguousarray(part.groups, "<u2")),
        times_ns=write_column(part.times, out),
    )


def _read_parts(found: Iterable[wire.ResultPart], plan: JoinPlan, bodies: Incoming) -> tuple[ResultPart, ...]:
    schema, parts = plan.schema, []
    for one in found:
        kind = choice("ResultPart.kind", one.kind, _KINDS)
        if kind is Kind.LATE:
            schema_of_part = plan.formats[number(one, "stream", 0, plan.streams - 1)].schema
        else:
            schema_of_part = schema
        number(one, "stream", -1, plan.streams - 1)
        parts.append(_read_part(one, kind, schema_of_part, plan.partitions, bodies))
    return tuple(parts)


def _read_part(
    message: wire.ResultPart, kind: Kind, schema: pa.Schema, partitions: int, bodies: Incoming
) -> ResultPart:
    rows = read_rows("ResultPart.rows_body", bodies.get(message, "rows_body"), schema)
    size = rows.num_rows
    own = np.frombuffer(bodies.get(message, "groups_body", 2 * size), "<u2").astype(np.uint16)
    if size and int(own.max()) >= partitions:
        raise WireError("ResultPart.groups_body", f"group {own.max()}", f"groups below {partitions}")
    times = read_column(message, "times_ns", bodies, size)
    return ResultPart(kind, rows, own, times, number(message, "stream", -1, _MAX_STREAM), None, ())
