"""What is sent is what comes: every message of every conversation, there and back."""

import gc
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.adapters.codec import BadMessage, WireError, collect, exchange, ingest
from joinery.join.logic import WindowJoin
from joinery.join.results import Kind
from joinery.machine import messages as m
from joinery.model.errors import Bug, UserMustAct
from joinery.model.ids import MapVersion, ProducerId, RecordNo, Term
from joinery.v1 import collect_pb2, exchange_pb2, ingest_pb2
from joinery.window.sliding import Marks
from tests.unit.adapters import wire_samples as samples
from tests.unit.adapters.wire_samples import DIRECTIONS, PLANS, Direction, seen

directions = pytest.mark.parametrize("direction", DIRECTIONS.values(), ids=DIRECTIONS.keys())
plans = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
WIDE = samples.plan()


@directions
@plans
@given(seed=st.integers(0, 2**32))
def test_a_message_comes_as_it_was_sent(direction: Direction, plan: samples.JoinPlan, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for draw in direction.draw:
        message = draw(rng, plan)
        assert seen(message) == seen(direction.decode(direction.encode(message, plan), plan))


def test_every_message_of_the_machines_has_a_wire() -> None:
    rng = np.random.default_rng(0)
    drawn = {type(draw(rng, WIDE)) for direction in DIRECTIONS.values() for draw in direction.draw}
    assert set() == set(m.Message.__args__) - drawn


@directions
@plans
def test_what_is_on_the_wire_is_plain_protobuf(direction: Direction, plan: samples.JoinPlan) -> None:
    """Other languages read and write it with generated code alone, at the price of copies."""
    kinds = {
        "producer to gateway": ingest_pb2.ProducerToGateway, "gateway to worker": exchange_pb2.GatewayToWorker,
        "worker to collector": collect_pb2.WorkerToCollector,
        "collector to subscriber": collect_pb2.CollectorToSubscriber,
    }  # fmt: skip
    name = next(name for name, one in DIRECTIONS.items() if one is direction)
    for seed in range(20 if name in kinds else 0):
        rng = np.random.default_rng(seed)
        for draw in direction.draw:
            message = draw(rng, plan)
            envelope = kinds[name].FromString(direction.encode(message, plan))
            envelope.ClearField("padding")
            assert seen(message) == seen(direction.decode(envelope.SerializeToString(), plan))


def test_rows_are_read_where_they_lie_and_live_as_long_as_they_are_used() -> None:
    rng = np.random.default_rng(1)
    message = samples.exchanged(rng, WIDE, 300)
    data = exchange.encode_to_worker(message, WIDE)
    start, end = pa.py_buffer(data).address, pa.py_buffer(data).address + len(data)
    read = exchange.decode_to_worker(data, WIDE)
    assert isinstance(read, m.Exchange)
    for batch in read.batches:
        buffers = [buffer for column in batch.rows.columns for buffer in column.buffers() if buffer is not None]
        assert all(start <= buffer.address < end and buffer.address % 8 == 0 for buffer in buffers if buffer.size)
    del data
    gc.collect()
    assert [one.rows.to_pydict() for one in message.batches] == [one.rows.to_pydict() for one in read.batches]


@plans
def test_a_join_takes_what_came_as_it_takes_what_was_sent(plan: samples.JoinPlan) -> None:
    rng = np.random.default_rng(3)
    marks = Marks((0,) * plan.streams, (0,) * plan.streams if plan.runs_in_order else ())
    both: list[WindowJoin] = [WindowJoin(plan), WindowJoin(plan)]
    for _ in range(4):
        message = replace(samples.exchanged(rng, plan, 200), marks=marks)
        came = exchange.decode_to_worker(exchange.encode_to_worker(message, plan), plan)
        assert isinstance(came, m.Exchange)
        there, here = (
            [seen(part) for part in join.on_batch(one.batches, marks)]
            for join, one in zip(both, (message, came), strict=True)
        )
        assert there == here


@plans
def test_the_vectors_of_a_batch_are_of_the_kind_that_kernels_are_compiled_for(plan: samples.JoinPlan) -> None:
    message = samples.exchanged(np.random.default_rng(4), plan, 50)
    came = exchange.decode_to_worker(exchange.encode_to_worker(message, plan), plan)
    assert isinstance(came, m.Exchange)
    for batch in came.batches:
        orders = [] if batch.order is None else [batch.order.ranks, batch.order.counts]
        for vector in [batch.times, batch.hashes, batch.words, batch.places, *orders]:
            assert (True, True, True) == (vector.flags.writeable, vector.flags.aligned, vector.flags.c_contiguous)


def test_a_message_takes_of_the_buffer_what_its_sender_counted() -> None:
    rng = np.random.default_rng(2)
    texts = pa.array([f"text {at}" for at in range(900)]).take(pa.array(np.arange(900)))  # which makes a mask
    columns = samples.batch(rng, WIDE, 0, 900).rows
    at = columns.schema.get_field_index("s")
    rows = columns.set_column(at, columns.schema.field(at), texts)
    batch = replace(samples.batch(rng, WIDE, 0, 900), rows=rows)
    message = replace(samples.exchanged(rng, WIDE, 0), batches=(batch,))
    read = exchange.decode_to_worker(exchange.encode_to_worker(message, WIDE), WIDE)
    assert isinstance(read, m.Exchange)
    assert message.nbytes != sum(one.rows.nbytes for one in read.batches), "Arrow counts alike now: simplify the codec"
    assert message.nbytes == read.nbytes
    assert message.nbytes == replace(read, groups=read.groups).nbytes


# --- sizes


def sixty_four(rows: int, rng: np.random.Generator) -> tuple[samples.JoinPlan, samples.TupleBatch]:
    """Rows of 64 bytes as a gateway would send them, and their query."""
    schema = {"key": "int64", "ts": "int64", "payload": "binary(48)"}
    streams = [
        {"name": name, "schema": schema, "window": "10s", "time": {"column": "ts", "unit": "us"}} for name in "ab"
    ]
    spec = {"streams": streams, "join": {"on": ["key"]}}
    plan = samples.JoinPlan.of(samples.JoinQuerySpec.parse(spec))
    payload = pa.FixedSizeBinaryArray.from_buffers(pa.binary(48), rows, [None, pa.py_buffer(rng.bytes(48 * rows))])
    columns = {"key": rng.integers(0, 10**6, rows), "payload": payload, "ts": np.arange(rows) + 10**15}
    batch = samples.reading.read(plan.formats[0], pa.RecordBatch.from_pydict(columns), first_place=10**9)
    return plan, batch.take(rng.permutation(rows))


def test_what_travels_beside_the_rows_is_small() -> None:
    plan, batch = sixty_four(1 << 14, np.random.default_rng(0))
    own = np.arange(plan.partitions)
    message = m.Exchange(Term(1), MapVersion(1), own, own, RecordNo(9), Marks((0, 0)), (batch,), ())
    size = len(exchange.encode_to_worker(message, plan))
    assert batch.rows.nbytes <= size <= 1.06 * batch.rows.nbytes


def test_a_push_is_its_rows_and_a_few_hundred_bytes() -> None:
    _, batch = sixty_four(1 << 10, np.random.default_rng(0))
    size = len(ingest.encode_to_gateway(m.Push(1, 1, 2, 3, batch.rows)))
    assert batch.rows.nbytes <= size <= batch.rows.nbytes + 1000


# --- producers


def test_a_dictionary_is_sent_as_plain_values() -> None:
    rows = pa.RecordBatch.from_pydict({"s": pa.array(["x", "y", "x", None]).dictionary_encode(), "k": [1, 2, 3, 4]})
    read = ingest.decode_to_gateway(ingest.encode_to_gateway(m.Push(1, 2, 3, 4, rows)))
    assert isinstance(read, m.Push)
    assert {"s": ["x", "y", "x", None], "k": [1, 2, 3, 4]} == read.rows.to_pydict()


def pushed(rows: pa.RecordBatch, **changed: object) -> ingest_pb2.ProducerToGateway:
    envelope = ingest_pb2.ProducerToGateway.FromString(ingest.encode_to_gateway(m.Push(1, 7, 8, 4, rows)))
    for name, value in changed.items():
        envelope.push.ClearField(name) if value is None else setattr(envelope.push, name, value)
    return envelope


ROWS = pa.RecordBatch.from_pydict({"k": pa.array([1, 2]), "s": pa.array(["a", "bc"])})


def refused(envelope: ingest_pb2.ProducerToGateway) -> BadMessage:
    with pytest.raises(BadMessage) as caught:
        ingest.decode_to_gateway(envelope.SerializeToString())
    assert isinstance(caught.value, UserMustAct)
    return caught.value


@pytest.mark.parametrize("name", ["session", "next_sequence", "checksum", "end", "arrow_schema"])
def test_a_push_that_lacks_something_is_refused_by_its_sequence(name: str) -> None:
    bad = refused(pushed(ROWS, **{name: None}))
    assert 7 == bad.sequence


@pytest.mark.parametrize(
    ("name", "value"), [("session", -1), ("sequence", -1), ("next_sequence", 7), ("next_sequence", -5)]
)
def test_a_push_with_an_impossible_number_is_refused_and_the_number_named(name: str, value: int) -> None:
    assert f"{value} in Push.{name}" in str(refused(pushed(ROWS, **{name: value})))


def test_compressed_rows_are_refused() -> None:
    zeros = pa.RecordBatch.from_pydict({"k": pa.array(np.zeros(10_000, np.int64))})
    small = zeros.serialize()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, zeros.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(zeros)
    stream = pa.BufferReader(sink.getvalue())
    pa.ipc.read_message(stream)
    packed = pa.ipc.read_message(stream).serialize()
    assert packed.size < small.size / 50
    envelope = pushed(zeros)
    envelope.bodies[:] = [packed.to_pybytes()]
    assert "compressed buffers" == refused(envelope).found


def test_more_rows_than_a_batch_may_have_are_refused_before_they_are_read() -> None:
    nothing = pa.RecordBatch.from_arrays([pa.nulls((1 << 24) + 1)], ["k"])
    assert "rows" in refused(pushed(nothing)).found


def test_a_schema_with_a_dictionary_is_refused_with_the_remedy() -> None:
    schema = pa.schema([("k", pa.int64()), ("s", pa.dictionary(pa.int32(), pa.string()))])
    assert "decode" in refused(pushed(ROWS, arrow_schema=schema.serialize().to_pybytes())).remedy


def test_rows_of_another_schema_are_refused_or_seen_by_ingest() -> None:
    schema = pa.schema([("k", pa.int64()), ("s", pa.string()), ("t", pa.string()), ("u", pa.int64())])
    assert "fit" in refused(pushed(ROWS, arrow_schema=schema.serialize().to_pybytes())).found


@pytest.mark.parametrize("bodies", [[], [b"", b""], [ROWS.serialize().to_pybytes()] * 2])
def test_a_push_has_one_body(bodies: list[bytes]) -> None:
    envelope = pushed(ROWS)
    envelope.bodies[:] = bodies
    assert "bodies" in refused(envelope).found


@pytest.mark.parametrize("stream", [None, 1 << 20])
def test_an_open_names_a_stream(stream: int | None) -> None:
    refused(ingest_pb2.ProducerToGateway(open=ingest_pb2.Open(stream=stream)))


def test_a_producer_without_a_name_differs_from_one_with_an_empty_name() -> None:
    assert m.Open(1, None) == ingest.decode_to_gateway(ingest.encode_to_gateway(m.Open(1, None)))
    refused(ingest_pb2.ProducerToGateway(open=ingest_pb2.Open(stream=1, name="")))
    assert m.Open(1, ProducerId("p")) == ingest.decode_to_gateway(ingest.encode_to_gateway(m.Open(1, ProducerId("p"))))


# --- our own parts


def test_late_rows_do_not_go_to_subscribers() -> None:
    late = samples.part(np.random.default_rng(0), WIDE, Kind.LATE, 3)
    with pytest.raises(Bug):
        collect.encode_to_subscriber(m.Delivery((late,), m.Token(1, 0)), WIDE)


def test_rows_of_another_schema_are_not_sent() -> None:
    rng = np.random.default_rng(0)
    message = samples.exchanged(rng, WIDE, 3)
    with pytest.raises(Bug):
        exchange.encode_to_worker(message, PLANS["text key, arrival time"])


def changed(name: str, value: object) -> bytes:
    """A batch in which one field is missing or other than it should be."""
    data = exchange.encode_to_worker(samples.exchanged(np.random.default_rng(5), WIDE, 20), WIDE)
    envelope = exchange_pb2.GatewayToWorker.FromString(data)
    *path, last = name.split(".")
    message = envelope.batch
    for step in path:
        message = message.streams[0] if step == "streams" else getattr(message, step)
    message.ClearField(last) if value is None else setattr(message, last, value)
    return bytes(envelope.SerializeToString())


MISSING = [
    "term", "map_version", "groups", "after", "upto", "marks", "credit_bytes", "marks.watermarks_ns", "streams.stream",
    "streams.rows_body", "streams.places", "streams.places.base", "streams.places.width_bytes",
    "streams.places.numbers_body",
]  # fmt: skip


@pytest.mark.parametrize("name", MISSING)
def test_a_batch_that_lacks_something_is_refused_with_its_name(name: str) -> None:
    with pytest.raises(WireError, match=name.rpartition(".")[2]):
        exchange.decode_to_worker(changed(name, None), WIDE)


WRONG: list[tuple[str, object]] = [
    ("term", -1), ("map_version", -1), ("upto", -1), ("credit_bytes", -1), ("streams.stream", 2),
    ("groups", b"1234567"), ("groups", np.array([3, 2]).tobytes()), ("groups", np.array([2, 2]).tobytes()),
    ("groups", np.array([12]).tobytes()), ("groups", np.array([-1]).tobytes()), ("after", bytes(8 * 100)),
    ("after", b"x"), ("streams.rows_body", 99), ("streams.rows_body", 1), ("streams.places.numbers_body", 0),
    ("streams.places.width_bytes", 3), ("streams.places.width_bytes", 8), ("streams.places.width_bytes", 80),
    ("streams.places.base", 2**63 - 1), ("streams.late_bits_body", 0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG, ids=str)
def test_a_batch_with_something_wrong_is_refused_and_says_found_and_wanted(name: str, value: object) -> None:
    with pytest.raises(WireError, match=r"found .+, wanted .+; run the same version"):
        exchange.decode_to_worker(changed(name, value), WIDE)


def test_a_batch_of_another_query_is_refused() -> None:
    data = exchange.encode_to_worker(samples.exchanged(np.random.default_rng(5), WIDE, 20), WIDE)
    with pytest.raises(WireError):
        exchange.decode_to_worker(data, PLANS["text key, arrival time"])
    with pytest.raises(WireError):
        exchange.decode_to_worker(data, PLANS["count windows"])


def test_results_of_a_group_that_is_not_there_are_refused() -> None:
    rng = np.random.default_rng(5)
    part = replace(samples.part(rng, WIDE, Kind.RESULT, 3), groups=np.array([0, 12, 1], np.uint16))
    message = replace(samples.results(rng, WIDE), parts=(part,))
    with pytest.raises(WireError, match="group 12"):
        collect.decode_to_collector(collect.encode_to_collector(message, WIDE), WIDE)


def test_an_envelope_without_a_message_is_refused() -> None:
    for name, direction in DIRECTIONS.items():
        with pytest.raises((WireError, BadMessage), match="no message"):
            direction.decode(b"", WIDE)
        with pytest.raises((WireError, BadMessage)):
            direction.decode(b"\xfa\x07\x00", WIDE)  # a field of a later version, where the message should be
        assert name
