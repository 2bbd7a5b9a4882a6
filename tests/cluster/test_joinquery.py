"""A JoinQuery in a cluster, as a user meets it: install, apply, push, read, scale, break. Results stay exact."""

import base64
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from joinery.cli.checking import verify_output
from joinery.cli.query_file import outputs, parsed
from joinery.elastic.guarded import replay
from tests.cluster.cache import home_folder
from tests.cluster.clusters import CommandFailed
from tests.cluster.user import ROOT, User, folder, join_query

EXAMPLES = [
    path
    for path in sorted((ROOT / "examples").glob("0*/query.yaml"))
    if "table:" not in path.read_text() and "source:" in path.read_text()
]
"""Those with a stored table need Spark: test_tables."""
WAITING = [ROOT / "examples" / name / "query.yaml" for name in ("08-results-in-spark", "quickstart")]
"""One waits for rows that somebody pushes, the other one takes its time."""
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
def test_every_example_runs_and_is_exact(user: User, batch: list[Path], tmp_path: Path) -> None:
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
    for example in batch:
        if user.cluster.audit_log is not None and "{claim: results}" in example.read_text():
            is_exact(example, tmp_path)


def is_exact(example: Path, scratch: Path) -> None:
    """What it wrote on its volume is what its sources give by the rules (`joinery verify`'s second comparison)."""
    copied = scratch / example.parent.name
    shutil.copytree(example.parent, copied)
    query = copied / "query.yaml"
    spec, said = parsed(query), list[str]()
    for path in outputs(spec, copied):
        shutil.copy(home_folder() / "volumes" / "results" / path.name, path)
    assert 0 == verify_output(query, spec, None, said.append), said


def test_examples_that_wait_are_ready_within_a_minute(user: User) -> None:
    for example in WAITING:
        user.kubectl("apply", "-f", str(example))
    for example in WAITING:
        user.ready(yaml.safe_load(example.read_text())["metadata"]["name"], 60)


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


COUNT = """
import sys, pyarrow as pa, redis
entries = redis.Redis.from_url(sys.argv[1]).xrange("pairs")
print(sum(pa.ipc.open_stream(entry[b"arrow"]).read_all().num_rows for _, entry in entries))
"""
"""Rows in a Redis Stream."""


def test_the_redis_of_a_query_and_of_its_sink_is_named_by_a_secret(user: User) -> None:
    """The bundled one, by a Secret of the user. What lies there is not ours to delete, and that is told."""
    url = base64.b64decode(user.read("secret", "joinery-redis")["data"]["url"]).decode()
    user.kubectl("create", "secret", "generic", "my-redis", f"--from-literal=url={url}")
    try:
        sinks = [{"redisStream": {"key": "pairs"}}]
        user.apply(join_query("elsewhere", redis={"secretName": "my-redis"}, sinks=sinks))
        user.ready("elsewhere")
        user.traffic("elsewhere", "300x5")
        wanted = user.exact()["wanted"]
        user.finished("elsewhere")
        said = user.kubectl("exec", "deploy/joinery-operator", "--", "python", "-c", COUNT, url)
        assert wanted == int(said)
        user.kubectl("delete", "joinq", "elsewhere", "--wait=true")
        assert any("yours to delete" in one for one in user.events("elsewhere", "CleanupFailed"))
    finally:
        ours = "redis-cli --scan --pattern 'joinery:*elsewhere*' | xargs -r redis-cli del pairs"
        user.kubectl("exec", "joinery-redis-0", "--", "sh", "-c", ours)
        user.kubectl("delete", "secret", "my-redis")


def test_a_paused_query_is_left_as_it_is_until_it_is_resumed(user: User) -> None:
    user.apply(join_query("paused"))
    user.ready("paused")
    user.kubectl("annotate", "joinq", "paused", "joinery.dev/paused=true")
    user.until("it says so", lambda: user.status("paused")["phase"] == "Paused", 20)
    user.kubectl("scale", "joinq/paused", "--replicas=2")
    user.kubectl("delete", "service", "paused-worker")
    time.sleep(5)
    assert [] == user.all("services", "joinery.dev/joinquery=paused,joinery.dev/role=worker")
    assert 1 == user.read("statefulset", "paused-worker")["spec"]["replicas"]
    user.kubectl("annotate", "joinq", "paused", "joinery.dev/paused-")
    user.until("two workers", lambda: user.status("paused").get("readyReplicas") == 2, 60)
    assert 1 == len(user.all("services", "joinery.dev/joinquery=paused,joinery.dev/role=worker"))


def test_what_only_the_operator_can_see_is_told_in_the_status(user: User) -> None:
    user.apply(join_query("stalled", join={"on": ["nothing"]}))
    user.until("it stalls", lambda: user.condition("stalled", "Stalled") == "True", 30)
    assert any("spec.join.on[0]" in one for one in user.events("stalled", "ValidationError"))


def test_a_node_without_redis_can_be_drained(user: User) -> None:
    """The traffic stands beside Redis, since a drain would end it, too."""
    stays = user.read("pod", "joinery-redis-0")["spec"]["nodeName"]
    chosen = [node for node in user.nodes() if node != stays]
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
    status = user.status("slots")
    bound = 2 * rate * 24 * epoch_s / 2 * (1 + 1 / subgroups)
    assert {2: [0, 0, 1, 1], 4: [0, 1, 2, 3]}[subgroups] == [one["slot"] for one in status["workers"]]
    assert (subgroups, "500ms") == (status["slots"]["subgroups"], status["slots"]["epoch"])
    assert 0 < status["slots"]["bufferPeakBytes"] < 3 * bound
