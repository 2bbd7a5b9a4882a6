import copy
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.model.errors import BadSpec, Complaint
from joinery.model.quantities import CountWindow, TimeWindow
from joinery.model.select import SelectItem
from joinery.model.spec import JoinQuery, JoinQuerySpec
from joinery.model.spec_complaints import NOT_YET
from joinery.model.spec_fields import Section
from joinery.model.spec_lookup import field_names, section_at
from joinery.model.spec_parsing import parse_section
from joinery.model.time import UNBOUNDED
from joinery.model.yaml_text import load_yaml

REDIS_IN = {"redisStream": {"key": "x"}}
REDIS_LATE = {"redisStream": {"key": "x-orders"}}
DESIGN = """
apiVersion: joinery.dev/v1alpha1
kind: JoinQuery
metadata: {name: orders-fulfilments}
spec:
  streams:
    - name: orders
      schema: {order_id: int64, customer_id: int64, cost: float64, ts: int64}
      window: 10m
      time: {column: ts, unit: us, lateness: 5s, idleTimeout: 30s}
      source: {file: {path: orders.parquet}, pace: none}
    - name: fulfilments
      schema: {order_id: int64, clerk_id: string, ts: int64}
      window: 12h
      time: {column: ts, unit: us, lateness: 5s}
      source: {file: {path: fulfilments.parquet}}
  join:
    on: [order_id]
    type: inner
    where: "orders.cost > 10"
    method: hash
  filter: "fulfilments.clerk_id is not null"
  select: ["orders.order_id as id", "fulfilments.clerk_id"]
  sinks: [{file: {path: results.parquet}}]
  late: {sink: {file: {path: late.parquet}}}
  output: {order: none, disorder: 0}
  results: {retain: 64Mi}
  alignment: auto
  epochs: {distribution: auto, reorganization: 2s, subgroups: 2}
  partitions: 60
  replicas: 1
  scaling: {mode: Auto, rule: guarded, min: 1, max: 8, beta: 0.5, supplierThreshold: 0.5, consumerThreshold: 0.01,
            minSuppliers: 1, step: 1, target: 0.8, maxParallelMoves: 8, scaleUp: {stabilization: 10s},
            scaleDown: {stabilization: 60s}}
  worker: {buffer: 1Mi, memory: 2Gi, speed: unlimited, resources: {}}
  fineTuning: {enabled: true, theta: 1.5Mi, block: 4Ki}
  checkpoint: {interval: 2s, durability: wal}
  redis: {url: "", secretName: ""}
  engine: service
"""
SMALLEST: dict[str, Any] = {
    "streams": [
        {"name": "orders", "schema": {"id": "int64", "cost": "float64", "ts": "int64"}, "window": "10m"},
        {"name": "fulfilments", "schema": {"id": "int64", "clerk": "string", "day": "date"}, "window": "12h"},
    ],
    "join": {"on": ["id"]},
}


TIME = {"column": "ts", "unit": "s"}
SKEWED = {"skew": 2}


def with_(**changes: Any) -> dict[str, Any]:
    """The smallest spec with values put at paths: `streams_0_window="5s"`; None takes a field out."""
    spec = copy.deepcopy(SMALLEST)
    for path, value in changes.items():
        *steps, last = path.split("__")
        holder: Any = spec
        for step in steps:
            holder = holder[int(step)] if step.isdigit() else holder.setdefault(step, {})
        if value is None:
            del holder[last]
        else:
            holder[last] = value
    return spec


def complaints(raw: object) -> tuple[Complaint, ...]:
    with pytest.raises(BadSpec) as refused:
        JoinQuerySpec.parse(raw)
    assert all(part for complaint in refused.value.complaints for part in (complaint.field, complaint.found))
    assert all(part for complaint in refused.value.complaints for part in (complaint.wanted, complaint.remedy))
    return refused.value.complaints


def fields(raw: object) -> list[str]:
    return [complaint.field for complaint in complaints(raw)]


def yaml_complaint(text: str) -> Complaint:
    with pytest.raises(BadSpec) as refused:
        JoinQuery.parse_yaml(text)
    (complaint,) = refused.value.complaints
    assert all([complaint.field, complaint.found, complaint.wanted, complaint.remedy])
    return complaint


# -- what a spec says -----------------------------------------------------------------------------------------------


def test_the_query_of_the_design_parses_and_its_values_are_the_defaults() -> None:
    spec = JoinQuery.parse_yaml(DESIGN).spec
    plain = JoinQuerySpec.parse(SMALLEST)
    sections = [
        "output",
        "results",
        "alignment",
        "epochs",
        "partitions",
        "replicas",
        "scaling",
        "worker",
        "fine_tuning",
    ]
    for section in [*sections, "checkpoint", "redis", "engine"]:
        assert getattr(plain, section) == getattr(spec, section)


