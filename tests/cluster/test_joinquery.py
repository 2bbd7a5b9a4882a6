"""A JoinQuery in a cluster, as a user meets it: install, apply, push, read, scale, break. Results stay exact."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from joinery.elastic.guarded import replay
from tests.cluster.clusters import CommandFailed
from tests.cluster.user import ROOT, User, folder, join_query

EXAMPLES = sorted((ROOT / "examples").glob("0*/query.yaml"))
SLOW: dict[str, Any] = {
    "worker": {"speed": 200000, "buffer": "64Ki"},
    "epochs": {"reorganization": "1s"},
    "scaling": {"max": 4, "scaleUp": {"stabilization": "1s"}, "scaleDown": {"stabilization": "3s"}},
}
"""Workers that can be overloaded on a small machine."""


@pytest.fixture(scope="module", autouse=True)
def results_volume(user: User) -> None:
    """Where the examples write; their files lie in a ConfigMap."""
    claim: dict[str, Any] = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    if user.cluster.audit_log is not None:
        claim |= {"storageClassName": "results", "volumeName": "results"}
        volume = {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "results",
            "hostPath": {"path": str(folder("results"))},
        }  # fmt: skip
        user.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "results"}, "spec": volume})
    user.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "results"}, "spec": claim})
    files = {path.name: path.read_text() for path in (ROOT / "examples/01-orders-fulfilments").glob("*s.csv")}
    user.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "orders-fulfilments"}, "data": files})


@pytest.fixture(autouse=True)
def cleared(user: User) -> Iterator[None]:
    """No test sees what another one left."""
    yield
    user.clear()


def test_rows_pushed_through_the_gateway_come_back_joined(user: User) -> None:
    user.apply(join_query("hello", replicas=2))
    user.ready("hello")
    user.traffic("hello", "1000x10")
    user.exact()
    user.finished("hello")
    assert user.status("hello")["results"] > 0


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.parent.name)
def test_every_example_runs(user: User, example: Any) -> None:
    text = example.read_text()
    name = yaml.safe_load(text)["metadata"]["name"]
    user.apply(text)
    user.until("it runs", lambda: user.status(name).get("phase") in ("Running", "Scaling", "Finished"), 60)
    user.finished(name)
    assert user.status(name)["results"] > 0


def test_the_degree_follows_the_load_and_nothing_is_lost(user: User) -> None:
    user.apply(join_query("step", join={"on": ["k"], "method": "nested-loop"}, **SLOW))
    user.ready("step")
    user.traffic("step", "400x10,1600x40,200x40")
    grown = user.until("the degree grows", lambda: user.status("step").get("desiredReplicas", 0) > 1, 60)
    assert grown
    user.until("moves are told", lambda: user.events("step", "PartitionGroupMigrated"), 60)
    decision = user.status("step")["scaling"]["lastDecision"]
    assert {"nSup", "nCon", "beta", "busy", "action", "because"} <= set(decision)
    user.until("the degree shrinks", lambda: user.events("step", "ScaledDown"), 120)
    user.exact()
    decisions = user.decisions("step")
    assert {"Grow", "Shrink"} == {type(one).__name__ for one in decisions}
    assert decisions == [replay(one) for one in decisions]
    moved = user.events("step", "PartitionGroupMigrated")
    assert all("pause=" in one and "->" in one for one in moved)


def test_a_person_scales_and_is_obeyed_for_a_while(user: User) -> None:
    user.apply(join_query("scaled"))
    user.ready("scaled")
    user.traffic("scaled", "500x60")
    user.kubectl("scale", "joinq/scaled", "--replicas=4")
    user.until("four workers", lambda: user.status("scaled").get("readyReplicas") == 4, 60)
    assert user.events("scaled", "ManualScaleHeld")
    assert user.status("scaled")["scaling"]["heldUntil"]
    user.kubectl("scale", "joinq/scaled", "--replicas=1")
    user.until("one worker", lambda: user.status("scaled").get("replicas") == 1, 60)
    user.exact()


@pytest.mark.parametrize("role", ["worker", "gateway", "collector"])
def test_a_pod_that_is_killed_under_load_costs_nothing(user: User, role: str) -> None:
    user.apply(join_query("killed", replicas=2, scaling={"mode": "Manual"}))
    user.ready("killed")
    user.traffic("killed", "500x30")
    user.until("rows flow", lambda: user.status("killed").get("results", 0) > 0, 60)
    pod = user.all("pods", f"joinery.dev/joinquery=killed,joinery.dev/role={role}")[0]["metadata"]["name"]
    user.kubectl("delete", "pod", pod, "--force", "--grace-period=0")
    user.exact()


def test_a_killed_operator_goes_on_where_it_was(user: User) -> None:
    user.apply(join_query("operated", scaling={"mode": "Manual"}))
    user.ready("operated")
    user.traffic("operated", "500x40")
    user.kubectl("scale", "joinq/operated", "--replicas=3")
    operator = user.all("pods", "app.kubernetes.io/component=operator")[0]["metadata"]["name"]
    user.kubectl("delete", "pod", operator, "--force", "--grace-period=0")
    user.until("three workers", lambda: user.status("operated").get("readyReplicas") == 3, 90)
    user.exact()


def test_windows_and_thresholds_change_while_it_runs_and_other_things_are_refused(user: User) -> None:
    user.apply(join_query("changed"))
    user.ready("changed")
    user.traffic("changed", "200x30")
    user.kubectl("patch", "joinq", "changed", "--type=merge", "-p", json.dumps({"spec": {"scaling": {"beta": 0.25}}}))
    user.until("it is told", lambda: any("beta" in one for one in user.events("changed", "SpecChanged")), 30)
    with pytest.raises(CommandFailed, match=r"spec\.partitions"):
        user.kubectl("patch", "joinq", "changed", "--type=merge", "-p", json.dumps({"spec": {"partitions": 7}}))
    user.exact()


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"scaling": {"min": 5, "max": 2}}, "spec.scaling.min"),
        ({"scaling": {"beta": 7}}, "spec.scaling.beta"),
        ({"join": {"on": ["k"], "type": "sideways"}}, "spec.join.type"),
        ({"checkpoint": {"interval": "soon"}}, "spec.checkpoint.interval"),
        ({"sinks": [{"file": {"path": "x.csv"}}]}, "spec.sinks[0].file"),
        ({"partitions": 0}, "spec.partitions"),
        ({"windows": "5s"}, "spec.windows"),
    ],
)
def test_a_wrong_spec_is_refused_by_the_api_server_by_its_field(user: User, wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(CommandFailed) as refused:
        user.apply(join_query("wrong", **wrong))
    assert field in str(refused.value)


def test_what_only_the_operator_can_see_is_told_in_the_status(user: User) -> None:
    user.apply(join_query("stalled", join={"on": ["nothing"]}))
    user.until("it stalls", lambda: user.condition("stalled", "Stalled") == "True", 30)
    assert any("spec.join.on[0]" in one for one in user.events("stalled", "ValidationError"))


def test_a_deleted_query_leaves_nothing(user: User) -> None:
    user.apply(join_query("gone"))
    user.ready("gone")
    user.kubectl("delete", "joinq", "gone", "--wait=true")
    for kind in ("pods", "services", "configmaps", "secrets", "statefulsets", "deployments", "pdb", "networkpolicies"):
        user.until(f"no {kind}", lambda kind=kind: not user.all(kind, "joinery.dev/joinquery=gone"), 30)  # type: ignore[misc]


def test_a_workers_pod_has_no_token_of_the_api(user: User) -> None:
    user.apply(join_query("bare"))
    user.ready("bare")
    with pytest.raises(CommandFailed, match="No such file"):
        user.kubectl("exec", "bare-worker-0", "--", "ls", "/var/run/secrets/kubernetes.io")


def test_a_killed_redis_costs_nothing(user: User) -> None:
    """Its file is on a volume; whoever is acknowledged is in it."""
    user.apply(join_query("stored", replicas=2, scaling={"mode": "Manual"}))
    user.ready("stored")
    user.traffic("stored", "500x30")
    user.until("rows flow", lambda: user.status("stored").get("results", 0) > 0, 60)
    user.kubectl("delete", "pod", "joinery-redis-0", "--force", "--grace-period=0")
    user.exact()


def test_a_node_without_redis_can_be_drained(user: User) -> None:
    """The traffic stands beside Redis, since a drain would end it, too."""
    stays = user.read("pod", "joinery-redis-0")["spec"]["nodeName"]
    nodes = [one["metadata"]["name"] for one in json.loads(user.kubectl("get", "nodes", "-o", "json"))["items"]]
    chosen = [node for node in nodes if node != stays]
    user.apply(join_query("drained", replicas=2, scaling={"mode": "Manual"}))
    user.ready("drained")
    user.traffic("drained", "500x40", node=stays)
    user.until("rows flow", lambda: user.status("drained").get("results", 0) > 0, 60)
    try:
        user.kubectl("drain", chosen[0], "--ignore-daemonsets", "--delete-emptydir-data", "--force", timeout_s=120)
        user.exact()
    finally:
        user.kubectl("uncordon", chosen[0])


@pytest.mark.parametrize("subgroups", [2, 4])
def test_four_workers_in_sub_groups_keep_the_buffer_within_its_bound(user: User, subgroups: int) -> None:
    """Rows that wait peak at r t_d / 2 (1 + 1/n_g) in the paper; here with slack for a slow machine."""
    rate, epoch_s = 2000, 0.5
    query = join_query(
        "slots", replicas=4, scaling={"mode": "Manual"}, epochs={"distribution": "500ms", "subgroups": subgroups}
    )
    user.apply(query)
    user.until("four workers", lambda: user.status("slots").get("readyReplicas") == 4, 90)
    user.traffic("slots", f"{rate}x15")
    user.exact()
    slots = user.status("slots")["slots"]
    bound = 2 * rate * 24 * epoch_s / 2 * (1 + 1 / subgroups)
    assert (subgroups, "500ms") == (slots["subgroups"], slots["epoch"])
    assert 0 < slots["bufferPeakBytes"] < 3 * bound
