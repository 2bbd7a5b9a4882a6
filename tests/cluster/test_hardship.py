"""A JoinQuery in a cluster with worse luck: pods killed under load and while groups move, a node that others burn."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.clusters import place
from tests.cluster.needs import Missing
from tests.cluster.user import User, join_query

HELD: dict[str, Any] = {"mode": "Manual"}
BURN = "import os\nfor _ in range(20): os.fork() or exec('while True: pass')\nos.wait()"


@pytest.fixture(autouse=True)
def cleared(user: User) -> Iterator[None]:
    """No test sees what another one left."""
    yield
    user.clear()


def kill(user: User, query: str, role: str) -> None:
    """A pod of this role: the first worker, which takes groups over when others leave."""
    found = user.all("pods", f"joinery.dev/joinquery={query},joinery.dev/role={role}")
    pod = "joinery-redis-0" if role == "redis" else found[0]["metadata"]["name"]
    user.kubectl("delete", "pod", pod, "--force", "--grace-period=0")


@pytest.mark.parametrize(("first", "second"), [("worker", "gateway"), ("collector", "redis")])
def test_pods_killed_under_load_and_while_groups_move_cost_nothing(user: User, first: str, second: str) -> None:
    """Thirty groups are on their way when four workers become two, and thirty when these become one."""
    user.apply(join_query("moving", replicas=4, scaling=HELD))
    user.until("four workers", lambda: user.status("moving").get("readyReplicas") == 4, 90)
    user.until("each has groups", lambda: sorted(user.groups("moving").values()) == [15] * 4, 30)
    user.traffic("moving", "500x60")
    user.until("rows flow", lambda: user.status("moving").get("results", 0) > 0, 60)
    kill(user, "moving", first)
    for replicas, role in ((2, first), (1, second)):
        user.until("all are there", lambda: user.condition("moving", "Ready") == "True", 90)
        seen = user.status("moving").get("migrationsTotal", 0)
        user.kubectl("scale", "joinq/moving", f"--replicas={replicas}")
        user.until("groups move", lambda seen=seen: user.status("moving").get("migrationsTotal", 0) != seen, 90)  # type: ignore[misc]
        kill(user, "moving", role)
    kill(user, "moving", second)
    user.exact()


def give_one_cpu(node: str) -> None:
    """The pods that the node has now use no other one, whatever they have to do: as if it were a machine of its own."""
    there = sorted(os.sched_getaffinity(0))
    if len(there) < 2:
        pytest.skip("found 1 CPU, wanted one for a node and another one for the rest")
    try:
        place().confine(node, str(there[-1]))
    except Missing as missing:
        pytest.skip(str(missing))


def neighbour(user: User, node: str) -> None:
    """Somebody else's Deployment, that asks for a CPU of the node and has more to do than it can."""
    container = {
        "name": "busy", "image": user.cluster.joinery_image, "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-c", BURN], "resources": {"requests": {"cpu": "1"}},
    }  # fmt: skip
    pod = {"containers": [container], "nodeName": node, "terminationGracePeriodSeconds": 1}
    labels = {"app": "neighbour"}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    user.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "neighbour"}, "spec": spec})
    user.kubectl("rollout", "status", "deployment/neighbour", "--timeout=60s")
    give_one_cpu(node)


@pytest.fixture(name="nodes")
def two_nodes(user: User) -> Iterator[tuple[str, str]]:
    """The one with Redis, and another one, on which nothing of ours runs."""
    stays = user.read("pod", "joinery-redis-0")["spec"]["nodeName"]
    chosen = next(name for name in user.nodes() if name != stays)
    user.kubectl("drain", chosen, "--ignore-daemonsets", "--delete-emptydir-data", "--force", timeout_s=120)
    yield stays, chosen
    user.kubectl("uncordon", chosen)
    user.kubectl("delete", "deployment", "neighbour", "--ignore-not-found")


def test_a_worker_slowed_by_load_on_its_node_loses_groups(user: User, nodes: tuple[str, str]) -> None:
    """Nothing moves while each of the two has a node to itself. Then somebody else's work comes to the node of one."""
    stays, chosen = nodes
    user.apply(join_query(
        "slowed", scaling=HELD, join={"on": ["k"], "method": "nested-loop"}, epochs={"reorganization": "1s"},
        worker={"resources": {"requests": {"cpu": "50m"}}, "buffer": "256Ki"}, partitions=8,
    ))  # fmt: skip
    user.ready("slowed", 90)
    user.kubectl("uncordon", chosen)
    user.kubectl("scale", "joinq/slowed", "--replicas=2")
    user.until("each has groups", lambda: list(user.groups("slowed").values()) == [4, 4], 60)
    pods = user.all("pods", "joinery.dev/joinquery=slowed")
    assert ["slowed-worker-1"] == [one["metadata"]["name"] for one in pods if one["spec"]["nodeName"] == chosen]
    give_one_cpu(chosen)
    user.traffic("slowed", "12000x50", keys=1_000_000, node=stays)
    user.until("windows are full", lambda: user.status("slowed").get("results", 0) > 4000, 60)
    assert {"worker-0": 4, "worker-1": 4} == user.groups("slowed")
    neighbour(user, chosen)
    user.until("it loses groups", lambda: user.groups("slowed").get("worker-1", 4) < 4, 60)
    moved = [one for one in user.events("slowed", "PartitionGroupMigrated") if "worker-1->worker-0" in one]
    assert [one for one in moved if "lost" not in one], "it was slow, and not gone"
    user.exact()