def test_a_spec_answers_what_the_join_asks() -> None:
    spec = JoinQuery.parse_yaml(DESIGN).spec
    orders = spec.streams[0]
    assert "orders" == orders.name
    assert ["cost", "customer_id", "order_id", "ts"] == [name for name, _ in orders.columns]
    assert ["order_id"] == orders.key_columns(spec.join)
    assert TimeWindow(600_000_000_000) == orders.window
    assert ("inner", "orders.cost > 10", "hash") == (spec.join.type, spec.join.where, spec.join.method)
    assert 5_000_000_000 == orders.lateness
    assert (30_000_000_000, None) == (orders.idle_timeout, spec.streams[1].idle_timeout)
    assert 12 * 3600 * 10**9 + 5 * 10**9 == spec.alignment_ns
    assert (0, 1) == (spec.index_of("orders"), spec.index_of("fulfilments"))
    assert (1_572_864, 4096, 2**20, 2**31) == (
        spec.fine_tuning.theta, spec.fine_tuning.block, spec.worker.buffer, spec.worker.memory,
    )  # fmt: skip


def test_results_hold_every_column_in_the_order_of_streams_and_names() -> None:
    names = [item.name for item in JoinQuerySpec.parse(SMALLEST).result_columns]
    expected = ["orders_cost", "orders_id", "orders_ts", "fulfilments_clerk", "fulfilments_day", "fulfilments_id"]
    assert expected == names


def test_select_chooses_renames_and_orders() -> None:
    spec = JoinQuerySpec.parse(with_(select=["fulfilments.clerk as who", "orders.id"]))
    assert (SelectItem("fulfilments", "clerk", "who"), SelectItem("orders", "id", "orders_id")) == spec.result_columns


@pytest.mark.parametrize("kind", ["semi", "anti"])
def test_results_of_semi_and_anti_joins_hold_the_first_stream_alone(kind: str) -> None:
    spec = JoinQuerySpec.parse(with_(join__type=kind, join__where="orders.cost > 1 and fulfilments.clerk = 'x'"))
    assert {"orders"} == {item.stream for item in spec.result_columns}
    assert ["spec.filter"] == fields(with_(join__type=kind, filter="fulfilments.clerk = 'x'"))
    assert ["spec.select[0]"] == fields(with_(join__type=kind, select=["fulfilments.clerk"]))


def test_windows_may_be_counts_and_unbounded() -> None:
    spec = JoinQuerySpec.parse(with_(streams__0__window={"count": 5}, streams__1__window="unbounded"))
    assert CountWindow(5) == spec.streams[0].window
    assert spec.has_count_window
    assert UNBOUNDED == spec.alignment_ns
    assert not JoinQuerySpec.parse(SMALLEST).has_count_window


def test_keys_with_different_names_are_mapped_by_stream() -> None:
    changes = {
        "streams__1__schema": {"order_id": "int32", "part": "string"},
        "streams__0__schema": {"id": "int64", "p": "string"},
    }
    mapped = JoinQuerySpec.parse(with_(join__on={"orders": "id", "fulfilments": "order_id"}, **changes))
    composite = [{"orders": "id", "fulfilments": "order_id"}, {"orders": "p", "fulfilments": "part"}]
    both = JoinQuerySpec.parse(with_(join__on=composite, **changes))
    assert [["id"], ["order_id"]] == [stream.key_columns(mapped.join) for stream in mapped.streams]
    assert [["id", "p"], ["order_id", "part"]] == [stream.key_columns(both.join) for stream in both.streams]


def test_the_key_that_yaml_1_1_reads_for_on_is_understood() -> None:
    assert JoinQuerySpec.parse(SMALLEST) == JoinQuerySpec.parse(with_(join={True: ["id"]}))
    assert JoinQuerySpec.parse(SMALLEST) == JoinQuerySpec.parse(with_(join={"true": ["id"]}))


def test_an_empty_field_counts_as_left_out() -> None:
    text = DESIGN.replace("scaling: {mode: Auto", "scaling: {mode: ").replace("engine: service", "engine:")
    assert JoinQuery.parse_yaml(DESIGN) == JoinQuery.parse_yaml(text)
    assert JoinQuerySpec.parse(with_(sinks=[{"stdout": {}}])) == JoinQuerySpec.parse(with_(sinks=[{"stdout": None}]))


def test_silence_ends_a_pushing_producer_after_30s_and_a_source_never() -> None:
    time = {"column": "ts", "unit": "ms"}
    pushed = JoinQuerySpec.parse(with_(streams__0__time=time)).streams[0]
    never = JoinQuerySpec.parse(with_(streams__0__time={**time, "idleTimeout": "never"})).streams[0]
    read = JoinQuerySpec.parse(with_(streams__0__time=time, streams__0__source={"generator": {}})).streams[0]
    assert [30_000_000_000, None, None] == [pushed.idle_timeout, never.idle_timeout, read.idle_timeout]


def test_a_spec_is_frozen_and_can_be_a_key() -> None:
    spec = JoinQuerySpec.parse(SMALLEST)
    assert 1 == len({spec, JoinQuerySpec.parse(SMALLEST)})
    with pytest.raises(ValueError, match="frozen"):
        spec.partitions = 5  # type: ignore[misc]


def test_an_object_of_a_cluster_parses_with_what_the_api_server_added() -> None:
    query = JoinQuery.parse_yaml(DESIGN).to_dict()
    query["metadata"] |= {"uid": "1-2", "resourceVersion": "7", "managedFields": [{}], "labels": {"team": "a"}}
    parsed = JoinQuery.parse({**query, "status": {"replicas": 2}})
    assert (("team", "a"),) == parsed.metadata.labels
    assert JoinQuery.parse_yaml(DESIGN).spec == parsed.spec


