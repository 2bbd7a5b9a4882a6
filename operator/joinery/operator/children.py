"""The objects of one query: what server-side apply is given. Pure: a query and settings in, manifests out.

    ConfigMap  the query file, as the processes read it
    Secret     where Redis is, the token, the certificates
    gateway    Deployment of one pod, Service
    collector  Deployment of one pod, Service
    workers    StatefulSet (a stable name is the worker's name; the highest ordinal leaves first), headless Service
    PodDisruptionBudget, NetworkPolicy
    lookup     of a query with a stored table: `lookup_children`

Every pod may be killed at any moment, and another one goes on: terms and map versions fence the old one, so a
Deployment is good enough for gateway and collector.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from joinery.model.errors import BadSpec
from joinery.model.quantities import format_size
from joinery.model.spec import JoinQuery
from joinery.model.spec_pods import PodsSpec, amount
from joinery.operator.settings import OperatorSettings
from joinery.operator.volumes import mounts_of, placed

Manifest = dict[str, Any]

GATEWAY_PORT: Final = 7400
COLLECTOR_PORT: Final = 7401
LOOKUP_PORT: Final = 7402
HTTP_PORT: Final = 8080
OWN_BYTES: Final = 512 * 2**20
"""What a worker's process needs beside its windows."""
USER: Final = 10001
POD_SECURITY: Final = {
    "runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}  # fmt: skip
CONTAINER_SECURITY: Final = {
    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
}  # fmt: skip
FILES: Final = "/etc/joinery"
LAST_WORDS: Final = "/dev/termination-log"
_REQUESTS: Final = {"cpu": "100m", "memory": "256Mi"}
CERTIFICATES: Final = "/etc/joinery-tls"
QUERY_LABEL: Final = "joinery.dev/joinquery"
ROLE_LABEL: Final = "joinery.dev/role"
ACCEPTED: Final = "accepted.yaml"
START_MARK: Final = "joinery.dev/read-at-start"
"""Annotation of the pods: changes with what a process reads at its start only, so that they are rolled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """The object that owns the children."""

    query: JoinQuery
    namespace: str
    uid: str
    replicas: int
    """Workers that are wanted now."""
    stopped: bool = False
    """The query has ended: it needs no pods."""
    certificate: str = ""
    """The one that its processes use, if they do."""

    @property
    def name(self) -> str:
        return self.query.metadata.name

    @property
    def redis_secret(self) -> str:
        return self.query.spec.redis.secret_name or f"{self.name}-access"


def children_of(parent: Parent, settings: OperatorSettings, certificates: dict[str, str]) -> Iterator[Manifest]:
    """Every object of a query; `certificates`: ca.crt, tls.crt, tls.key if the processes use them."""
    yield query_file(parent)
    yield _access(parent, settings)
    if certificates:
        yield child_of(parent, "v1", "Secret", f"{parent.name}-tls", type="Opaque", stringData=certificates)
    for role, port in (("gateway", GATEWAY_PORT), ("collector", COLLECTOR_PORT)):
        yield service_of(parent, role, port)
        yield _deployment(parent, settings, role, port)
    yield service_of(parent, "worker", HTTP_PORT, headless=True)
    yield _stateful_set(parent, settings)
    yield _budget(parent)
    yield _network_policy(parent)


def is_owned(held: Manifest | None, uid: str) -> bool:
    """Whether an object that is there is a child of this query."""
    return held is not None and any(owner["uid"] == uid for owner in held["metadata"].get("ownerReferences", ()))


def accepted_of(config_map: Manifest | None, uid: str) -> JoinQuery | None:
    """The query in force, as its ConfigMap has it; None: there is none, or it is of an older version."""
    if config_map is None or not is_owned(config_map, uid):
        return None
    try:
        return JoinQuery.parse(yaml.safe_load(config_map.get("data", {}).get(ACCEPTED, "")))
    except BadSpec:
        return None


def selector_of(name: str, role: str) -> dict[str, str]:
    """The labels that choose the pods of a role."""
    return {
        "app.kubernetes.io/name": "joinery",
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/component": role,
    }


def keys_of(namespace: str, name: str, uid: str) -> str:
    """What a query's keys in Redis are called by: another query of the same name has others."""
    return f"{namespace}.{name}.{uid[:8]}"


def labels_of(parent: Parent, role: str) -> dict[str, str]:
    """What the objects of a query carry."""
    return {
        **selector_of(parent.name, role),
        "app.kubernetes.io/part-of": "joinery",
        "app.kubernetes.io/managed-by": "joinery-operator",
        QUERY_LABEL: parent.name,
        ROLE_LABEL: role,
    }


def child_of(parent: Parent, version: str, kind: str, name: str, role: str = "query", **body: Any) -> Manifest:
    """An object that goes with the query."""
    owner = {
        "apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "name": parent.name, "uid": parent.uid,
        "controller": True, "blockOwnerDeletion": False,
    }  # fmt: skip
    metadata = {
        "name": name, "namespace": parent.namespace, "labels": labels_of(parent, role), "ownerReferences": [owner],
    }  # fmt: skip
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **body}


