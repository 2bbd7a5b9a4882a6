"""The objects of a stored table's lookup application (docs/hybrid.md): a Spark driver that serves segments. Pure.

    PersistentVolumeClaim  the segments; versions that the log names must be there after a restart
    ConfigMap              what the driver reads
    ServiceAccount, RoleBinding
    StatefulSet            one pod, never two: they would cut the same version twice. Service
    NetworkPolicy          only the query's own pods ask it; driver and executors talk to each other

Executors write the segments, so they have the claim, too; they and the driver read the table from its volume.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final

from joinery.model.quantities import format_size
from joinery.operator.children import (
    CERTIFICATES,
    FILES,
    HTTP_PORT,
    LAST_WORDS,
    LOOKUP_PORT,
    QUERY_LABEL,
    ROLE_LABEL,
    START_MARK,
    Manifest,
    Parent,
    child_of,
    labels_of,
    probe_of,
    selector_of,
    service_of,
)
from joinery.operator.settings import OperatorSettings
from joinery.operator.spark_pods import Application, Mounted, driver_pod, files_of, own_session, rights_of
from joinery.operator.volumes import ROOT, name_of, source_of

LOOKUP: Final = "lookup"
EXECUTOR: Final = "executor"
HEALTH: Final = "health"
"""Not http: a PodMonitor would look for metrics there."""
SHARED: Final = "/shared"
"""Where driver and executors find the claim that they share."""


def lookup_children_of(parent: Parent, settings: OperatorSettings) -> Iterator[Manifest]:
    """Every object of the lookup application; none of a query without a table."""
    if parent.query.spec.table is None:
        return
    application = _application(parent)

    def make(version: str, kind: str, **body: Any) -> Manifest:
        return child_of(parent, version, kind, application.own, LOOKUP, **body)

    files = files_of(application, settings)
    yield shared_claim(parent, application.own, LOOKUP)
    yield make("v1", "ConfigMap", data=files)
    yield from rights_of(application, settings, make)
    yield service_of(parent, LOOKUP, LOOKUP_PORT)
    yield make("apps/v1", "StatefulSet", spec=_stateful_set(parent, application, settings, files))
    yield make("networking.k8s.io/v1", "NetworkPolicy", spec=_policy(parent))


def shared_claim(parent: Parent, name: str, role: str) -> Manifest:
    """What driver and executors keep their files in."""
    wanted = parent.query.spec.pods.spark.volume
    spec: Manifest = {
        "accessModes": [wanted.access_mode], "resources": {"requests": {"storage": format_size(wanted.size)}},
    }  # fmt: skip
    if wanted.storage_class:
        spec["storageClassName"] = wanted.storage_class
    return child_of(parent, "v1", "PersistentVolumeClaim", name, role, spec=spec)


def shared_volume(name: str) -> Mounted:
    """The same, in a pod."""
    return Mounted(name="shared", path=SHARED, source={"persistentVolumeClaim": {"claimName": name}})


def _application(parent: Parent) -> Application:
    spec, own = parent.query.spec, f"{parent.name}-{LOOKUP}"
    mounted = [shared_volume(own)]
    if spec.table is not None and (volume := spec.table.volume) is not None:
        name = name_of(volume)
        mounted.append(Mounted(name=name, path=f"{ROOT}/{name}", source=source_of(volume), is_read_only=True))
    return Application(
        own=own,
        namespace=parent.namespace,
        title=f"lookup {parent.name}",
        driver_labels=labels_of(parent, LOOKUP),
        executor_labels={**dict(spec.pods.labels), **labels_of(parent, EXECUTOR)},
        pods=spec.pods,
        executors=spec.pods.spark.executors,
        slots=spec.pods.spark.cores,
        heap=spec.pods.spark.memory,
        mounted=tuple(mounted),
        is_on_one_node=spec.pods.spark.volume.access_mode == "ReadWriteOnce",
    )


def _stateful_set(
    parent: Parent, application: Application, settings: OperatorSettings, files: dict[str, str]
) -> Manifest:
    read = json.dumps([files, parent.certificate], sort_keys=True)
    annotations = {
        **dict(parent.query.spec.pods.annotations),
        "kubectl.kubernetes.io/default-container": "driver",
        START_MARK: hashlib.sha256(read.encode()).hexdigest()[:12],
    }
    labels = {**dict(parent.query.spec.pods.labels), **labels_of(parent, LOOKUP)}
    return {
        "replicas": 0 if parent.stopped else 1,
        "serviceName": application.own,
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": selector_of(parent.name, LOOKUP)},
        "template": {
            "metadata": {"labels": labels, "annotations": annotations}, "spec": _pod(parent, application, settings),
        },
    }  # fmt: skip


def _pod(parent: Parent, application: Application, settings: OperatorSettings) -> Manifest:
    """A Python that answers at once, from the files that are there, and starts its Spark meanwhile."""
    query = {"configMap": {"name": f"{parent.name}-query"}}
    own = [Mounted(name="query", path=FILES, source=query, is_read_only=True)]
    args = [
        "python", "-m", "joinery.spark.lookup", "--query", f"{FILES}/query.yaml", "--segments", f"{SHARED}/segments",
        "--listen", f"0.0.0.0:{LOOKUP_PORT}", "--http", f"0.0.0.0:{HTTP_PORT}", "--last-words", LAST_WORDS,
        "--spark-log", "-",
    ]  # fmt: skip
    if settings.tls:
        secret = {"secret": {"secretName": f"{parent.name}-tls", "defaultMode": 0o440}}
        own.append(Mounted(name="tls", path=CERTIFICATES, source=secret, is_read_only=True))
        args += ["--tls", CERTIFICATES]
    ports = {"grpc": LOOKUP_PORT, HEALTH: HTTP_PORT}
    return driver_pod(
        application,
        settings,
        mounted=tuple(own),
        args=args,
        env=own_session(),
        ports=[{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()],
        livenessProbe=probe_of("/livez", period=10, failures=6, port=HEALTH),
        readinessProbe=probe_of("/readyz", period=1, failures=3, port=HEALTH),
        startupProbe=probe_of("/livez", period=1, failures=120, port=HEALTH),
    )


def _policy(parent: Parent) -> Manifest:
    """Beside the query's own policy, which lets in whoever asks for health."""
    roles = {"key": ROLE_LABEL, "operator": "In", "values": [LOOKUP, EXECUTOR]}
    spark = {"matchLabels": {QUERY_LABEL: parent.name}, "matchExpressions": [roles]}
    query = {"matchLabels": {QUERY_LABEL: parent.name}}
    return {
        "podSelector": spark,
        "policyTypes": ["Ingress"],
        "ingress": [
            {"from": [{"podSelector": query}], "ports": [{"port": LOOKUP_PORT, "protocol": "TCP"}]},
            {"from": [{"podSelector": spark}]},
        ],
    }