# -- written out and read again -------------------------------------------------------------------------------------

COLUMN_TYPES = ["int8", "uint64", "string", "binary", "binary(3)", "bool", "date", "timestamp(ms)", "decimal(9,2)"]


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    key, others = (
        draw(st.sampled_from(COLUMN_TYPES)),
        st.dictionaries(st.sampled_from("abcd"), st.sampled_from(COLUMN_TYPES)),
    )
    window = st.one_of(
        st.integers(0, 2**62 - 1).map(lambda ns: f"{ns}ns"),
        st.integers(1, 2**31).map(lambda n: {"count": n}),
        st.just("unbounded"),
    )
    streams = [
        {
            "name": f"s{place}",
            "schema": {**draw(others), "k": key, "t": "int64", "odd name": "string"},
            "window": draw(window),
        }
        for place in range(draw(st.integers(2, 4)))
    ]
    for stream in streams:
        if draw(st.booleans()):
            lateness = draw(st.integers(0, 10**12))
            stream["time"] = {
                "column": "t",
                "unit": draw(st.sampled_from(["s", "ms", "us", "ns"])),
                "lateness": f"{lateness}us",
            }
    low = draw(st.floats(0, 0.4))
    return {
        "streams": streams,
        "join": {"on": ["k"], "where": "s0.t < s1.t", "method": draw(st.sampled_from(["hash", "nested-loop"]))},
        "select": ["s1.t", 's0."odd name" as "x y"'] if draw(st.booleans()) else None,
        "sinks": draw(
            st.lists(st.sampled_from([{"stdout": {}}, {"count": {}}, {"redisStream": {"key": "r"}}]), max_size=3)
        ),
        "partitions": draw(st.integers(1, 4096)),
        "scaling": {"beta": draw(st.floats(0.01, 0.99)), "consumerThreshold": low, "supplierThreshold": low + 0.5},
        "results": {"retain": f"{draw(st.integers(1, 2**40))}k"},
        "worker": {"speed": draw(st.floats(1, 1e9)), "resources": {"limits": {"cpu": draw(st.integers(1, 9))}}},
        "epochs": {"distribution": f"{draw(st.integers(1, 10**9))}ns"},
    }


@settings(max_examples=60, deadline=None)
@given(raw=specs())
def test_a_spec_written_out_is_read_back_the_same(raw: dict[str, Any]) -> None:
    spec = JoinQuerySpec.parse(raw)
    assert spec == JoinQuerySpec.parse(json.loads(json.dumps(spec.to_dict())))


def test_the_json_schema_describes_every_field() -> None:
    schema = JoinQuerySpec.model_json_schema(by_alias=True)
    sections = [schema, *schema["$defs"].values()]
    held = [(name, field) for section in sections for name, field in section.get("properties", {}).items()]
    assert not [name for name, field in held if not field.get("description") and "$ref" not in field]
    assert {"fineTuning", "streams", "join"} <= schema["properties"].keys()
    assert ["streams", "join"] == schema["required"]
    assert "2s" == schema["$defs"]["CheckpointSpec"]["properties"]["interval"]["default"]


