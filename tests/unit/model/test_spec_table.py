"""A stored table as a side of a query: what it brings, and what cannot be beside it."""

import copy
from typing import Any

import pytest

from joinery.join.plan import JoinPlan
from joinery.model.errors import BadSpec
from joinery.model.quantities import Nanoseconds, TimeWindow
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import changes
from joinery.model.time import UNBOUNDED

QUERY: dict[str, Any] = {
    "streams": [
        {"name": "s", "schema": {"k": "int64", "n": "int64"}, "time": {"column": "n", "unit": "ms", "lateness": "1s"}},
        {"name": "t", "schema": {"k": "int64", "zone": "string"}, "table": {"path": "t"}},
    ],
    "join": {"on": ["k"]},
}


def with_(**changed: Any) -> dict[str, Any]:
    """The query with values at paths such as streams__1__table__cut."""
    raw = copy.deepcopy(QUERY)
    for path, value in changed.items():
        *steps, last = [int(step) if step.isdigit() else step for step in path.split("__")]
        holder: Any = raw
        for step in steps:
            holder = holder[step]
        holder[last] = value
    return raw


def test_results_carry_the_version_and_nobody_needs_a_window() -> None:
    spec = JoinQuerySpec.parse(QUERY)
    assert ["s_k", "s_n", "t_k", "t_version", "t_zone"] == JoinPlan.of(spec).schema.names
    assert {TimeWindow(Nanoseconds(0))} == {stream.window for stream in spec.streams}
    assert spec.table is not None
    assert (34 * 2**20, 10**9) == (spec.table.memory, spec.table.max_wait)
    assert UNBOUNDED == spec.alignment_ns, "a producer waits for nobody"


def test_it_is_written_out_as_it_was_read() -> None:
    spec = JoinQuerySpec.parse(QUERY)
    written = spec.to_dict()
    assert {"k": "int64", "zone": "string"} == written["streams"][1]["schema"]
    assert spec == JoinQuerySpec.parse(written)


def test_the_version_can_be_selected_and_filtered() -> None:
    spec = JoinQuerySpec.parse(with_(select=["t.version as v", "s.n"], filter="t.version > 1 or t.zone is null"))
    assert ["v", "s_n"] == JoinPlan.of(spec).schema.names


def test_without_a_table_a_window_is_still_needed() -> None:
    raw = with_()
    del raw["streams"][1]["table"]
    with pytest.raises(BadSpec) as refused:
        JoinQuerySpec.parse(raw)
    fields = {complaint.field for complaint in refused.value.complaints}
    assert {"spec.streams[0].window", "spec.streams[1].window"} == fields


THIRD = {"name": "u", "schema": {"k": "int64"}, "table": {"path": "u"}}


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"join__type": "right"}, "spec.join.type"),
        ({"join__type": "semi"}, "spec.join.type"),
        ({"join__method": "nested-loop"}, "spec.join.method"),
        ({"streams__0__window": "5s"}, "spec.streams[0].window"),
        ({"streams__0__window": {"count": 5}}, "spec.streams[0].window"),
        ({"streams__1__window": "unbounded"}, "spec.streams[1].window"),
        ({"streams__1__time": {"column": "k", "unit": "ms"}}, "spec.streams[1].time"),
        ({"streams__1__source": {"file": {"path": "t.csv"}}}, "spec.streams[1].source"),
        ({"streams__1__schema__version": "int64"}, "spec.streams[1].schema.version"),
        ({"streams": [*QUERY["streams"], THIRD]}, "spec.streams"),
        ({"streams": QUERY["streams"][::-1]}, "spec.streams[0].table"),
        ({"streams__0__schema__version": "int64", "join__on": ["version"]}, "spec.join.on[0]"),
        ({"join__where": "t.version > 1"}, "spec.join.where"),
        ({"output": {"order": "time"}}, "spec.output.order"),
        ({"engine": "spark"}, "spec.engine"),
        ({"join__on": ["k", {"s": "n", "t": "k"}], "streams__1__table__cut": "range"}, "spec.streams[1].table.cut"),
        ({"streams__1__table__waitBuffer": "1Ki"}, "spec.streams[1].table"),
        ({"streams__1__table__lowMark": 200}, "spec.streams[1].table"),
        ({"streams__1__table__thtea": "1Mi"}, "spec.streams[1].table.thtea"),
    ],
)
def test_what_makes_no_sense_beside_a_table_is_refused_by_its_field(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(BadSpec) as refused:
        JoinQuerySpec.parse(with_(**changed))
    assert [field] == [complaint.field for complaint in refused.value.complaints]


def test_another_table_is_another_query() -> None:
    old, new = JoinQuerySpec.parse(QUERY), JoinQuerySpec.parse(with_(streams__1__table__memory="1Gi"))
    assert ["spec.streams[1].table.memory"] == [one.field for one in changes(old, new).refused]
