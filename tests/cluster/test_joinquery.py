"""A JoinQuery in a cluster, as a user meets it: install, apply, push, read, scale, break. Results stay exact."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from joinery.elastic.guarded import replay
from tests.cluster.clusters import CommandFailed
from tests.cluster.user import ROOT, User, folder, join_query

EXAMPLES = [
    path
    for path in sorted((ROOT / "examples").glob("0*/query.yaml"))
    if "table:" not in path.read_text() and "source:" in path.read_text()
]
"""Those with a stored table need Spark: test_tables. One whose streams are pushed waits for somebody."""
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


@pytest.mark.parametrize("batch", [EXAMPLES[0::2], EXAMPLES[1::2]], ids=("even", "odd"))
def test_every_example_runs(user: User, batch: list[Any]) -> None:
    """Three at a time: each has to be ready within a minute."""
    texts = {yaml.safe_load(example.read_text())["metadata"]["name"]: example.read_text() for example in batch}
    for text in texts.values():
        user.apply(text)
    for name in texts:
        user.until(
            f"{name} runs", lambda name=name: user.status(name).get("phase") in ("Running", "Scaling", "Finished")
        )  # type: ignore[misc]
    for name in texts:
        user.finished(name)
        assert user.status(name)["results"] > 0


def edited(user: User, query: str, **scaling: Any) -> None:
    """An edit of the rule, which is told when it is in force."""
    user.kubectl("patch", "joinq", query, "--type=merge", "-p", json.dumps({"spec": {"scaling": scaling}}))
    for field in scaling:
        user.until(
            f"{field} is told", lambda field=field: any(field in one for one in user.events(query, "SpecChanged")), 30
        )  # type: ignore[misc]


def test_the_degree_follows_the_load_and_edits_of_the_rule_as_the_core_would(user: User) -> None:
    """What the operator decides is what `core` decides from the same load, before and after each edit."""
    user.apply(join_query("step", join={"on": ["k"], "method": "nested-loop"}, **SLOW))
    user.ready("step")
    user.traffic("step", "400x5,1600x40,200x40")
    user.until("the degree grows", lambda: user.status("step").get("desiredReplicas", 0) > 1, 60)
    edited(user, "step", beta=0.9)
    edited(user, "step", minSuppliers=2)
    user.until("moves are told", lambda: user.events("step", "PartitionGroupMigrated"), 60)
    decision = user.status("step")["scaling"]["lastDecision"]
    assert {"nSup", "nCon", "beta", "busy", "action", "because"} <= set(decision)
    user.until("the degree shrinks", lambda: user.events("step", "ScaledDown"), 120)
    edited(user, "step", min=2)
    user.until("it obeys", lambda: user.status("step").get("desiredReplicas", 0) >= 2, 30)
    user.exact()
    decisions = user.decisions("step")
    assert {"Grow", "Shrink"} == {type(one).__name__ for one in decisions}
    assert decisions == [replay(one) for one in decisions]
    moved = user.events("step", "PartitionGroupMigrated")
    assert all("pause=" in one and "->" in one for one in moved)


def test_a_person_scales_and_is_obeyed_though_the_operator_is_killed_meanwhile(user: User) -> None:
    user.apply(join_query("scaled"))
    user.ready("scaled")
    user.traffic("scaled", "500x40")
    user.kubectl("scale", "joinq/scaled", "--replicas=4")
    user.until("it is told", lambda: user.events("scaled", "ManualScaleHeld"), 30)
    operator = user.all("pods", "app.kubernetes.io/component=operator")[0]["metadata"]["name"]
    user.kubectl("delete", "pod", operator, "--force", "--grace-period=0")
    user.until("four workers", lambda: user.status("scaled").get("readyReplicas") == 4, 90)
    assert user.status("scaled")["scaling"]["heldUntil"]
    user.kubectl("scale", "joinq/scaled", "--replicas=1")
    user.until("one worker", lambda: user.status("scaled").get("replicas") == 1, 90)
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


def test_a_node_without_redis_can_be_drained(user: User) -> None:
    """The traffic stands beside Redis, since a drain would end it, too."""
    stays = user.read("pod", "joinery-redis-0")["spec"]["nodeName"]
    nodes = [one["metadata"]["name"] for one in json.loads(user.kubectl("get", "nodes", "-o", "json"))["items"]]
    chosen = [node for node in nodes if node != stays]
    user.apply(join_query("drained", replicas=2, scaling={"mode": "Manual"}))
    user.ready("drained")
    user.traffic("drained", "500x30", node=stays)
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
    user.traffic("slots", f"{rate}x10")
    user.exact()
    slots = user.status("slots")["slots"]
    bound = 2 * rate * 24 * epoch_s / 2 * (1 + 1 / subgroups)
    assert (subgroups, "500ms") == (slots["subgroups"], slots["epoch"])
    assert 0 < slots["bufferPeakBytes"] < 3 * bound