# -- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "field", "part"),
    [
        ({"streams__0__window": 5}, "spec.streams[0].window", "add the unit: 5s"),
        ({"streams__1__window": "-5s"}, "spec.streams[1].window", "cannot be negative"),
        ({"streams__0__window": {"count": 0}}, "spec.streams[0].window", "{count: 1000}"),
        ({"streams__0__window": None}, "spec.streams[0].window", "add window: 10m"),
        ({"streams__0__name": "my orders"}, "spec.streams[0].name", "letters, digits and _"),
        ({"streams__1__name": "orders"}, "spec.streams[1].name", "rename one"),
        ({"streams__0__schema": {}}, "spec.streams[0].schema", "at least 1"),
        ({"streams__0__schema": ["id"]}, "spec.streams[0].schema", "a mapping"),
        ({"streams__0__schema__id": "double"}, "spec.streams[0].schema.id", "write float64"),
        ({"streams__0__schema": {"id": "int64", " x": "int8"}}, "spec.streams[0].schema. x", "rename"),
        ({"streams__0__schema": {"id": "int64", 5: "int8"}}, "spec.streams[0].schema[5]", "quote it"),
        ({"streams__0__time": {"column": "tss", "unit": "s"}}, "spec.streams[0].time.column", "did you mean ts?"),
        ({"streams__0__time": {"column": "ts"}}, "spec.streams[0].time.unit", "add unit"),
        ({"streams__0__time": {"column": "cost", "unit": "s"}}, "spec.streams[0].time.column", "int64 with a unit"),
        ({"streams__1__time": {"column": "day", "unit": "s"}}, "spec.streams[1].time.column", "arrival time"),
        ({"streams__0__time": {"unit": "s"}}, "spec.streams[0].time.column", "add column: ts"),
        ({"streams__0__time": {"column": "ts", "unit": "m"}}, "spec.streams[0].time.unit", "s, ms, us"),
        ({"streams__0__time": {**TIME, "idleTimeout": "0s"}}, "spec.streams[0].time.idleTimeout", "longer than 0s"),
        ({"streams__0__source": {}}, "spec.streams[0].source", "exactly one of file, redisStream, generator"),
        ({"streams__0__source": {"redisStream": {"key": "x"}, "generator": {}}}, "spec.streams[0].source", " and "),
        ({"streams__0__source": {"kafka": {"topic": "x"}}}, "spec.streams[0].source.kafka", "not yet"),
        ({"streams__0__source": {"file": {"path": ""}}}, "spec.streams[0].source.file.path", "at least 1 character"),
        ({"streams__0__source": {"generator": {"rate": 0}}}, "spec.streams[0].source.generator.rate", "more than 0"),
        ({"streams__0__source": {"generator": {"keys": SKEWED}}}, "spec.streams[0].source.generator.keys", "skew: 0.7"),
        ({"sinks": [{"file": {"path": "."}}]}, "spec.sinks[0].file", "path: results.parquet"),
        ({"join__on": []}, "spec.join.on", "at least 1"),
        ({"join__on": "id"}, "spec.join.on", "write [id]"),
        ({"join__on": [5]}, "spec.join.on[0]", "a column name"),
        ({"join__on": ["id", "id"]}, "spec.join.on[1]", "take it out"),
        ({"join__on": ["ids"]}, "spec.join.on[0]", "did you mean id?"),
        ({"join__on": [{"orders": "id"}]}, "spec.join.on[0]", "add fulfilments"),
        ({"join__on": [{"orders": "id", "fulfilments": "id", "x": "id"}]}, "spec.join.on[0].x", "the unknown stream x"),
        ({"join__on": [{"orders": "cost", "fulfilments": "id"}]}, "spec.join.on[0]", "not floats"),
        ({"join__on": [{"orders": "id", "fulfilments": "clerk"}]}, "spec.join.on[0]", "int64 with string"),
        ({"join__type": "outer"}, "spec.join.type", "inner, left, right, full, semi or anti"),
        ({"join__where": "orders.cost >"}, "spec.join.where", "the end at character 14"),
        ({"join__where": "orders.cost"}, "spec.join.where", "compare it with a value"),
        ({"join__where": "orders.costs > 1"}, "spec.join.where", "did you mean orders.cost?"),
        ({"join__where": 5}, "spec.join.where", "an expression"),
        ({"join__where": ""}, "spec.join.where", "found nothing"),
        ({"filter": "orders.id = 'x'"}, "spec.filter", "int64 with string"),
        ({"filter": "not orders.id"}, "spec.filter", "true or false"),
        ({"select": []}, "spec.select", "at least 1"),
        ({"select": ["orders.*"]}, "spec.select[0]", "leave select out"),
        ({"select": ["orders.nope"]}, "spec.select[0]", "use one of: orders.cost"),
        ({"select": ["orders.id as x", "orders.ts as x"]}, "spec.select", "both named x"),
        ({"sinks": [{}]}, "spec.sinks[0]", "exactly one of"),
        ({"sinks": [{"kafka": {}}]}, "spec.sinks[0].kafka", "not yet"),
        ({"sinks": {"stdout": {}}}, "spec.sinks", "a list"),
        ({"late": {}}, "spec.late.sink", "add sink"),
        ({"output": {"disorder": 5}}, "spec.output.disorder", "order: time"),
        ({"results": {"retain": 64}}, "spec.results.retain", "64Mi"),
        ({"alignment": "soon"}, "spec.alignment", "auto, or a duration"),
        ({"epochs": {"reorganization": "0s"}}, "spec.epochs.reorganization", "longer than 0s"),
        ({"partitions": 0}, "spec.partitions", "leave it out for 60"),
        ({"partitions": 5000}, "spec.partitions", "at most 4096"),
        ({"partitions": True}, "spec.partitions", "a whole number"),
        ({"partitions": "60"}, "spec.partitions", "found '60'"),
        ({"partitions": 60.0}, "spec.partitions", "a whole number"),
        ({"replicas": 0}, "spec.replicas", "at least 1"),
        ({"scaling": {"beta": 1.0}}, "spec.scaling.beta", "less than 1"),
        ({"scaling": {"beta": 0}}, "spec.scaling.beta", "more than 0"),
        ({"scaling": {"beta": float("nan")}}, "spec.scaling.beta", "a finite number"),
        ({"scaling": {"consumerThreshold": 0.5}}, "spec.scaling.consumerThreshold", "less than supplierThreshold"),
        ({"scaling": {"consumerThreshold": -0.1}}, "spec.scaling.consumerThreshold", "at least 0"),
        ({"scaling": {"supplierThreshold": 1}}, "spec.scaling.supplierThreshold", "less than 1"),
        ({"scaling": {"min": 9}}, "spec.scaling.min", "at most max, 8"),
        ({"scaling": {"step": 0}}, "spec.scaling.step", "at least 1"),
        ({"scaling": {"minSuppliers": -1}}, "spec.scaling.minSuppliers", "at least 0"),
        ({"scaling": {"mode": "auto"}}, "spec.scaling.mode", "did you mean Auto?"),
        ({"worker": {"buffer": "3Gi"}}, "spec.worker.buffer", "less than memory, 2Gi"),
        ({"worker": {"speed": 0}}, "spec.worker.speed", "unlimited"),
        ({"worker": {"resources": {"limits": {"cpu": "many"}}}}, "spec.worker.resources.limits.cpu", "quantity"),
        ({"worker": {"resources": {"requests": {"x": 2}, "limits": {"x": "5m"}}}}, "spec.worker.resources", "at most"),
        ({"pods": {"labels": {"joinery.dev/role": "worker"}}}, "spec.pods", "labels of your own"),
        ({"pods": {"tolerations": [{"operator": "Exists", "value": "x"}]}}, "spec.pods.tolerations[0]", "no value"),
        ({"pods": {"gateway": {"resources": {"limits": {"x": -1}}}}}, "spec.pods.gateway.resources.limits.x", "Kuber"),
        ({"streams__0__source": REDIS_IN, "sinks": [REDIS_IN]}, "spec.sinks[0].redisStream.key", "another key"),
        ({"streams__0__source": REDIS_LATE, "late": {"sink": REDIS_IN}}, "spec.late.sink.redisStream.key", "x-orders"),
        ({"epochs": {"distribution": "61s"}}, "spec.epochs.distribution", "at most 1m"),
        ({"fineTuning": {"block": "2Mi"}}, "spec.fineTuning.block", "at most theta, 1.5Mi"),
        ({"fineTuning": {"enabled": "yes"}}, "spec.fineTuning.enabled", "true or false"),
        ({"checkpoint": {"durability": "disk"}}, "spec.checkpoint.durability", "wal or memory"),
        ({"checkpoint": 5}, "spec.checkpoint", "a mapping"),
        ({"redis": {"url": "localhost"}}, "spec.redis.url", "redis://"),
        ({"engine": "flink"}, "spec.engine", "service or spark"),
        ({"partitons": 5}, "spec.partitons", "did you mean partitions?"),
        ({"streams__0__windows": "5s"}, "spec.streams[0].windows", "did you mean window?"),
        ({"streams__0__time": {**TIME, "idletimeout": "1s"}}, "spec.streams[0].time.idletimeout", "idleTimeout?"),
        ({"wibble": 5}, "spec.wibble", "use one of: streams"),
    ],
)  # fmt: skip
def test_a_wrong_value_gets_one_complaint_that_names_field_and_remedy(
    changes: dict[str, Any], field: str, part: str
) -> None:
    found = complaints(with_(**changes))
    assert {field} == {complaint.field for complaint in found}
    assert part in str(found[0])


