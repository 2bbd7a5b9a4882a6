"""The objects of one LoadTest: what server-side apply is given. Pure: a load, its query and settings in, manifests out.

    ConfigMap       what the driver reads: the load and the query, Spark's settings, the form of an executor's pod
    ServiceAccount  the driver's; a RoleBinding gives it the rights on pods that Spark needs, in this namespace
    Job             one driver pod: spark-submit in client mode, whose executors are pods

The Job belongs to the LoadTest, the driver's pod to the Job, executors to the driver's pod: a delete takes them all. A
driver that fails is not started again: rows that are recorded would be sent twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from joinery.model.spec import JoinQuery
from joinery.model.spec_load import LoadTestSpec
from joinery.operator.children import CERTIFICATES, GATEWAY_PORT, LAST_WORDS, USER, Manifest
from joinery.operator.settings import OperatorSettings

LOAD_LABEL: Final = "joinery.dev/loadtest"
LOAD_ROLE_LABEL: Final = "joinery.dev/load-role"
FILES: Final = "/etc/joinery-load"
MASTER: Final = "k8s://https://kubernetes.default.svc"
DRIVER_PORT: Final = 7078
BLOCKS_PORT: Final = 7079
_JAVA: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Java only starts the Python that works: it should start soon, and take little."""
_MEBI_PER_TASK: Final = 192
"""What a Python worker of Spark needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadParent:
    """The object that owns the children."""

    namespace: str
    name: str
    uid: str
    load: LoadTestSpec
    query: JoinQuery

    @property
    def own(self) -> str:
        """The name of every child."""
        return f"{self.name}-load"

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that get rows."""
        return self.load.streams or tuple(stream.name for stream in self.query.spec.streams)

    @property
    def tasks(self) -> int:
        """Producers of all streams; each needs a slot of an executor."""
        return len(self.streams) * self.load.producers

    @property
    def executors(self) -> int:
        """Pods; more than tasks would stand idle."""
        return min(self.load.executors, self.tasks)

    @property
    def slots(self) -> int:
        """Tasks of one executor."""
        return -(-self.tasks // self.executors)


def load_children_of(parent: LoadParent, settings: OperatorSettings) -> Iterator[Manifest]:
    """Every object of a load, in the order in which they are made."""
    yield _object(parent, "v1", "ConfigMap", data=_files(parent, settings))
    yield _object(parent, "v1", "ServiceAccount", automountServiceAccountToken=False)
    kind, _, name = settings.spark_role.partition("/")
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    subject = {"kind": "ServiceAccount", "name": parent.own, "namespace": parent.namespace}
    yield _object(parent, "rbac.authorization.k8s.io/v1", "RoleBinding", roleRef=role, subjects=[subject])
    yield _object(parent, "batch/v1", "Job", spec=_job(parent, settings))


def _labels(parent: LoadParent, role: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "joinery",
        "app.kubernetes.io/instance": parent.name,
        "app.kubernetes.io/component": f"load-{role}",
        "app.kubernetes.io/managed-by": "joinery-operator",
        LOAD_LABEL: parent.name,
        LOAD_ROLE_LABEL: role,
    }


def _object(parent: LoadParent, version: str, kind: str, **body: Any) -> Manifest:
    owner = {
        "apiVersion": "joinery.dev/v1alpha1", "kind": "LoadTest", "name": parent.name, "uid": parent.uid,
        "controller": True, "blockOwnerDeletion": False,
    }  # fmt: skip
    labels = {**_labels(parent, "driver"), "app.kubernetes.io/part-of": "joinery"}
    metadata = {"name": parent.own, "namespace": parent.namespace, "labels": labels, "ownerReferences": [owner]}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **body}


# --- what the driver reads


def _files(parent: LoadParent, settings: OperatorSettings) -> dict[str, str]:
    load = {
        "name": f"{parent.name}-{parent.uid[:8]}",
        "gateway": f"{parent.query.metadata.name}-gateway.{parent.namespace}.svc:{GATEWAY_PORT}",
        "load": parent.load.to_dict(),
        "query": parent.query.spec.to_dict(),
    }
    conf = "".join(f"{key} {value}\n" for key, value in sorted(_spark(parent, settings).items()))
    return {"load.yaml": _yaml(load), "spark.conf": conf, "executor.yaml": _yaml(_executor(parent, settings))}


