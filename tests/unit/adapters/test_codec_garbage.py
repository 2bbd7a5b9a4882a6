"""Whatever bytes come, a message or a clear refusal comes of them; the process lives."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.adapters.codec import BadMessage, WireError, ingest
from joinery.adapters.codec.columns import read_column, write_column
from joinery.adapters.codec.frames import ALIGNMENT, Outgoing, pack, unpack
from joinery.flow import ingest as reading
from joinery.machine import messages as m
from joinery.model.errors import BadBatch
from joinery.model.tuples import TupleBatch
from joinery.v1 import exchange_pb2, ingest_pb2
from tests.unit.adapters.wire_samples import DIRECTIONS, PLANS, Direction, JoinPlan, push

directions = pytest.mark.parametrize("direction", DIRECTIONS.values(), ids=DIRECTIONS.keys())
WIDE = PLANS["integer key"]
ODD = (0, 1, 255, 65536, 2**31 - 1, 2**31, 2**32 - 1)


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """The same bytes, cut, or with some of them changed; half the time near the beginning, where the numbers are."""
    bad = bytearray(data)
    if not bad or rng.random() < 0.1:
        return bytes(bad[: rng.integers(len(bad) + 1)])
    reach = len(bad) if rng.random() < 0.5 else min(len(bad), 600)
    if rng.random() < 0.3 and reach > 8:
        at = int(rng.integers(0, reach - 7)) & ~3
        bad[at : at + 4] = ODD[rng.integers(len(ODD))].to_bytes(4, "little")
    for _ in range(rng.integers(0, 5)):
        bad[rng.integers(reach)] = rng.integers(256)
    return bytes(bad)


def attempt(direction: Direction, data: bytes, plan: JoinPlan = WIDE) -> object:
    """The message, or the refusal; anything else is an error of the test."""
    try:
        return direction.decode(data, plan)
    except (WireError, BadMessage) as error:
        refused = error
    assert str(refused).isprintable()
    return refused


@directions
@settings(max_examples=200)
@given(data=st.binary(max_size=300))
def test_any_bytes_give_a_message_or_a_refusal(direction: Direction, data: bytes) -> None:
    attempt(direction, data)


@directions
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_a_damaged_message_gives_a_message_or_a_refusal(direction: Direction, plan: JoinPlan) -> None:
    rng = np.random.default_rng(11)
    refused = 0
    for round_ in range(60):
        data = direction.encode(direction.draw[round_ % len(direction.draw)](rng, plan), plan)
        refused += sum(isinstance(attempt(direction, damaged(data, rng), plan), Exception) for _ in range(6))
    assert refused > 0


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_a_damaged_batch_is_read_or_refused_but_never_breaks_the_gateway(plan: JoinPlan) -> None:
    rng = np.random.default_rng(12)
    taken = refused = 0
    for _ in range(300):
        data = ingest.encode_to_gateway(push(rng, plan))
        for _ in range(4):
            message = attempt(DIRECTIONS["producer to gateway"], damaged(data, rng))
            if isinstance(message, m.Push):
                try:
                    taken += isinstance(reading.read(plan.formats[0], message.rows, first_place=0), TupleBatch)
                except BadBatch:
                    refused += 1
    assert taken > 0
    assert refused > 0


# --- what the fuzzing found, one by one


def with_schema(schema: bytes, rows: pa.RecordBatch) -> bytes:
    envelope = ingest_pb2.ProducerToGateway.FromString(ingest.encode_to_gateway(m.Push(1, 2, 3, 4, rows)))
    envelope.push.arrow_schema = schema
    return bytes(envelope.SerializeToString())


def test_a_column_name_that_is_not_utf8_is_refused() -> None:
    rows = pa.RecordBatch.from_pydict({"name": pa.array([1])})
    schema = rows.schema.serialize().to_pybytes()
    assert 1 == schema.count(b"name")
    with pytest.raises(BadMessage, match="no schema"):
        ingest.decode_to_gateway(with_schema(schema.replace(b"name", b"n\xff\xfee"), rows))


def test_a_decimal_with_an_absurd_scale_is_refused_since_casting_it_ends_the_process() -> None:
    rows = pa.RecordBatch.from_pydict({"k": pa.array([1]).cast(pa.decimal128(25, 3))})
    schema = pa.schema([("k", pa.decimal128(25, -1000))]).serialize().to_pybytes()
    with pytest.raises(BadMessage, match="scale"):
        ingest.decode_to_gateway(with_schema(schema, rows))


def test_no_rows_without_buffers_are_no_rows() -> None:
    bare = pa.Array.from_buffers(pa.string(), 0, [None, pa.py_buffer(b""), pa.py_buffer(b"")])
    plan = PLANS["text key, arrival time"]
    columns = {field.name: bare if field.name == "k" else pa.array([], field.type) for field in plan.formats[0].schema}
    data = ingest.encode_to_gateway(m.Push(1, 2, 3, 4, pa.RecordBatch.from_pydict(columns)))
    message = ingest.decode_to_gateway(data)
    assert isinstance(message, m.Push)
    assert 0 == len(reading.read(plan.formats[0], message.rows, first_place=0))


# --- frames


@given(bodies=st.lists(st.binary(max_size=300), max_size=5), pad=st.integers(0, 40))
def test_bodies_come_as_they_went_and_lie_at_multiples_of_the_alignment(bodies: list[bytes], pad: int) -> None:
    envelope = exchange_pb2.GatewayToWorker(release=exchange_pb2.Release(groups=bytes(pad)))
    data = pack(envelope, bodies)
    header, came = unpack(exchange_pb2.GatewayToWorker, data)
    assert (envelope, bodies) == (header, [bytes(view) for view in came.views])
    start = pa.py_buffer(data).address
    assert [0] * len(bodies) == [
        (pa.py_buffer(view).address - start) % ALIGNMENT for view in came.views if len(view)
    ] + [0 for view in came.views if not len(view)]
    parsed = exchange_pb2.GatewayToWorker.FromString(data)
    assert bodies == list(parsed.bodies)


@pytest.mark.parametrize("shift", range(1, 8))
def test_a_body_that_lies_askew_is_copied_to_where_it_can_be_used(shift: int) -> None:
    body = np.arange(5)
    envelope = exchange_pb2.GatewayToWorker(release=exchange_pb2.Release(groups=bytes(shift)), bodies=[body.tobytes()])
    _, bodies = unpack(exchange_pb2.GatewayToWorker, envelope.SerializeToString())
    came = np.frombuffer(bodies.views[0], np.int64)
    assert (True, body.tolist()) == (came.flags.aligned, came.tolist())


EDGES = (0, 1, 2**16 - 1, 2**16, 2**16 + 1, 2**32 - 1, 2**32, 2**32 + 1, 2**62)


@pytest.mark.parametrize("span", EDGES)
@pytest.mark.parametrize("end", [-(2**63) + 2**62, 0, 2**62, 2**63 - 2, 2**63 - 1])
def test_numbers_at_the_edges_of_their_width_come_as_they_went(span: int, end: int) -> None:
    numbers = np.array([end, end - span, end - span // 2])
    out = Outgoing()
    envelope = exchange_pb2.GatewayToWorker(
        batch=exchange_pb2.Batch(streams=[exchange_pb2.StreamRows(places=write_column(numbers, out))])
    )
    header, bodies = unpack(exchange_pb2.GatewayToWorker, pack(envelope, out.bodies))
    came = read_column(header.batch.streams[0], "places", bodies, 3)
    assert numbers.tolist() == came.tolist()
    narrow = {0: 0} | dict.fromkeys((1, 2**16 - 1), 2) | dict.fromkeys((2**16, 2**16 + 1, 2**32 - 1), 4)
    if end <= 2**62:
        assert narrow.get(span, 8) == header.batch.streams[0].places.width_bytes


def test_fields_of_a_later_version_are_passed_over() -> None:
    later = bytes([31 << 3 & 0x7F | 0x80, 1]) + b"\x07" + bytes([30 << 3 & 0x7F | 1 | 0x80, 1]) + bytes(8)
    data = later + pack(exchange_pb2.GatewayToWorker(release=exchange_pb2.Release(term=5)), [b"body"]) + later
    header, bodies = unpack(exchange_pb2.GatewayToWorker, data)
    assert (5, [b"body"]) == (header.release.term, [bytes(view) for view in bodies.views])


@pytest.mark.parametrize(
    "data",
    [b"\x7a", b"\x7a\xff", b"\x7a\x05abcd", b"\x7b", b"\xff" * 11, b"\x7a" + b"\xff" * 9 + b"\x7f", b"\x09abc"],
    ids=repr,
)
def test_a_frame_that_ends_too_early_is_refused(data: bytes) -> None:
    with pytest.raises(WireError, match=r"found .+, wanted"):
        unpack(exchange_pb2.GatewayToWorker, data)


def test_a_frame_of_endless_fields_is_refused_soon() -> None:
    with pytest.raises(WireError, match="fields"):
        unpack(exchange_pb2.GatewayToWorker, b"\x72\x00" * 1_000_000)
