"""The wire of producer and gateway (ingest.proto).

A producer may send other column orders and types than the stream's, so its schema must be told. It goes with every
batch: the machine opens a session before it has seen a row, and nothing has to be remembered by either end of a
connection. That costs some hundred bytes and a few us, beside a batch that is worth sending (about 1 MB; an Arrow IPC
stream of its own, schema and rows, would take three times as long to write as rows alone). What the gateway cannot
read is a `BadMessage`: the shell answers with a `Refuse` of its `sequence`.
"""

from typing import Final

import pyarrow as pa

from joinery.adapters.codec import rows as arrow
from joinery.adapters.codec.errors import BadMessage, WireError
from joinery.adapters.codec.fields import LONGEST_TEXT, chosen, flag, maybe_number, number, text, texts
from joinery.adapters.codec.frames import Incoming, pack, parse, unpack
from joinery.machine.messages import Acknowledge, Describe, Description, Open, Opened, Push, Refuse
from joinery.model.ids import ProducerId, RecordNo, Term
from joinery.partition.format import StreamFormat
from joinery.partition.keys import KeyForm, canonical_type
from joinery.v1 import ingest_pb2 as wire

_NO_ROWS: Final = pa.RecordBatch.from_arrays([], names=[])
_MAX_STREAMS: Final = 1 << 16


def encode_to_gateway(message: Open | Push | Describe) -> bytes:
    """The bytes of a producer's message."""
    if isinstance(message, Describe):
        return pack(wire.ProducerToGateway(describe=wire.Describe()))
    if isinstance(message, Open):
        return pack(wire.ProducerToGateway(open=wire.Open(stream=message.stream, name=message.name)))
    push = wire.Push(
        session=message.session,
        sequence=message.sequence,
        next_sequence=message.next_sequence,
        checksum=message.checksum,
        end=message.end,
    )
    if message.end and message.rows.num_rows == 0:
        return pack(wire.ProducerToGateway(push=push))
    rows = arrow.plain(message.rows)
    push.arrow_schema = rows.schema.remove_metadata().serialize().to_pybytes()
    return pack(wire.ProducerToGateway(push=push), [rows.serialize()])


def decode_to_gateway(data: bytes) -> Open | Push | Describe:
    """A producer's message, or a `BadMessage`."""
    sequence = None
    try:
        envelope, bodies = unpack(wire.ProducerToGateway, data)
        kind, message = chosen(envelope)
        if kind == "describe":
            return Describe()
        if kind == "open":
            name = ProducerId(text(message, "name")) if message.HasField("name") else None
            return Open(number(message, "stream", 0, _MAX_STREAMS), name)
        sequence = number(message, "sequence")
        following = number(message, "next_sequence", sequence + 1)
        session, checksum, end = number(message, "session"), number(message, "checksum"), flag(message, "end")
    except WireError as error:
        raise BadMessage.of(error, sequence) from error
    return Push(session, sequence, following, checksum, _rows(message, bodies, sequence), end)


def _rows(message: wire.Push, bodies: Incoming, sequence: int) -> pa.RecordBatch:
    if message.end and not bodies.views:
        return _NO_ROWS
    if len(bodies.views) != 1:
        found = f"a batch with {len(bodies.views)} bodies"
        raise BadMessage(found, "one", "send the rows as the only body", sequence)
    if not message.HasField("arrow_schema"):
        remedy = "send the schema with every batch"
        raise BadMessage("rows without a schema", "the Arrow schema of the rows", remedy, sequence)
    try:
        schema = arrow.read_schema(message.arrow_schema)
        return arrow.read_foreign_rows(bodies.views[0], schema)
    except BadMessage as bad:
        raise BadMessage(bad.found, bad.wanted, bad.remedy, sequence) from bad


def encode_to_producer(message: Opened | Acknowledge | Refuse | Description) -> bytes:
    """The bytes of the gateway's answer."""
    match message:
        case Opened():
            opened = wire.Opened(
                term=message.term,
                producer=message.producer,
                session=message.session,
                expected_sequence=message.expected,
                ended=message.ended,
            )
            return pack(wire.GatewayToProducer(opened=opened))
        case Acknowledge():
            answer = wire.Acknowledge(sequence=message.sequence, record=message.record)
            return pack(wire.GatewayToProducer(acknowledge=answer))
        case Refuse():
            refuse = wire.Refuse(
                sequence=message.sequence, reason=message.reason[:LONGEST_TEXT], expected_sequence=message.expected
            )
            return pack(wire.GatewayToProducer(refuse=refuse))
        case Description():
            return pack(wire.GatewayToProducer(description=_write_description(message)))


def decode_to_producer(data: bytes) -> Opened | Acknowledge | Refuse | Description:
    """The gateway's answer."""
    kind, message = chosen(parse(wire.GatewayToProducer, data))
    match kind:
        case "opened":
            return Opened(
                Term(number(message, "term")),
                ProducerId(text(message, "producer")),
                number(message, "session"),
                maybe_number(message, "expected_sequence"),
                flag(message, "ended"),
            )
        case "acknowledge":
            record = maybe_number(message, "record")
            return Acknowledge(number(message, "sequence"), None if record is None else RecordNo(record))
        case "description":
            return _read_description(message)
        case _:
            return Refuse(
                maybe_number(message, "sequence"),
                text(message, "reason", LONGEST_TEXT),
                maybe_number(message, "expected_sequence"),
            )


# --- what a query wants


def _write_description(message: Description) -> wire.Description:
    return wire.Description(
        streams=[
            wire.StreamDescription(
                name=form.name,
                arrow_schema=form.schema.serialize().to_pybytes(),
                key_columns=form.key.columns,
                time_column=form.time_column,
                time_unit_ns=form.time_unit_ns,
            )
            for form in message.formats
        ],
        results_schema=message.results.serialize().to_pybytes(),
        results_address=message.results_address,
    )


def _read_description(message: wire.Description) -> Description:
    schemas = [_schema(one, "arrow_schema") for one in message.streams]
    keys = [texts(one, "key_columns") for one in message.streams]
    if not keys or any(len(names) != len(keys[0]) or not names for names in keys):
        raise WireError("Description.streams", f"{[len(names) for names in keys]} key columns", "as many in each")
    for schema, names in zip(schemas, keys, strict=True):
        if not set(names) <= set(schema.names):
            raise WireError("StreamDescription.key_columns", str(names), f"some of {schema.names}")
    kinds = [[schema.field(name).type for name in names] for schema, names in zip(schemas, keys, strict=True)]
    forms = tuple(canonical_type(column) for column in zip(*kinds, strict=True))
    return Description(
        tuple(
            StreamFormat(
                index,
                text(one, "name"),
                schema,
                KeyForm(one.name, names, forms),
                text(one, "time_column") if one.HasField("time_column") else None,
                number(one, "time_unit_ns", 1),
            )
            for index, (one, schema, names) in enumerate(zip(message.streams, schemas, keys, strict=True))
        ),
        _schema(message, "results_schema"),
        text(message, "results_address") if message.HasField("results_address") else None,
    )


def _schema(message: wire.Description | wire.StreamDescription, name: str) -> pa.Schema:
    try:
        return arrow.read_schema(getattr(message, name))
    except BadMessage as error:
        raise WireError(f"{message.DESCRIPTOR.name}.{name}", error.found, error.wanted) from error
