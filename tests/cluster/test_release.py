"""The chart as a user installs, upgrades and removes it; rights as the API server saw them used."""

import pytest

from tests.cluster import rights
from tests.cluster.clusters import CommandFailed
from tests.cluster.conftest import RELEASE
from tests.cluster.user import CHART, User, join_query


def test_the_charts_own_test_passes(user: User) -> None:
    said = user.cluster.helm("test", RELEASE, "--namespace", RELEASE, timeout_s=120)
    assert "Succeeded" in said


def test_every_object_would_be_taken_by_the_api_server(user: User) -> None:
    rendered = user.cluster.helm("get", "manifest", RELEASE, "--namespace", RELEASE)
    user.kubectl("apply", "--dry-run=server", "-f", "-", stdin=rendered)


def test_an_upgrade_and_its_rollback_roll_every_pod_and_keep_the_queries_exact(user: User) -> None:
    """Another level of the logs is an environment of all pods, as another image would be."""
    user.apply(join_query("kept", replicas=2, scaling={"mode": "Manual"}))
    user.ready("kept")
    user.traffic("kept", "500x60")
    user.until("rows flow", lambda: user.status("kept").get("results", 0) > 0, 60)
    upgrade = ("upgrade", RELEASE, str(CHART), "--namespace", RELEASE, "--reuse-values", "--wait", "--timeout", "2m")
    user.cluster.helm(*upgrade, "--set", "logs.level=debug", timeout_s=180)
    user.until("every pod is of the new release", lambda: {"debug"} == _levels(user), 90)
    user.until("it serves", lambda: user.condition("kept", "Ready") == "True", 60)
    user.cluster.helm("rollback", RELEASE, "--namespace", RELEASE, "--wait", "--timeout", "2m", timeout_s=180)
    user.until("every pod is of the old one", lambda: {"info"} == _levels(user), 90)
    user.exact()
    user.clear()


def _levels(user: User) -> set[str]:
    """Of the logs of the query's pods; a pod on its way out counts."""
    pods = user.all("pods", "joinery.dev/joinquery=kept")
    told = [one for pod in pods for one in pod["spec"]["containers"][0]["env"]]
    return {one["value"] for one in told if one["name"] == "JOINERY_LOG_LEVEL"}


def test_the_operator_may_do_what_it_does_and_nothing_else(user: User) -> None:
    """Every right of its role was used, as the audit log says; whatever was refused is a defect, too."""
    stall_a_load(user)
    rights.check(user, "joinery-operator")


def stall_a_load(user: User) -> None:
    """A LoadTest where Spark is not switched on: all that the operator may do is to say so."""
    spec = {"query": "none", "profile": {"constant": {"rate": 1}}, "duration": "1s"}
    user.apply({"apiVersion": "joinery.dev/v1alpha1", "kind": "LoadTest", "metadata": {"name": "no"}, "spec": spec})
    user.until("it stalls", lambda: user.read("loadt", "no").get("status", {}).get("phase") == "Stalled", 60)
    assert any("spark.enabled=true" in one for one in user.events("no", "ValidationError"))
    user.kubectl("delete", "loadt", "no")


def test_an_uninstall_refuses_while_there_are_queries_and_then_leaves_nothing(user: User) -> None:
    """Last: it takes the release away."""
    upgrade = ("upgrade", RELEASE, str(CHART), "--namespace", RELEASE, "--reuse-values", "--wait")
    user.cluster.helm(*upgrade, "--set", "uninstall.removeQueries=false", timeout_s=180)
    user.apply(join_query("left"))
    user.ready("left")
    with pytest.raises(CommandFailed):
        user.cluster.helm("uninstall", RELEASE, "--namespace", RELEASE, "--wait", timeout_s=300)
    assert user.condition("left", "Ready") == "True"
    if user.cluster.audit_log is not None:
        looked = {("joinery.dev", "joinqueries", "list")}
        assert (looked, set()) == rights.asked_for(user, "joinery-uninstall")
    user.kubectl("delete", "joinq/left")
    user.cluster.helm("uninstall", RELEASE, "--namespace", RELEASE, "--wait", timeout_s=300)
    kinds = "pods,deployments,statefulsets,services,configmaps,secrets,roles,rolebindings,jobs,networkpolicies"
    found = ("get", kinds, "-l", "app.kubernetes.io/part-of=joinery", "-o", "name")
    user.until("nothing is left", lambda: not user.kubectl(*found).strip(), 60)
    assert "joinqueries.joinery.dev" in user.kubectl("get", "crds", "-o", "name")