@pytest.mark.parametrize("name", ["routing", "aggregate"])
def test_a_field_of_a_later_round_is_refused_with_not_yet(name: str) -> None:
    (complaint,) = complaints(with_(**{name: {}}))
    assert "not yet" in complaint.wanted
    assert name in NOT_YET


def test_all_complaints_come_at_once() -> None:
    raw = with_(
        partitions=0, streams__0__window=5, streams__1__schema__clerk="txt", scaling={"min": 9, "max": 2},
        output={"disorder": 3}, sinks=[{}, {"stdout": {}}], engine="flink", unknown=1, alignment="1s",
        streams__0__time={"column": "ts", "unit": "s", "lateness": "5s"},
    )  # fmt: skip
    expected = {
        "spec.partitions", "spec.streams[0].window", "spec.streams[1].schema.clerk", "spec.scaling.min",
        "spec.output.disorder", "spec.sinks[0]", "spec.engine", "spec.unknown", "spec.alignment",
    }  # fmt: skip
    assert expected == set(fields(raw))


def test_a_broken_schema_brings_no_complaints_about_what_depends_on_it() -> None:
    raw = with_(streams__0__schema__cost="txt", join__where="orders.cost > 1", select=["orders.cost"], partitions=0)
    assert ["spec.streams[0].schema.cost", "spec.partitions"] == fields(raw)


def test_a_stream_that_is_no_mapping_is_one_complaint() -> None:
    raw = with_(partitions=0)
    raw["streams"][1] = "fulfilments"
    assert ["spec.streams[1]", "spec.partitions"] == fields(raw)


@pytest.mark.parametrize("count", [0, 1, 9])
def test_a_query_has_two_to_eight_streams(count: int) -> None:
    streams = [{"name": f"s{place}", "schema": {"id": "int64"}, "window": "1s"} for place in range(count)]
    assert ["spec.streams"] == fields(with_(streams=streams))


@pytest.mark.parametrize("kind", ["left", "right", "full", "semi", "anti"])
def test_only_inner_joins_take_more_than_two_streams(kind: str) -> None:
    third = {"name": "third", "schema": {"id": "int64"}, "window": "1s"}
    streams = [*SMALLEST["streams"], third]
    assert "inner" == JoinQuerySpec.parse(with_(streams=streams)).join.type
    assert ["spec.join.type"] == fields(with_(streams=streams, join__type=kind))


def test_result_names_that_collide_are_refused_unless_select_names_them_apart() -> None:
    streams = [
        {"name": "a", "schema": {"k": "int64", "b_c": "int64"}, "window": "1s"},
        {"name": "a_b", "schema": {"k": "int64", "c": "int64"}, "window": "1s"},
    ]
    raw = {"streams": streams, "join": {"on": ["k"]}}
    (complaint,) = complaints(raw)
    assert "a.b_c and a_b.c, both named a_b_c in the result" == complaint.found
    assert 2 == len(JoinQuerySpec.parse({**raw, "select": ["a.b_c as x", "a_b.c"]}).result_columns)


