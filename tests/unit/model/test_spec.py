import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.model.errors import BadSpec, Complaint
from joinery.model.quantities import CountWindow, TimeWindow
from joinery.model.select import SelectItem
from joinery.model.spec import JoinQuery, JoinQuerySpec
from joinery.model.spec_complaints import NOT_YET
from joinery.model.time import UNBOUNDED

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


@pytest.mark.parametrize("name", ["routing", "table"])
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
        ("\ta: 1", "the file", "cannot start any token"),
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
