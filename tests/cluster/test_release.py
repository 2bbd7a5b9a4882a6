"""The chart as a user installs, upgrades and removes it; rights as the API server saw them used."""

import json
from typing import Any

import pytest

from tests.cluster.clusters import CommandFailed
from tests.cluster.conftest import RELEASE
from tests.cluster.user import CHART, User, join_query


def test_the_charts_own_test_passes(user: User) -> None:
    said = user.cluster.helm("test", RELEASE, "--namespace", RELEASE, timeout_s=120)
    assert "Succeeded" in said


def test_every_object_would_be_taken_by_the_api_server(user: User) -> None:
    rendered = user.cluster.helm("get", "manifest", RELEASE, "--namespace", RELEASE)
    user.kubectl("apply", "--dry-run=server", "-f", "-", stdin=rendered)


def test_an_upgrade_and_its_rollback_keep_the_queries_running(user: User) -> None:
    user.apply(join_query("kept", scaling={"mode": "Manual"}))
    user.ready("kept")
    user.traffic("kept", "500x30")
    upgrade = ("upgrade", RELEASE, str(CHART), "--namespace", RELEASE, "--reuse-values", "--wait", "--timeout", "2m")
    user.cluster.helm(*upgrade, "--set", "operator.holdSeconds=30", timeout_s=180)
    user.cluster.helm("rollback", RELEASE, "--namespace", RELEASE, "--wait", "--timeout", "2m", timeout_s=180)
    user.exact()
    user.clear()


def test_the_operator_may_do_what_it_does_and_nothing_else(user: User) -> None:
    """Every right of its role was used, as the audit log says; whatever was refused is a defect, too."""
    if user.cluster.audit_log is None:
        pytest.skip("the audit log of this cluster is not ours to read")
    _stall_a_load(user)
    account = f"system:serviceaccount:{RELEASE}:joinery-operator"
    used, refused = set(), set()
    for line in user.cluster.audit_log.read_text().splitlines():
        event = json.loads(line)
        if event["user"]["username"] == account and "objectRef" in event:
            right = _right(event["objectRef"], event["verb"])
            (refused if event.get("responseStatus", {}).get("code") == 403 else used).add(right)
    granted = {
        _right({"apiGroup": group, "resource": resource}, verb)
        for rule in _rules(user)
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }
    assert set() == refused
    # a server-side apply of what is not there yet is a patch in the log, and needs both rights
    applied = {(group, resource, "create") for group, resource, verb in used if verb == "patch"}
    assert set() == granted - used - applied


def _stall_a_load(user: User) -> None:
    """A LoadTest where Spark is not switched on: all that the operator may do is to say so."""
    spec = {"query": "none", "profile": {"constant": {"rate": 1}}, "duration": "1s"}
    user.apply({"apiVersion": "joinery.dev/v1alpha1", "kind": "LoadTest", "metadata": {"name": "no"}, "spec": spec})
    user.until("it stalls", lambda: user.read("loadt", "no").get("status", {}).get("phase") == "Stalled", 60)
    assert any("spark.enabled=true" in one for one in user.events("no", "ValidationError"))
    user.kubectl("delete", "loadt", "no")


def _right(place: dict[str, Any], verb: str) -> tuple[str, str, str]:
    below = f"/{place['subresource']}" if place.get("subresource") else ""
    return place.get("apiGroup", ""), place["resource"] + below, verb


def _rules(user: User) -> list[Any]:
    role = json.loads(user.kubectl("get", "clusterroles", "-o", "json"))["items"]
    found = [one for one in role if one["metadata"]["name"].endswith("joinery-operator")]
    assert 1 == len(found)
    return list(found[0]["rules"])


def test_an_uninstall_refuses_while_there_are_queries_and_then_leaves_nothing(user: User) -> None:
    """Last: it takes the release away."""
    upgrade = ("upgrade", RELEASE, str(CHART), "--namespace", RELEASE, "--reuse-values", "--wait")
    user.cluster.helm(*upgrade, "--set", "uninstall.removeQueries=false", timeout_s=180)
    user.apply(join_query("left"))
    user.ready("left")
    with pytest.raises(CommandFailed):
        user.cluster.helm("uninstall", RELEASE, "--namespace", RELEASE, "--wait", timeout_s=300)
    assert user.condition("left", "Ready") == "True"
    user.kubectl("delete", "joinq/left")
    user.cluster.helm("uninstall", RELEASE, "--namespace", RELEASE, "--wait", timeout_s=300)
    kinds = "pods,deployments,statefulsets,services,configmaps,secrets,roles,rolebindings,jobs,networkpolicies"
    found = ("get", kinds, "-l", "app.kubernetes.io/part-of=joinery", "-o", "name")
    user.until("nothing is left", lambda: not user.kubectl(*found).strip(), 60)
    assert "joinqueries.joinery.dev" in user.kubectl("get", "crds", "-o", "name")
