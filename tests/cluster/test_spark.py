"""A LoadTest in a cluster: a Spark application, its executors pods, drives a query up and down; results are exact."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from joinery.model.spec import JoinQuery
from joinery.spark.load_job import load_of
from joinery.spark.loading import rows_of
from tests.cluster import rights
from tests.cluster.clusters import Cluster, CommandFailed
from tests.cluster.reading import digest_of
from tests.cluster.sparked import TOKEN, spark_release
from tests.cluster.traffic import pairs
from tests.cluster.user import HERE, User, join_query

STREAM: dict[str, Any] = {
    "schema": {"k": "int64", "number": "int64", "ts": "int64"}, "window": "5s", "time": {"column": "ts", "unit": "us"},
}  # fmt: skip
LOAD: dict[str, Any] = {
    "query": "driven",
    "profile": {"burst": {"base": 200, "burst": 1600, "start": "8s", "length": "30s"}},
    "duration": "70s",
    "producers": 2,
    "executors": 2,
    "seed": 3,
    "end": True,
    "workload": {"keys": {"distribution": "uniform", "range": 5000}},
}
ROWS = 2 * (200 * 40 + 1600 * 30)


def load_test(name: str, **fields: Any) -> dict[str, Any]:
    spec = {**LOAD, **fields}
    return {"apiVersion": "joinery.dev/v1alpha1", "kind": "LoadTest", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def sparked(cluster: Cluster) -> Iterator[User]:
    with spark_release(cluster) as user:
        yield user


def state(user: User, name: str) -> Any:
    return user.read("loadt", name).get("status", {})


def wanted_results(query: dict[str, Any], load: dict[str, Any]) -> dict[str, int]:
    """Which pairs there must be, from the rows that the generators make."""
    spec = JoinQuery.parse(query).spec.to_dict()
    made = load_of({"name": "x", "gateway": "x", "load": load["spec"], "query": spec})
    sides = []
    for stream in ("a", "b"):
        parts = [piece.rows for number in range(2) for piece in rows_of(made, stream, number)[0].read(None)]
        columns = {name: np.concatenate([one[name].to_numpy() for one in parts]) for name in ("k", "number", "ts")}
        sides.append(columns | {"n": np.arange(columns["ts"].size)})
    left, right = sides
    found = pairs(left, right, 5_000_000, start_us=0)
    a, b = found >> 32, found & 0xFFFFFFFF
    chosen = [left["k"][a], left["number"][a], left["ts"][a], right["number"][b], right["ts"][b]]
    return {"results": int(found.size), "digest": digest_of(chosen)}


@pytest.mark.timeout(600, func_only=True)  # about three minutes; a busy machine takes long to start Java
def test_a_load_test_drives_a_query_up_and_down_and_results_are_exact(sparked: User) -> None:
    query = join_query(
        "driven",
        join={"on": ["k"], "method": "nested-loop"},
        streams=[{"name": name, **STREAM} for name in ("a", "b")],
        worker={"speed": 200000, "buffer": "64Ki"},
        epochs={"reorganization": "1s"},
        scaling={"max": 4, "scaleUp": {"stabilization": "1s"}, "scaleDown": {"stabilization": "3s"}},
    )
    load = load_test("evening")
    sparked.apply(load)
    sparked.until("it waits for its query", lambda: state(sparked, "evening").get("phase") == "Pending", 30)
    sparked.apply(query)
    sparked.ready("driven", 90)
    _read(sparked)
    executors = "joinery.dev/loadtest=evening,joinery.dev/load-role=executor"
    sparked.until("it runs", lambda: state(sparked, "evening").get("phase") == "Running", 240)
    sparked.until("two executors are pods", lambda: len(sparked.all("pods", executors)) == 2, 60)
    sparked.until("the degree grows", lambda: sparked.status("driven").get("desiredReplicas", 0) > 1, 90)
    sparked.until("the degree shrinks", lambda: sparked.events("driven", "ScaledDown"), 90)
    sparked.until("it has ended", lambda: state(sparked, "evening")["phase"] in ("Succeeded", "Failed"), 120)
    told = state(sparked, "evening")
    assert "Succeeded" == told["phase"], told
    assert (ROWS, ROWS) == (told["sent"], told["acknowledged"])
    assert 1 < told["peakWorkers"]
    assert {"delayP50", "delayP99", "rate", "startedAt", "finishedAt"} <= told.keys()
    assert sparked.events("evening", "LoadStarted")
    assert sparked.events("evening", "LoadFinished")
    assert wanted_results(query, load) == sparked.verdict("reading")
    if sparked.cluster.audit_log is not None:
        rights.check(sparked, "evening-load")
    sparked.kubectl("delete", "loadt", "evening", "--wait=true")
    for kind in ("pods", "jobs", "configmaps", "serviceaccounts", "rolebindings"):
        sparked.until(f"no {kind}", lambda kind=kind: not sparked.all(kind, "joinery.dev/loadtest=evening"), 60)  # type: ignore[misc]


def _read(user: User) -> None:
    """A pod that reads every result."""
    script = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "reading"}}
    user.apply({**script, "data": {"reading.py": (HERE / "reading.py").read_text()}})
    container = {
        "name": "reading", "image": user.cluster.joinery_image, "imagePullPolicy": "IfNotPresent",
        "command": ["python", "/script/reading.py", f"driven-gateway.{user.namespace}.svc:7400", "--tls", "/tls"],
        "env": [{"name": "JOINERY_TOKEN", "value": TOKEN}],
        "volumeMounts": [{"name": "script", "mountPath": "/script"}, {"name": "tls", "mountPath": "/tls"}],
    }  # fmt: skip
    volumes = [
        {"name": "script", "configMap": {"name": "reading"}}, {"name": "tls", "secret": {"secretName": "driven-tls"}},
    ]  # fmt: skip
    spec = {"restartPolicy": "Never", "containers": [container], "volumes": volumes}
    user.apply({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "reading"}, "spec": spec})


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"profile": {}}, "spec.profile"),
        ({"profile": {"constant": {"rate": 5}, "step": {"before": 1, "after": 2, "at": "1s"}}}, "spec.profile"),
        ({"profile": {"sine": {"mean": 5, "amplitude": 9, "period": "10s"}}}, "spec.profile.sine.amplitude"),
        ({"duration": "soon"}, "spec.duration"),
        ({"producers": 0}, "spec.producers"),
        ({"executors": 99}, "spec.executors"),
        ({"querry": "x"}, "spec.querry"),
    ],
)
def test_a_wrong_load_test_is_refused_by_the_api_server_by_its_field(
    sparked: User, wrong: dict[str, Any], field: str
) -> None:
    with pytest.raises(CommandFailed) as refused:
        sparked.apply(load_test("wrong", **wrong))
    assert field in str(refused.value)


def test_what_only_the_operator_can_see_is_told_in_the_status_and_the_spec_does_not_change(sparked: User) -> None:
    sparked.apply(join_query("other"))
    sparked.apply(load_test("lost", query="other", streams=["nothing"]))
    sparked.until("it stalls", lambda: state(sparked, "lost").get("phase") == "Stalled", 60)
    assert any("spec.streams[0]" in one for one in sparked.events("lost", "ValidationError"))
    with pytest.raises(CommandFailed, match="a load test runs once"):
        sparked.kubectl("patch", "loadt", "lost", "--type=merge", "-p", json.dumps({"spec": {"producers": 3}}))