def test_alignment_below_the_largest_lateness_is_refused() -> None:
    time = {"column": "ts", "unit": "s", "lateness": "10s"}
    assert ["spec.alignment"] == fields(with_(streams__0__time=time, alignment="9s"))
    assert 10 * 10**9 == JoinQuerySpec.parse(with_(streams__0__time=time, alignment="10s")).alignment_ns


def test_a_timestamp_column_has_its_own_unit() -> None:
    schema = {"id": "int64", "at": "timestamp(ms)"}
    time = {"column": "at"}
    assert JoinQuerySpec.parse(with_(streams__0__schema=schema, streams__0__time=time))
    assert ["spec.streams[0].time.unit"] == fields(
        with_(streams__0__schema=schema, streams__0__time={**time, "unit": "us"})
    )


@pytest.mark.parametrize("raw", [None, 5, "spec", [], [SMALLEST], True, float("nan")])
def test_a_spec_that_is_no_mapping_is_refused(raw: object) -> None:
    assert ["spec"] == fields(raw)


def test_a_mapping_that_is_too_deep_or_a_circle_is_refused() -> None:
    deep: dict[str, Any] = {}
    circle = with_()
    circle["join"]["again"] = circle
    for _ in range(10_000):
        deep = {"streams": deep}
    assert [["spec"], ["spec"]] == [fields(deep), fields(circle)]


def test_a_thousand_mistakes_give_a_bounded_message() -> None:
    schema = {f"c{number}": "x" * 10_000 for number in range(1000)}
    with pytest.raises(BadSpec) as refused:
        JoinQuerySpec.parse(with_(streams__0__schema=schema))
    assert 101 == len(refused.value.complaints)
    assert len(str(refused.value)) < 100_000


# -- remedies that help ---------------------------------------------------------------------------------------------

GENERATED = "streams__0__source__generator__"


@pytest.mark.parametrize(
    ("path", "found", "remedy"),
    [
        ("partitions", "60", "remove the quotes: 60"),
        ("partitions", 60.0, "write 60"),
        ("partitions", "1,000", "write 1000, without separators"),
        ("partitions", "1_000", "write 1000, without separators"),
        ("partitions", "auto", "write for example 60, the default"),
        ("partitions", "6k", "write for example 60, the default"),
        ("partitions", True, "write for example 60, the default"),
        (f"{GENERATED}rate", "10k", "write 10000"),
        (f"{GENERATED}rate", "1.5M", "write 1500000"),
        (f"{GENERATED}rate", "100/s", "write 100"),
        (f"{GENERATED}rate", -1, "leave it out for 1500"),
        (f"{GENERATED}keys__skew", "high", "write for example 0.7, the default"),
        (f"{GENERATED}rows", -1, "write for example 300000, or leave it out"),
        (f"{GENERATED}rows", "5m", "write for example 300000, or leave it out"),
        ("scaling__beta", "50%", "write 0.5"),
        ("fineTuning__enabled", "yes", "write true"),
        ("fineTuning__enabled", 0, "write false"),
        ("fineTuning__enabled", "False", "remove the quotes: false"),
        ("fineTuning__enabled", 5, "write for example true, the default"),
        ("select", "*", "leave select out for every column"),
        ("select", [], "leave select out for every column"),
        ("select", "orders.id, orders.ts as t", "write [orders.id, orders.ts as t]"),
        ("join__on", "orders.id = fulfilments.id", "write {orders: id, fulfilments: id}"),
        ("join__on", "id]", "write [id]"),
        ("join__on", "a: b", "write for example [order_id]"),
        ("sinks", "stdout", "write [{stdout: {}}]"),
        ("sinks", ["stdout"], "write {stdout: {}}"),
        ("sinks", {"stdout": {}}, "make it a list: begin each entry with -"),
        ("streams__0__time", "ts", "write {column: ts}"),
        ("streams__0__source", "generator", "write {generator: {rate: 1500}}"),
        ("streams__0__source__file", "a.csv", "write {path: a.csv}"),
        ("late", "x", "write for example {sink: {count: {}}}"),
        ("redis__secretName", 5, 'quote it: "5"'),
        ("redis__secretName", "x" * 2000, "shorten it"),
        ("sinks", [{"count": {}}] * 18, "take out 2 of them"),
        ("scaling", [], "write for example {mode: Auto}"),
    ],
)
def test_the_remedy_says_what_to_write_instead(path: str, found: object, remedy: str) -> None:
    (complaint,) = complaints(with_(**{path: found}))
    assert remedy == complaint.remedy


