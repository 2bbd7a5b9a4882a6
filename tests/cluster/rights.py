"""What a service account may do, and what the API server's audit log says that it did: the two must be the same.

A right is (API group, resource with its subresource, verb). Namespaces are left out: an account has its rights in
all of those that its release serves.
"""

import json
from datetime import datetime
from typing import Any

import pytest

from tests.cluster.user import User

Right = tuple[str, str, str]


def check(user: User, account: str) -> None:
    """Every right of the account was used since its release came; whatever was refused is a defect, too."""
    if user.cluster.audit_log is None:
        pytest.skip("the audit log of this cluster is not ours to read")
    used, refused = asked_for(user, account)
    granted = granted_to(user, account)
    assert set() == refused
    assert granted, f"{account} has no role"
    assert set() == granted - used - _implied(used)
    assert set() == used - granted, "a right that another role gives"


def asked_for(user: User, account: str) -> tuple[set[Right], set[Right]]:
    """What it was allowed to do, and what it was not, since its namespace was made."""
    assert user.cluster.audit_log is not None
    name = f"system:serviceaccount:{user.namespace}:{account}"
    since = _moment(user.read("namespace", user.namespace)["metadata"]["creationTimestamp"])
    used, refused = set[Right](), set[Right]()
    for line in user.cluster.audit_log.read_text().splitlines():
        event = json.loads(line)
        is_its = event["user"]["username"] == name and "objectRef" in event
        if is_its and _moment(event["requestReceivedTimestamp"]) >= since:
            code = event.get("responseStatus", {}).get("code")
            (refused if code == 403 else used).add(_right(event["objectRef"], event["verb"]))
    return used, refused


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _right(place: dict[str, Any], verb: str) -> Right:
    below = f"/{place['subresource']}" if place.get("subresource") else ""
    return place.get("apiGroup", ""), place["resource"] + below, verb


def granted_to(user: User, account: str) -> set[Right]:
    """By every role that is bound to it, here or in the whole cluster."""
    found = json.loads(user.kubectl("get", "rolebindings,clusterrolebindings", "-A", "-o", "json"))["items"]
    rights = set[Right]()
    for binding in found:
        subjects = [(one["kind"], one.get("namespace"), one["name"]) for one in binding.get("subjects", ())]
        if ("ServiceAccount", user.namespace, account) in subjects:
            rights |= _of_role(user, binding)
    return rights


def _of_role(user: User, binding: dict[str, Any]) -> set[Right]:
    role = binding["roleRef"]
    place = ("-n", binding["metadata"]["namespace"]) if role["kind"] == "Role" else ()
    held = json.loads(user.cluster.kubectl("get", role["kind"], role["name"], *place, "-o", "json"))
    return {
        (group, resource, verb)
        for rule in held["rules"]
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }


def _implied(used: set[Right]) -> set[Right]:
    """Rights that a request needs beside the one that the log names it by."""
    # a server-side apply of what is not there yet is a patch in the log
    made = {(group, resource, "create") for group, resource, verb in used if verb == "patch"}
    if any(resource == "rolebindings" for _, resource, _ in used):
        group = "rbac.authorization.k8s.io"
        made |= {(group, kind, "bind") for kind in ("roles", "clusterroles")}
    return made