def query_file(parent: Parent) -> Manifest:
    """The query with the paths that its files have in the pods; and as it was accepted, for the operator."""
    files = {"query.yaml": placed(parent.query), ACCEPTED: parent.query}
    data = {name: yaml.safe_dump(one.to_dict(), sort_keys=False, allow_unicode=True) for name, one in files.items()}
    return child_of(parent, "v1", "ConfigMap", f"{parent.name}-query", data=data)


def _access(parent: Parent, settings: OperatorSettings) -> Manifest:
    spec = parent.query.spec
    data = {"token": settings.token, "redis-url": spec.redis.url or settings.redis_url}
    return child_of(parent, "v1", "Secret", f"{parent.name}-access", type="Opaque", stringData=data)


def service_of(parent: Parent, role: str, port: int, *, headless: bool = False) -> Manifest:
    """How the pods of a role are found."""
    ports = [{"name": "http" if headless else "grpc", "port": port, "targetPort": port, "protocol": "TCP"}]
    spec: Manifest = {"selector": selector_of(parent.name, role), "ports": ports}
    spec["publishNotReadyAddresses"] = True  # each becomes ready by talking to the others
    if headless:
        spec["clusterIP"] = "None"
    return child_of(parent, "v1", "Service", f"{parent.name}-{role}", role, spec=spec)


def _deployment(parent: Parent, settings: OperatorSettings, role: str, port: int) -> Manifest:
    spec = {
        "replicas": 0 if parent.stopped else 1,
        "strategy": {"type": "Recreate"},
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": selector_of(parent.name, role)},
        "template": _pod(parent, settings, role, ["--name", role, "--listen", f"0.0.0.0:{port}"]),
    }
    return child_of(parent, "apps/v1", "Deployment", f"{parent.name}-{role}", role, spec=spec)


def _stateful_set(parent: Parent, settings: OperatorSettings) -> Manifest:
    spec = {
        "replicas": 0 if parent.stopped else parent.replicas,
        "serviceName": f"{parent.name}-worker",
        "podManagementPolicy": "Parallel",
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": selector_of(parent.name, "worker")},
        "template": _pod(parent, settings, "worker", ["--name", "worker-$(ORDINAL)"]),
    }
    return child_of(parent, "apps/v1", "StatefulSet", f"{parent.name}-worker", "worker", spec=spec)


def _pod(parent: Parent, settings: OperatorSettings, role: str, flags: list[str]) -> Manifest:
    volumes, mounts = mounts_of(parent.query)
    volumes = [
        {"name": "query", "configMap": {"name": f"{parent.name}-query"}}, {"name": "tmp", "emptyDir": {}}, *volumes,
    ]  # fmt: skip
    mounts = [
        {"name": "query", "mountPath": FILES, "readOnly": True}, {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
        *(mounts if role != "worker" else ()),
    ]  # fmt: skip
    if settings.tls:
        volumes.append({"name": "tls", "secret": {"secretName": f"{parent.name}-tls", "defaultMode": 0o440}})
        mounts.append({"name": "tls", "mountPath": CERTIFICATES, "readOnly": True})
    container = {
        "name": role,
        "image": settings.image,
        "imagePullPolicy": settings.pull_policy,
        "command": ["python", "-m", f"joinery.{role}"],
        "args": [*_common_flags(parent, settings), *flags],
        "env": _environment(parent, role, settings),
        "ports": _ports(role),
        "terminationMessagePath": LAST_WORDS,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": _resources(parent, role),
        "securityContext": CONTAINER_SECURITY,
        "volumeMounts": mounts,
        "livenessProbe": probe_of("/livez", period=10, failures=6),
        "readinessProbe": probe_of("/readyz", period=1, failures=3),
        "startupProbe": probe_of("/livez", period=1, failures=120),
    }  # fmt: skip
    made: Manifest = {
        "metadata": {
            "labels": {**dict(parent.query.spec.pods.labels), **labels_of(parent, role)},
            "annotations": {
                **dict(parent.query.spec.pods.annotations),
                "kubectl.kubernetes.io/default-container": role, START_MARK: _read_at_start(parent, settings),
            },
        },
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 30,
            "securityContext": POD_SECURITY,
            "containers": [container],
            "volumes": volumes if role != "worker" else [one for one in volumes if one["name"] in _WORKER_VOLUMES],
            **placement_of(parent.query.spec.pods),
        },
    }  # fmt: skip
    if settings.pull_secrets:
        made["spec"]["imagePullSecrets"] = [{"name": name} for name in settings.pull_secrets]
    if role == "worker":
        made["spec"]["topologySpreadConstraints"] = [_spread(parent)]
    return made


