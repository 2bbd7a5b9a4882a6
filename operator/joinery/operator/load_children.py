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

from joinery.model.spec import JoinQuery
from joinery.model.spec_load import LoadTestSpec
from joinery.operator.children import CERTIFICATES, GATEWAY_PORT, LAST_WORDS, Manifest
from joinery.operator.settings import OperatorSettings
from joinery.operator.spark_pods import (
    SPARK_FILES,
    Application,
    Mounted,
    driver_pod,
    files_of,
    plain_yaml,
    rights_of,
    submitted,
)

LOAD_LABEL: Final = "joinery.dev/loadtest"
LOAD_ROLE_LABEL: Final = "joinery.dev/load-role"
_AT_ONCE: Final = {
    # every producer at once, or none: wait for all executors, ask again soon; a second try would send rows twice
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "2s",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": 150,
    "spark.stage.maxConsecutiveAttempts": 1,
    "spark.task.maxFailures": 1,
}


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
        return self.load.streams or tuple(stream.name for stream in self.query.spec.streams if stream.table is None)

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
    application = _application(parent, settings)

    def make(version: str, kind: str, **body: Any) -> Manifest:
        return _object(parent, version, kind, **body)

    yield make("v1", "ConfigMap", data={"load.yaml": _load(parent), **files_of(application, settings)})
    yield from rights_of(application, settings, make)
    yield make("batch/v1", "Job", spec=_job(parent, application, settings))


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


def _load(parent: LoadParent) -> str:
    """What the driver sends, and where."""
    return plain_yaml({
        "name": f"{parent.name}-{parent.uid[:8]}",
        "gateway": f"{parent.query.metadata.name}-gateway.{parent.namespace}.svc:{GATEWAY_PORT}",
        "load": parent.load.to_dict(),
        "query": parent.query.spec.to_dict(),
    })  # fmt: skip


def _application(parent: LoadParent, settings: OperatorSettings) -> Application:
    query = parent.query
    access = query.spec.access.secret_name or f"{query.metadata.name}-access"
    token = {"name": "JOINERY_TOKEN", "valueFrom": {"secretKeyRef": {"name": access, "key": "token"}}}
    secret = {"secret": {"secretName": f"{query.metadata.name}-tls", "defaultMode": 0o440}}
    tls = Mounted(name="tls", path=CERTIFICATES, source=secret, is_read_only=True)
    return Application(
        own=parent.own,
        namespace=parent.namespace,
        title=f"load {parent.name}",
        driver_labels=_labels(parent, "driver"),
        executor_labels=_labels(parent, "executor"),
        pods=query.spec.pods,
        executors=parent.executors,
        slots=parent.slots,
        environment=(token,),
        mounted=(tls,) if settings.tls else (),
        settings={**_AT_ONCE, "spark.kubernetes.executor.podNamePrefix": parent.own},
    )


def _job(parent: LoadParent, application: Application, settings: OperatorSettings) -> Manifest:
    tls = ["--tls", CERTIFICATES] if settings.tls else []
    load = ["/opt/load.py", "--file", f"{SPARK_FILES}/load.yaml", "--last-words", LAST_WORDS, *tls]
    spec = driver_pod(application, settings, args=["spark-submit", *submitted(), *load])
    labelled = {"metadata": {"labels": _labels(parent, "driver")}, "spec": {**spec, "restartPolicy": "Never"}}
    return {"backoffLimit": 0, "template": labelled}
