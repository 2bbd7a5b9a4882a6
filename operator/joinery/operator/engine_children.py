"""The objects of a query with `engine: spark` (docs/spark.md): Spark runs it from its sources to its sinks. Pure.

ConfigMap              the query file, and as it was accepted
PersistentVolumeClaim  what driver and executors share while they join
ConfigMap              what the driver reads
ServiceAccount, RoleBinding, NetworkPolicy
Job                    one driver; one that dies is started again and begins anew, one that cannot run is not
"""

from collections.abc import Iterator
from typing import Any, Final

from joinery.adapters.settings import CANNOT_RUN
from joinery.operator.children import (
    FILES,
    LAST_WORDS,
    QUERY_LABEL,
    Manifest,
    Parent,
    child_of,
    labels_of,
    query_file,
)
from joinery.operator.lookup_children import EXECUTOR, SHARED, shared_claim, shared_volume
from joinery.operator.settings import OperatorSettings
from joinery.operator.spark_pods import Application, Mounted, driver_pod, files_of, own_session, rights_of
from joinery.operator.volumes import mounts_of

DRIVER: Final = "driver"
TRIES: Final = 3
"""How often a driver that died is started again."""


def engine_children_of(parent: Parent, settings: OperatorSettings) -> Iterator[Manifest]:
    """Every object of the query, in the order in which they are made."""
    application = _application(parent)

    def make(version: str, kind: str, **body: Any) -> Manifest:
        return child_of(parent, version, kind, application.own, DRIVER, **body)

    query = {"matchLabels": {QUERY_LABEL: parent.name}}
    inside = {"podSelector": query, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": query}]}]}
    yield query_file(parent)
    yield shared_claim(parent, application.own, DRIVER)
    yield make("v1", "ConfigMap", data=files_of(application, settings))
    yield from rights_of(application, settings, make)
    yield make("networking.k8s.io/v1", "NetworkPolicy", spec=inside)
    yield make("batch/v1", "Job", spec=_job(parent, application, settings))


def job_of(name: str) -> str:
    """The Job of a query."""
    return f"{name}-spark"


def _application(parent: Parent) -> Application:
    pods, own = parent.query.spec.pods, job_of(parent.name)
    return Application(
        own=own,
        namespace=parent.namespace,
        title=f"query {parent.name}",
        driver_labels=labels_of(parent, DRIVER),
        executor_labels={**dict(pods.labels), **labels_of(parent, EXECUTOR)},
        pods=pods,
        executors=pods.spark.executors,
        slots=pods.spark.cores,
        heap=pods.spark.memory,
        mounted=(shared_volume(own),),
        is_on_one_node=pods.spark.volume.access_mode == "ReadWriteOnce",
    )


def _job(parent: Parent, application: Application, settings: OperatorSettings) -> Manifest:
    """The driver reads the sources and writes the sinks, so it alone has their volumes."""
    config = {"configMap": {"name": f"{parent.name}-query"}}
    own = [Mounted(name="query", path=FILES, source=config, is_read_only=True)]
    for volume, mount in zip(*mounts_of(parent.query), strict=True):
        source = {key: value for key, value in volume.items() if key != "name"}
        own.append(Mounted(name=volume["name"], path=mount["mountPath"], source=source))
    args = [
        "python", "-m", "joinery.spark.engine_job", "--query", f"{FILES}/query.yaml", "--shared", SHARED,
        "--slots", str(application.executors * application.slots), "--last-words", LAST_WORDS,
    ]  # fmt: skip
    spec = driver_pod(application, settings, mounted=tuple(own), args=args, env=own_session())
    labels = {**dict(parent.query.spec.pods.labels), **labels_of(parent, DRIVER)}
    metadata = {"labels": labels, "annotations": dict(parent.query.spec.pods.annotations)}
    codes = {"containerName": "driver", "operator": "In", "values": [CANNOT_RUN]}
    return {
        "backoffLimit": TRIES,
        "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": codes}]},
        "template": {"metadata": metadata, "spec": {**spec, "restartPolicy": "Never"}},
    }