def placement_of(pods: PodsSpec) -> Manifest:
    """On which nodes, as the query says it."""
    made: Manifest = {}
    if pods.node_selector:
        made["nodeSelector"] = dict(pods.node_selector)
    if pods.tolerations:
        told = (one.model_dump(by_alias=True, exclude_none=True) for one in pods.tolerations)
        made["tolerations"] = [{name: value for name, value in one.items() if value != ""} for one in told]
    if pods.priority_class_name:
        made["priorityClassName"] = pods.priority_class_name
    return made


def _read_at_start(parent: Parent, settings: OperatorSettings) -> str:
    """Differs if a field does that only a start applies."""
    spec = parent.query.spec
    leaves = (spec.results, spec.worker.speed, spec.fine_tuning.block, spec.redis, spec.access)
    given = (parent.certificate, settings.token, settings.redis_url)
    return hashlib.sha256(repr((leaves, given)).encode()).hexdigest()[:12]


_WORKER_VOLUMES: Final = ("query", "tmp", "tls")


def _spread(parent: Parent) -> Manifest:
    chosen = {"matchLabels": selector_of(parent.name, "worker")}
    return {
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": chosen,
    }  # fmt: skip


def _common_flags(parent: Parent, settings: OperatorSettings) -> list[str]:
    made = [
        "--query", f"{FILES}/query.yaml",
        "--keys", keys_of(parent.namespace, parent.name, parent.uid),
        "--gateway", f"{parent.name}-gateway.{parent.namespace}.svc:{GATEWAY_PORT}",
        "--collector", f"{parent.name}-collector.{parent.namespace}.svc:{COLLECTOR_PORT}",
        "--http", f"0.0.0.0:{HTTP_PORT}",
    ]  # fmt: skip
    made += ["--last-words", LAST_WORDS]
    if parent.query.spec.table is not None:
        made += ["--lookup", f"{parent.name}-lookup.{parent.namespace}.svc:{LOOKUP_PORT}"]
    return [*made, "--tls", CERTIFICATES] if settings.tls else made


def _environment(parent: Parent, role: str, settings: OperatorSettings) -> list[Manifest]:
    def secret(name: str, source: str, key: str) -> Manifest:
        return {"name": name, "valueFrom": {"secretKeyRef": {"name": source, "key": key}}}

    spec = parent.query.spec
    redis_key = "url" if spec.redis.secret_name else "redis-url"
    made = [
        secret("JOINERY_REDIS_URL", parent.redis_secret, redis_key),
        secret("JOINERY_TOKEN", spec.access.secret_name or f"{parent.name}-access", "token"),
    ]
    made += [{"name": name, "value": value} for name, value in settings.logs]
    if role == "worker":
        path = "metadata.labels['apps.kubernetes.io/pod-index']"
        made.append({"name": "ORDINAL", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}})
    return made


def _ports(role: str) -> list[Manifest]:
    serving = {"gateway": GATEWAY_PORT, "collector": COLLECTOR_PORT}
    made = [{"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"}]
    if role in serving:
        made.insert(0, {"name": "grpc", "containerPort": serving[role], "protocol": "TCP"})
    return made


def _resources(parent: Parent, role: str) -> Manifest:
    """What the query says; else a worker's memory limit follows `worker.memory`."""
    spec = parent.query.spec
    pods = {"gateway": spec.pods.gateway, "collector": spec.pods.collector}
    given = pods[role].resources if role in pods else spec.worker.resources
    limits = {"memory": format_size(spec.worker.memory + OWN_BYTES)} if role == "worker" else {}
    limits |= dict(given.limits)
    requests = dict(given.requests)
    for name, usual in _REQUESTS.items():
        requests.setdefault(name, min(usual, limits.get(name, usual), key=amount))
    return {"requests": requests, "limits": limits} if limits else {"requests": requests}


def probe_of(path: str, *, period: int, failures: int, port: str = "http") -> Manifest:
    """A question of the kubelet over plain HTTP."""
    return {
        "httpGet": {"path": path, "port": port, "scheme": "HTTP"}, "periodSeconds": period, "timeoutSeconds": 5,
        "failureThreshold": failures,
    }  # fmt: skip


def _budget(parent: Parent) -> Manifest:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": selector_of(parent.name, "worker")}}
    return child_of(parent, "policy/v1", "PodDisruptionBudget", f"{parent.name}-worker", "worker", spec=spec)


def _network_policy(parent: Parent) -> Manifest:
    """Workers are asked for nothing but their health; gateway and collector serve whoever has a right to."""
    ports = [{"port": port, "protocol": "TCP"} for port in (GATEWAY_PORT, COLLECTOR_PORT, HTTP_PORT)]
    spec = {
        "podSelector": {"matchLabels": {QUERY_LABEL: parent.name}},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": ports}],
    }
    return child_of(parent, "networking.k8s.io/v1", "NetworkPolicy", parent.name, spec=spec)
