"""The cluster of the tests is a real one, and our image runs in it as a hardened pod."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.clusters import Cluster

NAMESPACE = "joinery-smoke"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "help"},
    "spec": {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "runAsGroup": 10001,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    },
}


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    cluster.kubectl("create", "namespace", NAMESPACE)
    yield NAMESPACE
    cluster.kubectl("delete", "namespace", NAMESPACE)


def pod_of(image: str, script: str) -> str:
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-ec", script],
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108  of the pod
        "securityContext": {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return json.dumps(POD | {"spec": POD["spec"] | {"containers": [container]}})


def said_by_pod(cluster: Cluster, namespace: str, image: str, script: str) -> str:
    cluster.kubectl("apply", "-n", namespace, "-f", "-", stdin=pod_of(image, script))
    cluster.kubectl("wait", "-n", namespace, "pod/help", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")
    return cluster.kubectl("logs", "-n", namespace, "help")


def test_two_nodes_are_ready(cluster: Cluster) -> None:
    nodes = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    ready = [
        node["metadata"]["name"]
        for node in nodes
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready" and condition["status"] == "True"
    ]
    assert len(ready) >= 2
    assert len(nodes) == len(ready)


def test_a_role_starts_in_the_image_as_nobody_special_on_a_root_that_is_read_only(
    cluster: Cluster, namespace: str
) -> None:
    script = "id -u; if touch /opt/x 2>/dev/null; then echo writable; fi; python -m joinery.gateway --help"
    said = said_by_pod(cluster, namespace, cluster.joinery_image, script)
    assert "10001" == said.splitlines()[0]
    assert "writable" not in said.split()
    assert "--listen" in said


def test_the_kernels_of_the_image_need_no_compiling(cluster: Cluster, namespace: str) -> None:
    script = (
        "export NUMBA_DEBUG_CACHE=1; python -c 'import numpy as np; from joinery.partition.hashing import groups_of; "
        "groups_of(np.arange(5, dtype=np.uint64), 4)'"
    )
    said = said_by_pod(cluster, namespace, cluster.joinery_image, script)
    assert "data loaded" in said
    assert "data saved" not in said


def test_the_audit_log_tells_who_asked_for_what(cluster: Cluster, namespace: str) -> None:
    if cluster.audit_log is None:
        pytest.skip("the audit log of this cluster is not ours to read")
    asked = [json.loads(line) for line in cluster.audit_log.read_text().splitlines()]
    created = [
        event["user"]["username"]
        for event in asked
        if event["verb"] == "create" and event.get("objectRef", {}).get("name") == namespace
        and event["objectRef"]["resource"] == "namespaces"
    ]  # fmt: skip
    assert {"admin"} == set(created)


def test_helm_talks_to_the_cluster(cluster: Cluster) -> None:
    assert isinstance(json.loads(cluster.helm("list", "--all-namespaces", "--output", "json")), list)
