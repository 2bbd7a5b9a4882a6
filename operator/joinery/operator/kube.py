"""The few calls of the Kubernetes API that the operator makes itself; kopf watches, this writes.

Children are written by server-side apply with one field manager, so that what others set on them (a mesh's sidecar, an
annotation) stays, and what we no longer want goes.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from joinery.operator.children import Manifest

MANAGER: Final = "joinery-operator"
TIMEOUT_S: Final = 15.0

PLURALS: Final = {
    "ConfigMap": "configmaps",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Secret": "secrets",
    "Service": "services",
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "NetworkPolicy": "networkpolicies",
    "JoinQuery": "joinqueries",
    "LoadTest": "loadtests",
    "Job": "jobs",
    "ServiceAccount": "serviceaccounts",
    "RoleBinding": "rolebindings",
    "Pod": "pods",
}
REFUSALS: Final = (400, 403, 422)
"""Answers of the API server that are about what was sent; others are about the server."""
_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"


class Kube:
    """Calls with a deadline; `ApiException` if the API server refuses."""

    def __init__(self) -> None:
        try:
            config.load_incluster_config()  # type: ignore[no-untyped-call]
        except config.ConfigException:
            config.load_kube_config()  # type: ignore[no-untyped-call]
        self._api = client.ApiClient()

    def apply(self, manifest: Manifest) -> Manifest:
        """Server-side apply; the object as it is then."""
        path = _path(manifest["apiVersion"], manifest["kind"], manifest["metadata"]["namespace"])
        path = f"{path}/{manifest['metadata']['name']}"
        return self._call("PATCH", path, manifest, _APPLY, {"fieldManager": MANAGER, "force": "true"})

    def patch_status(self, namespace: str, name: str, status: dict[str, Any], kind: str = "JoinQuery") -> Manifest:
        """Change the status of an object of ours; what is None is taken out."""
        path = f"{_path('joinery.dev/v1alpha1', kind, namespace)}/{name}/status"
        return self._call("PATCH", path, {"status": status}, _MERGE, {"fieldManager": MANAGER})

    def read(self, version: str, kind: str, namespace: str, name: str) -> Manifest | None:
        """An object; None: there is none."""
        try:
            return self._call("GET", f"{_path(version, kind, namespace)}/{name}")
        except ApiException as error:
            if error.status == 404:
                return None
            raise

    def list(self, version: str, kind: str, namespace: str, labels: str = "") -> list[Manifest]:
        """Objects of a namespace; an empty one is all of them. A kind that is not known has none."""
        try:
            found = self._call(
                "GET", _path(version, kind, namespace), query={"labelSelector": labels} if labels else {}
            )
        except ApiException as error:
            if error.status == 404:
                return []
            raise
        return list(found.get("items", ()))

    def delete(self, version: str, kind: str, namespace: str, name: str) -> None:
        """Take an object away; it may be gone already."""
        try:
            self._call("DELETE", f"{_path(version, kind, namespace)}/{name}", query={"propagationPolicy": "Background"})
        except ApiException as error:
            if error.status != 404:
                raise

    def _call(
        self, method: str, path: str, body: Manifest | None = None, kind: str = "", query: dict[str, str] | None = None
    ) -> Manifest:
        headers = {"Accept": "application/json", **({"Content-Type": kind} if kind else {})}
        asked = self._api.param_serialize(
            method, path, query_params=list((query or {}).items()), header_params=headers, body=body,
            auth_settings=["BearerToken"],
        )  # fmt: skip
        answer = self._api.call_api(*asked, _request_timeout=TIMEOUT_S)
        text = bytes(answer.read() or b"").decode()  # type: ignore[no-untyped-call]
        if not 200 <= answer.status < 300:
            raise ApiException(status=answer.status, reason=answer.reason, body=text)
        return dict(json.loads(text))


def _path(version: str, kind: str, namespace: str) -> str:
    root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    return f"{root}/namespaces/{namespace}/{PLURALS[kind]}" if namespace else f"{root}/{PLURALS[kind]}"


def reason_of(error: ApiException) -> str:
    """What the API server says."""
    try:
        return str(json.loads(error.body or "")["message"])
    except (ValueError, KeyError, TypeError):
        return str(error.reason)


def refused_of(kube: Kube, manifests: Iterable[Manifest]) -> str | None:
    """Make these objects; the first that the API server did not take, and why."""
    for manifest in manifests:
        try:
            kube.apply(manifest)
        except ApiException as error:
            if error.status not in REFUSALS:
                raise
            return f"{manifest['kind']} {manifest['metadata']['name']}: {reason_of(error)}"
    return None
