"""Kernels are called before rows come, for every kind of column and query."""

import pytest

from joinery.join.plan import JoinPlan
from joinery.machine import warming
from joinery.machine.facts import BatchJoined, Fact
from joinery.machine.warming import warm_gateway, warm_worker
from joinery.model.spec import JoinQuerySpec

COLUMNS = {
    "bits": "bool", "bytes": "binary", "day": "date", "fixed": "binary(12)", "key": "int64", "price": "decimal(10,2)",
    "small": "int32", "text": "string", "ts": "timestamp(us)", "value": "float64",
}  # fmt: skip


def plan_of(window: object = "1s", kind: str = "inner", streams: int = 2, method: str = "hash") -> JoinPlan:
    one = {"schema": COLUMNS, "window": window, "time": {"column": "ts"}}
    join = {"on": ["key", "text"], "type": kind, "method": method}
    return JoinPlan.of(
        JoinQuerySpec.parse({"streams": [{"name": f"s{n}", **one} for n in range(streams)], "join": join})
    )


@pytest.mark.parametrize("kind", ["inner", "left", "right", "full", "semi", "anti"])
def test_every_join_type_can_be_warmed(kind: str) -> None:
    warm_worker(plan_of(kind=kind))


def test_nested_loops_and_three_streams_can_be_warmed() -> None:
    warm_worker(plan_of(method="nested-loop"))
    warm_worker(plan_of(streams=3))


@pytest.mark.parametrize("window", ["1s", {"count": 5}])
def test_a_gateway_can_be_warmed(window: object) -> None:
    warm_gateway(plan_of(window))
    warm_worker(plan_of(window))


@pytest.mark.parametrize("on", [["key"], ["key", "text"]])
@pytest.mark.parametrize("kind", ["inner", "left"])
def test_a_query_with_a_stored_table_can_be_warmed(on: list[str], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = [
        {"name": "s", "schema": COLUMNS, "time": {"column": "ts"}},
        {"name": "t", "schema": COLUMNS, "table": {"path": "t"}},
    ]
    told: list[Fact] = []
    monkeypatch.setattr(warming, "_do", lambda module, order: told.extend(module.perform(order)))
    warm_worker(JoinPlan.of(JoinQuerySpec.parse({"streams": streams, "join": {"on": on, "type": kind}})))
    joined = [fact for fact in told if isinstance(fact, BatchJoined)]
    assert [1, 1] == [sum(part.times.size for part in fact.parts) for fact in joined]  # once it waited, once it did not
