"""A JoinQuery in a cluster with worse luck: pods killed while groups move, edits of the rule."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from joinery.elastic.guarded import replay
from tests.cluster.user import User, join_query

HELD: dict[str, Any] = {"mode": "Manual"}


@pytest.fixture(autouse=True)
def cleared(user: User) -> Iterator[None]:
    """No test sees what another one left."""
    yield
    user.clear()


def groups(user: User, query: str) -> dict[str, int]:
    """How many groups each worker has."""
    return {one["name"]: one["groups"] for one in user.status(query).get("workers", ())}


@pytest.mark.parametrize("role", ["worker", "gateway", "collector", "redis"])
def test_a_pod_that_is_killed_while_groups_move_costs_nothing(user: User, role: str) -> None:
    """Thirty groups are on their way when four workers become two, and thirty when these become one."""
    user.apply(join_query("moving", replicas=4, scaling=HELD))
    user.until("four workers", lambda: user.status("moving").get("readyReplicas") == 4, 90)
    user.traffic("moving", "500x60")
    user.until("rows flow", lambda: user.status("moving").get("results", 0) > 0, 60)
    if min(groups(user, "moving").values()) == 0:
        pytest.skip("the first worker came so early that it has all groups: nothing would move")
    victim = "joinery-redis-0" if role == "redis" else ""
    for replicas in (2, 1):
        seen = user.status("moving").get("migrationsTotal", 0)
        user.kubectl("scale", "joinq/moving", f"--replicas={replicas}")
        user.until("groups move", lambda seen=seen: user.status("moving").get("migrationsTotal", 0) != seen, 90)  # type: ignore[misc]
        chosen = user.all("pods", f"joinery.dev/joinquery=moving,joinery.dev/role={role}")
        pod = victim or chosen[0]["metadata"]["name"]  # a worker that takes groups over; the others may be gone
        user.kubectl("delete", "pod", pod, "--force", "--grace-period=0")
    user.exact()


def test_edits_of_the_rule_are_obeyed_under_a_steady_load_as_the_core_would(user: User) -> None:
    """What the operator decides is what `core` decides from the same load, before and after each edit."""
    query = join_query(
        "ruled", replicas=1, join={"on": ["k"], "method": "nested-loop"}, worker={"speed": 200000, "buffer": "64Ki"},
        epochs={"reorganization": "1s"},
        scaling={"max": 3, "scaleUp": {"stabilization": "1s"}, "scaleDown": {"stabilization": "3s"}},
    )  # fmt: skip
    user.apply(query)
    user.ready("ruled")
    user.traffic("ruled", "1600x25,300x75")
    user.until("it grows", lambda: user.status("ruled").get("desiredReplicas", 0) > 1, 60)
    for scaling in ({"beta": 0.9}, {"minSuppliers": 2}, {"min": 2}):
        user.kubectl("patch", "joinq", "ruled", "--type=merge", "-p", json.dumps({"spec": {"scaling": scaling}}))
        field = next(iter(scaling))
        user.until(
            "it is told", lambda field=field: any(field in one for one in user.events("ruled", "SpecChanged")), 30
        )  # type: ignore[misc]
    user.until("it obeys", lambda: user.status("ruled").get("desiredReplicas", 0) >= 2, 30)
    user.exact()
    decisions = user.decisions("ruled")
    assert decisions
    assert decisions == [replay(one) for one in decisions]


def test_a_deleted_query_leaves_no_key_in_redis(user: User) -> None:
    user.apply(join_query("keyless"))
    user.ready("keyless")
    user.traffic("keyless", "200x5")
    user.exact()

    def keys() -> list[str]:
        found = user.kubectl("exec", "joinery-redis-0", "--", "redis-cli", "--scan", "--pattern", "*keyless*")
        return found.split()

    assert keys()
    user.kubectl("delete", "joinq", "keyless", "--wait=true")
    assert [] == keys()


def test_pods_are_placed_labelled_and_sized_as_the_query_says(user: User) -> None:
    node = user.read("pod", "joinery-redis-0")["spec"]["nodeName"]
    asked = {
        "labels": {"team": "sales"}, "nodeSelector": {"kubernetes.io/hostname": node},
        "gateway": {"resources": {"limits": {"memory": "1Gi"}}},
    }  # fmt: skip
    user.kubectl("create", "secret", "generic", "my-token", "--from-literal=token=sesame")
    try:
        user.apply(join_query("placed", pods=asked, access={"secretName": "my-token"}))
        user.ready("placed")
        found = user.all("pods", "team=sales,joinery.dev/joinquery=placed")
        assert 3 == len(found)
        assert {node} == {one["spec"]["nodeName"] for one in found}
        user.traffic("placed", "200x5", token="sesame")  # noqa: S106
        user.exact()
    finally:
        user.kubectl("delete", "secret", "my-token")


def test_a_query_may_be_said_in_sql(user: User) -> None:
    query = join_query("said")
    del query["spec"]["join"]
    for stream in query["spec"]["streams"]:
        del stream["window"]
    query["spec"]["sql"] = "SELECT * FROM a JOIN b USING (k) WITHIN 5 SECONDS"
    user.apply(query)
    user.ready("said")
    user.traffic("said", "200x5")
    user.exact()
