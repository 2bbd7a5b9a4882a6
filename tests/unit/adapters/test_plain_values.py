"""Facts written down and read again are what they were, down to the bytes that machines count."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from joinery.adapters.plain_values import Blobs, Sums, decode, encode
from joinery.join.results import Kind
from joinery.machine.facts import Appended, GatewayOpened
from joinery.machine.intake import first_head
from joinery.model.errors import Bug
from joinery.model.ids import RecordNo, Term
from tests.unit.adapters.wire_samples import DIRECTIONS, PLANS, seen
from tests.unit.machine.building import spec_of


def again(value: Any) -> Any:
    blobs = Blobs()
    return decode(json.loads(json.dumps(encode(value, blobs))), blobs.data)


@pytest.mark.parametrize(
    "value", [None, True, 3, 2.5, "text", b"\x00\xff", (1, (2,)), [1, 2], {(0, "a"): 1}, Kind.LATE]
)
def test_plain_values_come_back(value: Any) -> None:
    assert (type(value), value) == (type(again(value)), again(value))


@pytest.mark.parametrize("name", [name for name in DIRECTIONS if "attendant" in name or "worker" in name])
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_every_message_comes_back(name: str, plan: Any) -> None:
    rng = np.random.default_rng(1)
    for draw in DIRECTIONS[name].draw:
        message = draw(rng, plan)
        assert seen(message) == seen(again(message))


def test_facts_of_stores_come_back() -> None:
    head = first_head(spec_of())
    opened = again(GatewayOpened(Term(3), head, (), None))
    assert (GatewayOpened(Term(3), head, (), None), Appended(RecordNo(4))) == (opened, again(Appended(RecordNo(4))))


@pytest.mark.parametrize("length", [23, 1, 0])
@pytest.mark.parametrize("start", range(10))
@pytest.mark.parametrize("column", ["int64", "string", "bool"])
@pytest.mark.parametrize("nulls", ["none", "mask", "some"])
def test_rows_take_as_many_bytes_as_they_did(start: int, length: int, column: str, nulls: str) -> None:
    values = {
        "int64": range(40),
        "string": [f"text {n}" * (n % 3) for n in range(40)],
        "bool": [n % 3 == 0 for n in range(40)],
    }
    given = pa.array([None if nulls == "some" and n % 7 == 0 else v for n, v in enumerate(values[column])], column)
    if nulls == "mask":
        given = pa.Array.from_buffers(given.type, 40, [pa.py_buffer(b"\xff" * 5), *given.buffers()[1:]], -1)
    rows = pa.RecordBatch.from_arrays([given], names=["x"]).slice(start, length)
    back = again(rows)
    assert (rows.nbytes, rows.to_pylist()) == (back.nbytes, back.to_pylist())


def test_what_cannot_be_written_down_is_refused_in_a_fact_and_named_in_an_order() -> None:
    with pytest.raises(Bug, match="cannot be written down"):
        encode(object(), Blobs())
    assert {"$unknown": "object"} == encode(object(), Sums())


def test_a_type_that_is_not_ours_is_never_made() -> None:
    with pytest.raises(Bug, match="wanted one of ours"):
        decode({"$type": "subprocess:Popen", "fields": {"args": "true"}}, [])


def test_orders_differ_if_one_value_in_a_row_or_a_vector_does() -> None:
    one, other = (pa.RecordBatch.from_pydict({"x": [1, last]}) for last in (2, 3))
    assert encode(one, Sums()) != encode(other, Sums())
    assert encode(np.array([1, 2]), Sums()) != encode(np.array([1, 3]), Sums())
    assert encode(one, Sums()) == encode(again(one), Sums())