def _spark(parent: LoadParent, settings: OperatorSettings) -> dict[str, object]:
    """Spark's settings. No ConfigMap, Service or claim is made, so that the driver needs no right on them."""
    overhead = 384 + _MEBI_PER_TASK * parent.slots
    made: dict[str, object] = {
        "spark.master": MASTER,
        "spark.submit.deployMode": "client",
        "spark.app.name": f"load {parent.name}",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": _JAVA,
        "spark.driver.port": DRIVER_PORT,
        "spark.driver.blockManager.port": BLOCKS_PORT,
        "spark.executor.instances": parent.executors,
        "spark.executor.cores": parent.slots,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": _JAVA,
        "spark.executor.memoryOverhead": f"{overhead}m",
        "spark.kubernetes.namespace": parent.namespace,
        "spark.kubernetes.container.image": settings.spark_image,
        "spark.kubernetes.container.image.pullPolicy": settings.spark_pull_policy,
        "spark.kubernetes.executor.request.cores": "100m",
        "spark.kubernetes.executor.podNamePrefix": parent.own,
        "spark.kubernetes.executor.podTemplateFile": f"{FILES}/executor.yaml",
        "spark.kubernetes.executor.podTemplateContainerName": "executor",
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        "spark.python.daemon.module": "joinery.spark.daemon",
        # every producer at once, or none: wait for all executors, ask again soon; a second try would send rows twice
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
        "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "2s",
        "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": 150,
        "spark.stage.maxConsecutiveAttempts": 1,
        "spark.task.maxFailures": 1,
        "spark.ui.enabled": "false",
        "spark.log.level": "WARN",
    }
    if settings.pull_secrets:
        made["spark.kubernetes.container.image.pullSecrets"] = ",".join(settings.pull_secrets)
    return made


def _executor(parent: LoadParent, settings: OperatorSettings) -> Manifest:
    """Spark adds image, command, ports and resources."""
    volumes, mounts = _volumes(parent, settings)
    container = {
        "name": "executor", "env": _environment(parent), "securityContext": _CONTAINER_SECURITY, "volumeMounts": mounts,
    }  # fmt: skip
    spec = {**_pod_base(parent), "containers": [container], "volumes": volumes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": _labels(parent, "executor")}, "spec": spec}


# --- pods


def _job(parent: LoadParent, settings: OperatorSettings) -> Manifest:
    volumes, mounts = _volumes(parent, settings)
    volumes.append({"name": "load", "configMap": {"name": parent.own}})
    mounts.append({"name": "load", "mountPath": FILES, "readOnly": True})
    conf = {"driver.host": "$(POD_IP)", "driver.bindAddress": "$(POD_IP)", "kubernetes.driver.pod.name": "$(POD_NAME)"}
    told = [word for key, value in conf.items() for word in ("--conf", f"spark.{key}={value}")]
    tls = ["--tls", CERTIFICATES] if settings.tls else []
    container = {
        "name": "driver",
        "image": settings.spark_image,
        "imagePullPolicy": settings.spark_pull_policy,
        "args": [
            "spark-submit", "--master", MASTER, "--deploy-mode", "client", "--properties-file", f"{FILES}/spark.conf",
            *told, "/opt/load.py", "--file", f"{FILES}/load.yaml", "--last-words", LAST_WORDS, *tls,
        ],
        "env": [
            *_environment(parent),
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        ],
        "terminationMessagePath": LAST_WORDS,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": {"cpu": "100m", "memory": "768Mi"}, "limits": {"memory": "1536Mi"}},
        "securityContext": _CONTAINER_SECURITY,
        "volumeMounts": mounts,
    }  # fmt: skip
    spec = {
        **_pod_base(parent),
        "restartPolicy": "Never",
        "serviceAccountName": parent.own,
        "automountServiceAccountToken": True,
        "containers": [container],
        "volumes": volumes,
    }
    if settings.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in settings.pull_secrets]
    return {"backoffLimit": 0, "template": {"metadata": {"labels": _labels(parent, "driver")}, "spec": spec}}


_CONTAINER_SECURITY: Final = {
    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
}  # fmt: skip


def _pod_base(parent: LoadParent) -> Manifest:
    """Hardened as a query's pods are; and where the query's own may be."""
    pods = parent.query.spec.pods
    made: Manifest = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 10,
        "securityContext": {
            "runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }  # fmt: skip
    if pods.node_selector:
        made["nodeSelector"] = dict(pods.node_selector)
    return made


def _environment(parent: LoadParent) -> list[Manifest]:
    query = parent.query
    secret = query.spec.access.secret_name or f"{query.metadata.name}-access"
    return [{"name": "JOINERY_TOKEN", "valueFrom": {"secretKeyRef": {"name": secret, "key": "token"}}}]


def _volumes(parent: LoadParent, settings: OperatorSettings) -> tuple[list[Manifest], list[Manifest]]:
    volumes: list[Manifest] = [{"name": "tmp", "emptyDir": {}}]
    mounts: list[Manifest] = [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108
    if settings.tls:
        secret = {"secretName": f"{parent.query.metadata.name}-tls", "defaultMode": 0o440}
        volumes.append({"name": "tls", "secret": secret})
        mounts.append({"name": "tls", "mountPath": CERTIFICATES, "readOnly": True})
    return volumes, mounts


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
