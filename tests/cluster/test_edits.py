"""Edits of a running JoinQuery: every kind of field is applied live, rolled, or refused by name; the rule obeys."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from joinery.elastic.beta import BetaRule, DegreeInputs, Grow, Shrink, decide
from joinery.elastic.guarded import replay
from tests.cluster.clusters import CommandFailed
from tests.cluster.user import COLUMNS, User, join_query

ONE_SUPPLIER: dict[str, Any] = {
    "partitions": 1,
    "join": {"on": ["k"], "method": "nested-loop"},
    "worker": {"speed": 200000, "buffer": "64Ki"},
    "epochs": {"reorganization": "1s"},
    "replicas": 3,
}
"""All rows are of one group: whoever has it has too much to do, and the others have nothing."""
CALM: dict[str, Any] = {"scaleUp": {"stabilization": "1s"}, "scaleDown": {"stabilization": "1s"}}


@pytest.fixture(autouse=True)
def cleared(user: User) -> Iterator[None]:
    """No test sees what another one left."""
    yield
    user.clear()


def patch(user: User, query: str, **spec: Any) -> None:
    user.kubectl("patch", "joinq", query, "--type=merge", "-p", json.dumps({"spec": spec}))


def streams(window: str = "5s", **time: Any) -> list[dict[str, Any]]:
    """Of `join_query`, with other windows or bounds of time."""
    columns = {**COLUMNS, "time": {**COLUMNS["time"], **time}}
    return [{"name": name, "window": window, **columns} for name in ("a", "b")]


def pods(user: User, query: str) -> dict[str, str]:
    """Each with the number that no other one has."""
    found = user.all("pods", f"joinery.dev/joinquery={query}")
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in found}


LIVE: dict[str, Any] = {
    "streams": streams("5s", lateness="1s", idleTimeout="20s"),
    "scaling": {"beta": 0.25, "minSuppliers": 2, "target": 0.7},
    "epochs": {"distribution": "100ms", "reorganization": "1s", "subgroups": 1},
    "fineTuning": {"theta": "2Mi"},
    "alignment": "1m",
    "checkpoint": {"interval": "1s"},
    "worker": {"buffer": "512Ki"},
}
ROLLED: dict[str, Any] = {
    "worker": {"speed": 50_000_000, "resources": {"requests": {"cpu": "50m"}}},
    "results": {"retain": "32Mi"},
    "fineTuning": {"block": "8Ki"},
    "pods": {"labels": {"team": "sales"}, "annotations": {"example.com/owner": "sales"}},
}
REFUSED: dict[str, dict[str, Any]] = {
    "spec.filter": {"filter": "a.n > 5"},
    "spec.select": {"select": ["a.n as first", "b.n as second"]},
    "spec.join.where": {"join": {"on": ["k"], "where": "a.n > b.n"}},
    "spec.join.on": {"join": {"on": ["n"]}},
    "spec.sinks": {"sinks": [{"count": {}}]},
    "spec.output.order": {"output": {"order": "time"}},
    "spec.streams[0].time.column": {"streams": [{**one, "time": {"column": "n", "unit": "us"}} for one in streams()]},
    "spec.streams[0].schema": {"streams": [{**one, "schema": {**one["schema"], "x": "int64"}} for one in streams()]},
}
"""The operator sees that these are asked of a query that runs."""


def test_every_kind_of_edit_is_live_rolled_or_refused_and_results_are_exact(user: User) -> None:
    """A window of 2 s becomes one of 5 s before the rows come; what follows comes while they do."""
    user.apply(join_query("edited", streams=streams("2s"), replicas=2, scaling={"mode": "Manual"}))
    user.ready("edited")
    user.until("both are there", lambda: user.status("edited")["readyReplicas"] == 2, 60)
    before = pods(user, "edited")
    patch(user, "edited", **LIVE)
    said = user.until("it is told", lambda: "; ".join(user.events("edited", "SpecChanged")), 30)
    for field in ("streams[1].window 2s -> 5s", "lateness", "idleTimeout", "beta", "minSuppliers", "target", "theta",
                  "distribution", "reorganization", "subgroups", "alignment", "interval", "buffer"):  # fmt: skip
        assert field in said
    assert before == pods(user, "edited"), "nothing of it needs another pod"
    user.traffic("edited", "500x70")
    user.until("rows flow", lambda: user.status("edited").get("results", 0) > 0, 60)
    for field, edit in REFUSED.items():
        is_refused(user, field, edit)
    patch(user, "edited", **ROLLED)
    user.until("all pods are new", lambda: not set(before.values()) & set(pods(user, "edited").values()), 90)
    user.until("with their label", lambda: len(user.all("pods", "team=sales,joinery.dev/joinquery=edited")) == 4, 60)
    user.ready("edited", 90)
    user.exact()


def is_refused(user: User, field: str, edit: dict[str, Any]) -> None:
    """The object says so by the field's name, the query in force goes on; what is put back is taken."""
    spec = user.read("joinq", "edited")["spec"]
    patch(user, "edited", **edit)
    user.until(f"{field} is refused", lambda: field in stalled(user), 20)
    assert user.status("edited")["phase"] in ("Running", "Scaling")
    back = {name: spec.get(name) for name in edit}
    if "join" in edit:  # a merge leaves what is not named
        back["join"] = {**dict.fromkeys(edit["join"]), **spec["join"]}
    patch(user, "edited", **back)
    user.until("it is well", lambda: user.condition("edited", "Stalled") == "False", 20)