@pytest.mark.parametrize(
    ("path", "found", "remedy"),
    [
        ("join__type", "outer", "did you mean full?"),
        ("join__type", "left_outer", "did you mean left?"),
        ("join__type", "cross", "choose one of them, or leave it out for inner"),
        ("join__type", 5, "choose one of them, or leave it out for inner"),
        ("streams__0__time__unit", "sec", "did you mean s?"),
        ("streams__0__time__unit", "seconds", "did you mean s?"),
        ("streams__0__time__unit", "millis", "did you mean ms?"),
        ("streams__0__time__unit", "micros", "did you mean us?"),
        ("streams__0__time__unit", "nanos", "did you mean ns?"),
        ("streams__0__time__unit", "fortnight", "choose one of them"),
        (f"{GENERATED}keys__distribution", "normal", "choose one of them, or leave it out for b-model"),
        (f"{GENERATED}keys__distribution", "unifrom", "did you mean uniform?"),
    ],
)
def test_a_wrong_word_gets_the_one_that_was_meant_or_none(path: str, found: object, remedy: str) -> None:
    changes = {"streams__0__time__column": "ts", path: found} if "time" in path else {path: found}
    (complaint,) = complaints(with_(**changes))
    assert remedy == complaint.remedy


@pytest.mark.parametrize(("right", "wrong"), [("kind: JoinQuery", "kind: Query"), ("v1alpha1", "v1")])
def test_where_only_one_word_can_stand_the_remedy_is_to_write_it(right: str, wrong: str) -> None:
    complaint = yaml_complaint(DESIGN.replace(right, wrong))
    assert f"write {complaint.wanted}" == complaint.remedy


def test_no_field_is_refused_without_something_to_write_or_to_leave_out() -> None:
    def fields_of(section: type[Section], path: str) -> list[tuple[str, type[Section]]]:
        inner = {name: section_at(section, (name,)) for name in field_names(section)}
        deeper = [held for name, held in inner.items() if held for held in fields_of(held, f"{path}.{name}")]
        return [*((name, section) for name in inner), *deeper]

    for name, section in fields_of(JoinQuery, ""):
        with pytest.raises(BadSpec) as refused:
            parse_section(section, {name: object()}, (), lambda _, __: [])
        told = next(complaint for complaint in refused.value.complaints if complaint.field == name)
        assert re.search(r"\b(write|add|leave|choose|use)\b", told.remedy), told
        assert "None" not in told.remedy, told


def test_a_misspelt_field_is_told_once_and_not_as_missing_too() -> None:
    raw = with_(streams__0__window=None, streams__0__windw="10s", partitions=0)
    assert ["spec.streams[0].windw", "spec.partitions"] == fields(raw)
    assert "did you mean window?" == complaints(raw)[0].remedy


def test_a_complaint_within_a_stream_names_the_stream() -> None:
    (complaint,) = complaints(with_(streams__1__window=5))
    assert ("spec.streams[1].window", "5 in stream fulfilments") == (complaint.field, complaint.found)
    (complaint,) = complaints(with_(streams__1__name=5))
    assert "5" == complaint.found


def test_a_key_that_several_streams_lack_is_one_complaint() -> None:
    (complaint,) = complaints(with_(join__on=["idd"]))
    assert "idd, which orders and fulfilments do not have" == complaint.found
    assert "did you mean id?" == complaint.remedy


def test_a_key_that_one_stream_names_otherwise_is_shown_in_the_form_for_that() -> None:
    raw = with_(streams__1__schema={"order_id": "int64"}, join__on=["id"])
    (complaint,) = complaints(raw)
    assert "id, which fulfilments does not have" == complaint.found
    assert "where names differ, write for example {orders: id, fulfilments: order_id}" == complaint.remedy


def test_a_key_without_any_likeness_gets_the_common_columns() -> None:
    (complaint,) = complaints(with_(join__on=["zzz"]))
    assert "use one of: id" == complaint.remedy


@pytest.mark.parametrize(("kind", "words"), [("anti", "in an anti join"), ("semi", "in a semi join")])
def test_a_column_that_is_in_no_result_is_told_with_the_kind_of_join(kind: str, words: str) -> None:
    (complaint,) = complaints(with_(join__type=kind, select=["fulfilments.clerk"]))
    assert complaint.found.endswith(words)


def test_numbers_of_entries_are_told_in_good_grammar() -> None:
    (empty,) = complaints(with_(join__on=[]))
    (single,) = complaints(with_(streams=SMALLEST["streams"][:1]))
    assert ("at least 1 entry", "at least 2 entries") == (empty.wanted, single.wanted)
    assert single.remedy.startswith("add a second stream, for example {name: ")


def test_kafka_is_refused_with_what_there_is_instead() -> None:
    (source,) = complaints(with_(streams__0__source={"kafka": {"topic": "x"}}))
    (sink,) = complaints(with_(sinks=[{"kafka": {}}]))
    assert source.wanted.startswith("file, redisStream, generator or gRPC push (")
    assert sink.wanted.startswith("file, redisStream, stdout or count (")
    assert "push the rows over gRPC" in source.remedy


@pytest.mark.parametrize("key", [0, "000"])
def test_a_number_as_a_field_is_told_at_its_section(key: object) -> None:
    raw = with_(streams__0__source={"generator": {"rows": 300, key: None}}, streams__1__name="orders")
    wrong, twice = complaints(raw)
    assert ("spec.streams[0].source.generator", "spec.streams[1].name") == (wrong.field, twice.field)
    assert "write numbers without commas" in wrong.remedy


