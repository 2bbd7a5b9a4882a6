"""Whatever a user writes, a query parses or is refused with complaints that help; nothing else ever happens."""

import copy
import random
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.model.errors import BadSpec
from joinery.model.spec import JoinQuery, JoinQuerySpec

VALID = """
apiVersion: joinery.dev/v1alpha1
kind: JoinQuery
metadata: {name: orders-fulfilments, labels: {team: a}}
spec:
  streams:
    - name: orders
      schema: {order_id: int64, cost: "decimal(10,2)", at: "timestamp(us, UTC)", ts: int64}
      window: 10m
      time: {column: ts, unit: us, lateness: 5s, idleTimeout: 30s}
      source: {file: {path: orders.parquet}, pace: none}
    - name: fulfilments
      schema: {order_id: int64, clerk_id: string, ts: int64}
      window: {count: 1000}
      source: {generator: {rate: 100, keys: {distribution: zipf, skew: 1.1}}}
  join:
    "on": [order_id]
    type: left
    where: "orders.cost > 10 and fulfilments.clerk_id like 'a%' or orders.at < timestamp '2024-01-01 00:00Z'"
  filter: "fulfilments.clerk_id is not null"
  select: ["orders.order_id as id", "fulfilments.clerk_id"]
  sinks: [{file: {path: results.parquet, volume: {claim: c}}}, {stdout: {}}]
  late: {sink: {redisStream: {key: late}}}
  alignment: 1h
  scaling: {mode: Auto, min: 1, max: 8, beta: 0.5, scaleUp: {stabilization: 10s}}
  worker: {buffer: 1Mi, speed: 1000, resources: {limits: {cpu: 500m}}}
"""
MAPPING = yaml.safe_load(VALID)
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2**64, 10**400, 1.5, 1e308, float("nan"), float("inf"), "", " ", "x", "on", "5s",
    "-5s", "unbounded", "64Mi", "orders", "orders.cost", "not (", "a.b = 'x", "\ud800", "\0", "x" * 5000, "int64",
    "decimal(5,9)", [], [[]], ["x"], [None], {}, {"x": 1}, {1: 2}, {None: None}, {"count": -1}, {"count": 2**40},
    {"file": {}}, {"orders": "order_id"}, {"\ud800\n": "\n"}, b"bytes", (1, 2), "orders.ts as a\nb", "two\nlines",
]  # fmt: skip


def test_the_query_that_is_mutated_below_is_valid() -> None:
    assert JoinQuery.parse_yaml(VALID) == JoinQuery.parse(MAPPING)


def outcome(parse: Any, raw: Any) -> str:
    """`parsed` or `refused`; everything else fails the test."""
    try:
        query = parse(raw)
    except BadSpec as refused:
        complaints = refused.complaints
    else:
        assert query == type(query).parse(query.to_dict())
        return "parsed"
    assert complaints
    for complaint in complaints:
        assert all([complaint.field, complaint.found, complaint.wanted, complaint.remedy]), complaint
        assert all(
            part.isprintable() for part in (complaint.field, complaint.found, complaint.wanted, complaint.remedy)
        ), complaint
        assert len(str(complaint)) < 2000, complaint
    return "refused"


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 4))
def test_a_text_with_random_damage_is_parsed_or_refused(seed: int, count: int) -> None:
    chance, text = random.Random(seed), VALID
    for _ in range(count):
        start = chance.randrange(len(text))
        stop = min(len(text), start + chance.choice([0, 1, 1, 2, 10, 60]))
        insert = chance.choice(
            [
                "",
                "",
                "\n",
                " ",
                ":",
                "- ",
                "[",
                "}",
                "'",
                '"',
                "&a ",
                "*a",
                "!!x ",
                "|",
                "#",
                "%",
                "\t",
                "é",
                "\0",
                "9" * 400,
            ]
        )
        text = text[:start] + insert + text[stop:]
    outcome(JoinQuery.parse_yaml, text)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    held = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in held for place in places(inner, (*path, key)))]


PLACES = places(MAPPING["spec"])[1:]


def reaches(holder: Any, step: Any) -> bool:
    inside = isinstance(holder, list) and isinstance(step, int) and step < len(holder)
    return inside or (isinstance(holder, dict) and step in holder)


def put(spec: Any, place: tuple[Any, ...], value: Any) -> None:
    """Set the value at a place, if other damage has left the place there."""
    for step in place[:-1]:
        if not reaches(spec, step):
            return
        spec = spec[step]
    if reaches(spec, place[-1]):
        spec[place[-1]] = value


@settings(max_examples=200, deadline=None)
@given(
    changes=st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(ODD)), min_size=1, max_size=5),
    extra=st.sampled_from(ODD),
)
def test_a_mapping_with_odd_values_is_parsed_or_refused(changes: list[tuple[tuple[Any, ...], Any]], extra: Any) -> None:
    spec = copy.deepcopy(MAPPING["spec"])
    for place, value in changes:
        put(spec, place, copy.deepcopy(value))
    if isinstance(extra, (str, int)):
        spec[extra] = extra
    outcome(JoinQuerySpec.parse, spec)


def test_every_field_takes_or_refuses_odd_values() -> None:
    outcomes = []
    for number, place in enumerate(PLACES):
        for value in ODD[number % 5 :: 5]:
            spec = copy.deepcopy(MAPPING["spec"])
            put(spec, place, copy.deepcopy(value))
            outcomes.append(outcome(JoinQuerySpec.parse, spec))
    assert outcomes.count("refused") > len(outcomes) // 2
    assert outcomes.count("parsed") > 0


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    assert "refused" == outcome(JoinQuery.parse_yaml, text)