def stalled(user: User) -> str:
    told = user.status("edited").get("conditions", ())
    return str(next((one["message"] for one in told if one["type"] == "Stalled"), ""))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"partitions": 7}, "spec.partitions"),
    ({"engine": "spark"}, "spec.engine"),
    ({"join": {"type": "left"}}, "spec.join.type"),
    ({"join": {"method": "nested-loop"}}, "spec.join.method"),
    ({"checkpoint": {"durability": "memory"}}, "spec.checkpoint.durability"),
    ({"streams": [streams()[0], {**streams()[1], "name": "c"}]}, "spec.streams"),
    ({"replicas": 0}, "spec.replicas"),
    ({"epochs": {"subgroups": 0}}, "spec.epochs.subgroups"),
    ({"worker": {"memory": "lots"}}, "spec.worker.memory"),
    ({"scaling": {"consumerThreshold": 0.9}}, "spec.scaling.consumerThreshold"),
    ({"redis": {"url": "http://redis"}}, "spec.redis.url"),
    ({"late": {"sink": {"file": {"path": "late.csv"}}}}, "spec.late.sink.file"),
    ({"pods": {"spark": {"executors": 0}}}, "spec.pods.spark.executors"),
]
"""The API server sees that these cannot be, or not of a query that is there."""


def test_an_edit_that_the_api_server_can_judge_is_refused_by_it(user: User) -> None:
    user.apply(join_query("still"))
    for edit, field in WRONG:
        with pytest.raises(CommandFailed) as refused:
            patch(user, "still", **edit)
        assert field in str(refused.value)


# --- the rule


def predicted(degree: int, rule: BetaRule) -> int:
    """Where `core` takes the degree with one supplier, all others being consumers."""
    for _ in range(rule.max_degree):
        decision = decide(DegreeInputs(
            rule=rule, degree=degree, ready=degree, n_sup=1, n_con=degree - 1, busy=1, memory=0, back_pressure=False
        ))  # fmt: skip
        degree += decision.by if isinstance(decision, Grow) else -decision.by if isinstance(decision, Shrink) else 0
    return degree


def decided(user: User, **inputs: Any) -> Any:
    """The last decision, if it was made from these."""
    told = user.status("ruled").get("scaling", {}).get("lastDecision", {})
    return told if inputs.items() <= told.items() else None


def test_edits_of_the_rule_under_a_steady_load_change_the_degree_as_the_core_predicts(user: User) -> None:
    wide = BetaRule(beta=0.9, min_degree=3, max_degree=6)
    narrow = BetaRule(beta=0.4, min_degree=3, max_degree=6)
    bare = BetaRule(beta=0.9, min_suppliers=2, min_degree=3, max_degree=6)
    assert (3, 4, 3) == (predicted(3, wide), predicted(3, narrow), predicted(4, bare)), "else they show nothing"
    user.apply(join_query("ruled", scaling={"min": 3, "max": 6, "beta": 0.9, **CALM}, **ONE_SUPPLIER))
    user.until("three workers", lambda: user.status("ruled").get("readyReplicas") == 3, 90)
    user.traffic("ruled", "300x45")
    user.until("it stays", lambda: decided(user, nSup=1, nCon=2, beta=0.9, action="Keep", blockedBy=""), 60)
    assert predicted(3, wide) == user.status("ruled")["desiredReplicas"]
    patch(user, "ruled", scaling={"beta": 0.4})
    user.until("it stays again", lambda: decided(user, nSup=1, nCon=3, beta=0.4, action="Keep", blockedBy=""), 60)
    assert predicted(3, narrow) == user.status("ruled")["desiredReplicas"]
    patch(user, "ruled", scaling={"beta": 0.9, "minSuppliers": 2})
    kept = user.until("the guard holds", lambda: decided(user, nSup=1, because="1 supplier < 2", action="Keep"), 30)
    assert "suppliers" in kept["blockedBy"].split(", ")
    patch(user, "ruled", scaling={"rule": "paper"})
    user.until("the bare rule shrinks", lambda: user.status("ruled")["desiredReplicas"] == predicted(4, bare), 60)
    user.exact()
    made = user.decisions("ruled")
    assert [Grow, Shrink] == [type(one) for one in made][:2]
    assert [(1, 2), (1, 3)] == [(one.inputs.n_sup, one.inputs.n_con) for one in made[:2]]
    assert made == [replay(one) for one in made]
