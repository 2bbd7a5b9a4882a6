"""Keys whose hashes collide: only the real keys decide. The hash is made so poor that most keys share it.

With every hash 0 all rows lie in one group and one bucket, and nothing but the comparison of the key columns keeps
them apart; it is also what a row without a key has, so such rows must be kept apart by their flag alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joinery.join import logic
from joinery.join.logic import WindowJoin
from joinery.join.plan import JoinPlan
from joinery.partition import hashing
from tests.oracle import naive
from tests.oracle.compare import compare
from tests.oracle.history import History, prefix
from tests.oracle.keys import KEY_KINDS
from tests.oracle.strategies import TYPES, histories, questions
from tests.support.driving import Outcome, run, spec_of
from tests.support.queries import ENDED, joined, plan_of, read

METHODS = ("hash", "nested-loop")
HASHED = tuple(kind for kind in KEY_KINDS if kind.name in ("string", "composite", "decimal", "binary"))
MASKS = (0, 1, 1 << 63, (1 << 63) | 1)
"""What is left of a hash: nothing, a bit of the directory, a bit of the partition, both."""
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@contextmanager
def poor_hashes(mask: int) -> Iterator[None]:
    combine = hashing.combine
    with mock.patch.object(hashing, "combine", lambda hashes: combine(hashes) & np.uint64(mask)):
        yield


def everything_equal(left: list[object], right: list[object]) -> np.ndarray:
    del right
    return np.ones(len(left[0]), np.bool_)  # type: ignore[arg-type]


def compared(history: History, outcome: Outcome) -> str:
    known = prefix(history)
    truth = naive.join(history.question, known.rows, known.changes, known.final)
    return str(compare(outcome.results, naive.filtered(history.question, known.rows, truth)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("type_", TYPES)
@QUICK
@given(data=st.data(), mask=st.sampled_from(MASKS), theta=st.sampled_from((None, 200)), each=st.booleans())
def test_results_are_exact_whatever_the_hash_is_worth(
    method: str, type_: str, data: st.DataObject, mask: int, theta: int | None, each: bool
) -> None:
    history = data.draw(histories(questions(types=(type_,), key_kinds=HASHED)))
    plan = JoinPlan.of(spec_of(history, join__method=method, partitions=3))
    with poor_hashes(mask):
        outcome = run(history, replace(plan, theta_bytes=theta, block_bytes=100), range(1000) if each else ())
    assert "missing 0, extra 0, duplicate 0" == compared(history, outcome)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("schema", "on", "mine", "yours"),
    [
        ({"k": "string"}, ["k"], {"k": ["x", "y"]}, {"k": ["y", "z"]}),
        ({"k": "binary"}, ["k"], {"k": [b"", b"\0"]}, {"k": [b"\0", b"\0\0"]}),
        ({"k": "binary(2)"}, ["k"], {"k": [b"aa", b"ab"]}, {"k": [b"ab", b"ba"]}),
        ({"k": "decimal(10,2)"}, ["k"], {"k": [1, 2]}, {"k": [2, 3]}),
        ({"k": "int64", "j": "bool"}, ["k", "j"], {"k": [1, 1], "j": [True, False]}, {"k": [1, 2], "j": [False, True]}),
    ],
    ids=["string", "binary", "binary(2)", "decimal", "composite"],
)
def test_two_keys_of_one_hash_meet_only_themselves(
    method: str, schema: dict[str, str], on: list[str], mine: dict[str, list], yours: dict[str, list]
) -> None:
    plan = plan_of(schema, on, method=method)
    with poor_hashes(0):
        batches = read(plan, 0, ts=[1, 1], **mine), read(plan, 1, ts=[1, 1], **yours)
        assert [(1, 0)] == joined(WindowJoin(plan), *batches, marks=(0, 0))
        with mock.patch.object(logic, "equal_keys", everything_equal):
            every = [(0, 0), (0, 1), (1, 0), (1, 1)]
            assert every == joined(WindowJoin(plan), *batches, marks=(0, 0)), "without the proof this test must fail"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("type_", ["left", "full", "semi", "anti"])
def test_a_colliding_key_is_no_match_of_an_outer_row(method: str, type_: str) -> None:
    plan = plan_of({"k": "string"}, method=method, type=type_)
    wanted = {"left": [(0, None)], "full": [(None, 0), (0, None)], "semi": [], "anti": [(0, None)]}[type_]
    with poor_hashes(0):
        join = WindowJoin(plan)
        found = joined(join, read(plan, 0, k=["x"], ts=[1]), read(plan, 1, k=["y"], ts=[1]), marks=(0, 0))
        assert wanted == found + joined(join, marks=ENDED)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("schema", [{"k": "int64"}, {"k": "string"}], ids=["int64", "string"])
@pytest.mark.parametrize("type_", ["left", "right", "full", "anti"])
def test_a_row_without_a_key_is_never_found_even_where_a_key_has_its_bits(
    method: str, schema: dict[str, str], type_: str
) -> None:
    key = 0 if schema["k"] == "int64" else "zero"
    plan = plan_of(schema, method=method, type=type_)
    with poor_hashes(0):
        for first, second in ((0, 1), (1, 0)):
            join = WindowJoin(plan)
            assert [] == joined(join, read(plan, first, k=[None, None], ts=[1, 1]), marks=(0, 0))
            assert [] == joined(join, read(plan, second, k=[key, None], ts=[1, 1]), marks=(0, 0))
            kept = [[(0, None), (1, None)], [(None, 0), (None, 1)]]
            wanted = {"left": kept[0], "right": kept[1], "full": kept[1] + kept[0], "anti": kept[0]}[type_]
            assert wanted == joined(join, marks=ENDED)


@pytest.mark.parametrize("method", METHODS)
def test_the_property_fails_without_the_comparison_of_keys(method: str) -> None:
    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(history=histories(questions(types=("inner",), counts=(2,), key_kinds=HASHED, kinds=("unbounded",))))
    def holds(history: History) -> None:
        wrong.append("missing 0, extra 0, duplicate 0" != compared(history, run(history, plan(history), ())))

    def plan(history: History) -> JoinPlan:
        return JoinPlan.of(spec_of(history, join__method=method))

    wrong: list[bool] = []
    with poor_hashes(0), mock.patch.object(logic, "equal_keys", everything_equal):
        holds()
    assert any(wrong)
