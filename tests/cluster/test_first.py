"""A first query, as a user meets it: apply, push, read, look, change, delete. Three queries run side by side."""

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.cluster.clusters import CommandFailed
from tests.cluster.conftest import RELEASE
from tests.cluster.user import CHART, ROOT, User, join_query

TOKEN = "sesame"  # noqa: S105
FOREIGN = ("monitoring.coreos.com/", "cert-manager.io/")
LEFT = ("pods", "services", "configmaps", "secrets", "statefulsets", "deployments", "pdb", "networkpolicies")


def placed(user: User) -> str:
    """The node that the pods of one of them are to run on."""
    return str(user.read("pod", "joinery-redis-0")["spec"]["nodeName"])


@pytest.fixture(scope="module")
def queries(user: User) -> Iterator[User]:
    """One plain, one with wishes for its pods and a token of its own, one in SQL."""
    user.kubectl("create", "secret", "generic", "my-token", f"--from-literal=token={TOKEN}")
    wishes = {
        "labels": {"team": "sales"}, "nodeSelector": {"kubernetes.io/hostname": placed(user)},
        "gateway": {"resources": {"limits": {"memory": "1Gi"}}},
    }  # fmt: skip
    said = join_query("said")
    del said["spec"]["join"]
    for stream in said["spec"]["streams"]:
        del stream["window"]
    said["spec"]["sql"] = "SELECT * FROM a JOIN b USING (k) WITHIN 5 SECONDS"
    user.apply(join_query("hello", replicas=2))
    user.ready("hello")
    user.apply(join_query("wishes", pods=wishes, access={"secretName": "my-token"}))
    user.apply(said)
    user.traffic("hello", "500x25")
    user.ready("said")
    user.traffic("said", "200x5", name="to-said")
    yield user
    user.clear()
    user.kubectl("delete", "secret", "my-token")


def test_the_api_server_would_take_every_example_and_every_object_of_every_preset(user: User) -> None:
    """But for what other operators define, and the pod of `helm test`, whose account is not made by a dry run."""
    examples = [word for path in sorted((ROOT / "examples").glob("*/query.yaml")) for word in ("-f", str(path))]
    assert examples
    user.kubectl("apply", "--dry-run=server", *examples)
    for preset in sorted((ROOT / "helm").glob("*.yaml")):
        words = ("template", "trial", str(CHART), "--namespace", RELEASE, "--values", str(preset))
        objects = [one for one in yaml.safe_load_all(user.cluster.helm(*words)) if one]
        known = [one for one in objects if not one["apiVersion"].startswith(FOREIGN) and one["kind"] != "Pod"]
        assert len(known) > 10
        user.apply_dry({"apiVersion": "v1", "kind": "List", "items": known})


def test_the_groups_are_shared_out_before_the_first_row_whoever_came_first(queries: User) -> None:
    assert [30, 30] == list(queries.groups("hello").values())


def test_the_status_shows_what_somebody_on_call_wants_to_know(queries: User) -> None:
    wanted = {"lag", "oldestUncommitted", "late", "rejected", "stateBytes", "lastCheckpoint"}
    queries.until(f"{wanted} in the status", lambda: wanted <= set(queries.status("hello")), 30)


def test_a_workers_pod_has_no_token_of_the_api(queries: User) -> None:
    with pytest.raises(CommandFailed, match="No such file"):
        queries.kubectl("exec", "hello-worker-0", "--", "ls", "/var/run/secrets/kubernetes.io")


def test_thresholds_change_while_it_runs_and_other_things_are_refused(queries: User) -> None:
    patch = ("patch", "joinq", "hello", "--type=merge", "-p")
    queries.kubectl(*patch, json.dumps({"spec": {"scaling": {"beta": 0.25}}}))
    queries.until("it is told", lambda: any("beta" in one for one in queries.events("hello", "SpecChanged")), 30)
    with pytest.raises(CommandFailed, match=r"spec\.partitions"):
        queries.kubectl(*patch, json.dumps({"spec": {"partitions": 7}}))


def test_pods_are_placed_labelled_and_sized_as_the_query_says(queries: User) -> None:
    queries.ready("wishes")
    found = queries.all("pods", "team=sales,joinery.dev/joinquery=wishes")
    assert 3 == len(found)
    assert {placed(queries)} == {one["spec"]["nodeName"] for one in found}
    queries.traffic("wishes", "200x5", name="to-wishes", token=TOKEN)  # pods of a query that has ended are gone
    queries.exact("to-wishes")


def test_a_query_may_be_said_in_sql(queries: User) -> None:
    queries.exact("to-said")


def test_rows_pushed_through_the_gateway_come_back_joined(queries: User) -> None:
    queries.exact()
    queries.finished("hello")
    assert queries.status("hello")["results"] > 0


def test_a_deleted_query_leaves_nothing_neither_in_the_cluster_nor_in_redis(queries: User) -> None:
    def keys() -> list[str]:
        found = queries.kubectl("exec", "joinery-redis-0", "--", "redis-cli", "--scan", "--pattern", "*hello*")
        return found.split()

    assert keys()
    queries.kubectl("delete", "joinq", "hello", "--wait=true")
    assert [] == keys()
    for kind in LEFT:
        queries.until(f"no {kind}", lambda kind=kind: not queries.all(kind, "joinery.dev/joinquery=hello"), 30)  # type: ignore[misc]
