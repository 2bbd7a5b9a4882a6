"""What may be changed of a running query: every field has its way, and all that is refused is told at once."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest

from joinery.model.errors import Bug
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import WAYS, Way, changes, read_spec, restarted, way_of, write_spec
from joinery.model.spec_fields import Section


def spec_of(*windows: object, **more: Any) -> JoinQuerySpec:
    columns, time = {"k": "int64", "ts": "int64"}, {"column": "ts", "unit": "ms"}
    pairs = zip("ab", windows or ("10s", "20s"), strict=True)
    streams = [{"name": name, "schema": columns, "window": window, "time": time} for name, window in pairs]
    return JoinQuerySpec.parse({"streams": streams, "join": {"on": ["k"]}, **more})


def sections_in(kind: Any) -> list[type[Section]]:
    """The sections that a field's type holds, at any depth."""
    if isinstance(kind, type) and issubclass(kind, Section):
        return [kind]
    return [found for inner in get_args(kind) for found in sections_in(inner)]


def fields_of(section: type[Section], before: str = "") -> Iterator[str]:
    """Every field below a section, by its name in YAML, down to where a way is known."""
    for name, info in section.model_fields.items():
        field = f"{before}.{info.alias or name}".lstrip(".")
        inner = sections_in(info.annotation)
        if field in WAYS or not inner:
            yield field
        else:
            for one in inner:
                yield from fields_of(one, f"{field}[]" if field == "streams" else field)


def test_every_field_of_the_spec_has_one_way() -> None:
    fields = list(fields_of(JoinQuerySpec))
    assert [] == [field for field in fields if field not in WAYS and way_of(field) is None]
    assert set(WAYS) <= set(fields)


def test_a_field_that_nobody_has_thought_of_is_a_bug() -> None:
    with pytest.raises(Bug, match="nobody has said"):
        way_of("worker.colour")


def test_nothing_is_different_between_a_spec_and_itself_written_otherwise() -> None:
    assert changes(spec_of("60s", "1h"), spec_of("1m", "60m")).is_empty


def test_windows_lateness_and_idle_timeouts_are_logged() -> None:
    streams = spec_of().to_dict()["streams"]
    streams[0]["window"] = "1m"
    streams[1]["time"] |= {"lateness": "3s", "idleTimeout": "5s"}
    found = changes(spec_of(), JoinQuerySpec.parse({"streams": streams, "join": {"on": ["k"]}}))
    assert [("spec.streams[0].window", "10s", "1m"), ("spec.streams[1].time.lateness", "0s", "3s"),
            ("spec.streams[1].time.idleTimeout", "nothing", "5s")] == [
        (one.field, one.found, one.wanted) for one in found.logged
    ]  # fmt: skip
    assert ((), ()) == (found.at_once, found.refused)


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("spec.scaling.beta", {"scaling": {"beta": 0.25}}),
        ("spec.scaling.scaleUp.stabilization", {"scaling": {"scaleUp": {"stabilization": "1s"}}}),
        ("spec.epochs.reorganization", {"epochs": {"reorganization": "7s"}}),
        ("spec.replicas", {"replicas": 3}),
        ("spec.worker.memory", {"worker": {"memory": "1Gi"}}),
        ("spec.fineTuning.theta", {"fineTuning": {"theta": "8Mi"}}),
        ("spec.checkpoint.interval", {"checkpoint": {"interval": "9s"}}),
        ("spec.alignment", {"alignment": "1h"}),
    ],
)
def test_what_cannot_change_a_result_changes_at_once(field: str, more: dict[str, Any]) -> None:
    found = changes(spec_of(), spec_of(**more))
    assert [field] == [one.field for one in found.at_once]
    assert ((), ()) == (found.logged, found.refused)


def test_all_that_is_refused_is_told_at_once_with_the_remedy() -> None:
    more = {"partitions": 30, "sinks": [{"count": {}}], "join": {"on": ["k"], "type": "left"}, "worker": {"speed": 9}}
    refused = changes(spec_of(), spec_of(**more, replicas=2)).refused
    assert ["spec.join.type", "spec.sinks", "spec.partitions", "spec.worker.speed"] == [one.field for one in refused]
    assert "spec.join.type: found left, wanted inner; put it back, or run this as a new query" == str(refused[0])
    assert "start it again" in refused[-1].remedy


def test_other_streams_are_another_query() -> None:
    streams = spec_of().to_dict()["streams"]
    streams[1]["name"] = "c"
    (wrong,) = changes(spec_of(), JoinQuerySpec.parse({"streams": streams, "join": {"on": ["k"]}})).refused
    assert ("spec.streams", "a, c", "a, b") == (wrong.field, wrong.found, wrong.wanted)


def test_a_query_does_not_begin_to_run_in_order() -> None:
    (wrong,) = changes(spec_of(), spec_of("10s", {"count": 3})).refused
    assert ("a count window", "no count window") == (wrong.found, wrong.wanted)
    assert () == changes(spec_of("10s", {"count": 3}), spec_of({"count": 5}, "1m")).refused


def test_output_in_order_keeps_its_endless_windows() -> None:
    order = {"output": {"order": "time"}}
    (wrong,) = changes(spec_of(**order), spec_of("unbounded", "20s", **order)).refused
    assert "spec.streams[0].window" == wrong.field
    assert () == changes(spec_of(), spec_of("unbounded", "20s")).refused


def test_the_address_of_redis_is_neither_written_nor_told() -> None:
    secret = spec_of(redis={"url": "redis://:password@host:1/0"})
    assert "password" not in write_spec(secret)
    assert "password" not in str(changes(spec_of(), secret).refused)


def test_a_written_spec_is_read_back() -> None:
    assert spec_of("unbounded", {"count": 3}) == read_spec(write_spec(spec_of("unbounded", {"count": 3})))


def test_a_process_that_starts_takes_from_its_file_only_what_is_read_at_a_start() -> None:
    at_start = {"results": {"retain": "1Mi"}, "redis": {"url": "redis://x"}, "access": {"secretName": "x"}}
    file = spec_of("1m", "1m", replicas=4, worker={"speed": 7}, **at_start)
    merged = restarted(spec_of(), file)
    assert () == changes(merged, file).refused
    restart = [name for name, way in WAYS.items() if way is Way.RESTART]
    assert ["results", "worker.speed", "fineTuning.block", "redis", "access"] == restart
    assert (spec_of().streams, 1) == (merged.streams, merged.replicas)