# -- YAML -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "field", "found"),
    [
        ("", "the file", "nothing"),
        ("# nothing", "the file", "nothing"),
        ("- a", "the file", "a list of 1"),
        ("just text", "the file", "'just text'"),
        ("a: 1\nb: {c: 1, c: 2}", "b.c", "the key twice, again in line 2"),
        ("a: &x 1\nb: *x", "a", "an anchor or alias in line 1"),
        ("a: *nowhere", "a", "an anchor or alias"),
        ("a: !!python/object/apply:os.system [ls]", "a", "the tag tag:yaml.org,2002:python"),
        ("a: !!binary aGk=", "a", "the tag"),
        ("--- {a: 1}\n--- {b: 2}", "the file", "several documents"),
        ("a: [1", "the file", "in line 1"),
        ("a: b: c", "the file", "in line 1, column 5"),
        ("\ta: 1", "the file", "a tab in line 1, column 1"),
        ("? [a, b]\n: 1", "the file", "a mapping or list as a key"),
        ("a: " + "[" * 5000, "a[0]", "more than 32 levels"),
        ("a: \x00", "the file", "special characters"),
        ("a: 1\n" * 100_000, "the file", "500000 characters"),
        ("%YAML 9.9\n---\na: 1", "the file", "incompatible"),
    ],
)
def test_a_text_that_is_no_query_is_refused_at_its_place(text: str, field: str, found: str) -> None:
    complaint = yaml_complaint(text)
    assert complaint.field.startswith(field)
    assert found in complaint.found


@pytest.mark.parametrize(
    ("text", "found", "remedy"),
    [
        ("a:\n\tb: 1", "a tab in line 2, column 1", "indent with spaces"),
        ("a: [1, 2\nb: 3", "a bracket that opens in line 1, column 4 and is still open in line 2, column 2", "add ]"),
        ("a: {b: 1", "a bracket that opens in line 1, column 4", "add }"),
        ("a: 'b\nc: 1", "a quote that opens in line 1, column 4 and never closes", "add the quote"),
        ("a: b: c", "a colon in line 1, column 5", "put the value in quotes"),
        ("a: @b", "@ in line 1, column 4", "put the value in quotes"),
        ("a:\n  b: 1\n c: 2", "indented unlike its neighbours in line 3, column 2", "as many spaces"),
        (" a: 1\nb: 2", "indented unlike its neighbours in line 2, column 1", "as many spaces"),
        ("a: 1\n- b", "a list entry in line 2, column 1 among fields", "take the - out"),
        ("a: 1\nb\nc: 2", "a line without a colon in line 2, column 1", "add a colon"),
        ("a: [1] b\nc: 2", "text after the end of a value in line 1, column 8", "put the whole value in quotes"),
        ("select: *\n", "a bare * or & in line 1, column 9", "leave select out"),
    ],
)
def test_a_mistake_in_yaml_is_told_in_the_words_of_one_who_writes_it(text: str, found: str, remedy: str) -> None:
    complaint = yaml_complaint(text)
    assert found in complaint.found
    assert remedy in complaint.remedy


@pytest.mark.parametrize(
    ("text", "found", "written"),
    [
        ("a: {rows: 300,000}", "300,000", "write 300000:"),
        ("a: {rows: 1,000,000, b: 5}", "1,000,000", "write 1000000:"),
        ("a: {rows: -1, 234 , c: 5}", "-1,234", "write -1234:"),
    ],
)
def test_a_number_with_commas_is_told_as_the_number_that_was_meant(text: str, found: str, written: str) -> None:
    complaint = yaml_complaint(text)
    assert ("a.rows", found, "a number without commas") == (complaint.field, complaint.found, complaint.wanted)
    assert complaint.remedy.startswith(written)


def test_a_number_with_very_many_commas_gives_a_short_message() -> None:
    assert len(str(yaml_complaint("a: {b: 1" + ",000" * 10_000 + "}"))) < 300


@pytest.mark.parametrize("text", ["{a: 5, 123: x}", "{a: x, 123}", "{a: 5, '123'}", "{a: 5000, 123}", "{a: 5, 12}"])
def test_a_key_of_digits_is_no_part_of_a_number_otherwise(text: str) -> None:
    assert 2 == len(load_yaml(text))


def test_a_yaml_bomb_is_refused_before_it_is_built() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    assert "plain values" == yaml_complaint(bomb).wanted


def test_yaml_is_read_as_1_2_so_that_on_is_a_word_and_dates_are_texts() -> None:
    query = JoinQuery.parse_yaml(
        DESIGN.replace("name: orders-fulfilments", "name: orders, labels: {day: 2024-01-31, answer: no}")
    )
    assert (("answer", "no"), ("day", "2024-01-31")) == query.metadata.labels


def test_a_query_without_its_head_gets_all_complaints() -> None:
    with pytest.raises(BadSpec) as refused:
        JoinQuery.parse({"kind": "Join", "spec": with_(partitions=0), "extra": 1})
    expected = ["apiVersion", "kind", "metadata", "spec.partitions", "extra"]
    assert expected == [complaint.field for complaint in refused.value.complaints]


def test_a_name_that_kubernetes_would_refuse_is_refused() -> None:
    with pytest.raises(BadSpec, match=r"metadata\.name"):
        JoinQuery.parse_yaml(DESIGN.replace("name: orders-fulfilments", "name: Orders_1"))
