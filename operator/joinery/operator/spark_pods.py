"""The pods of a Spark application of ours: a driver in client mode that starts its executors. Pure.

LoadTests, lookup applications and queries with `engine: spark` are such applications. Each has a ConfigMap that its
driver reads (Spark's settings, the form of an executor's pod), and a ServiceAccount whose RoleBinding gives the driver
the rights on pods that Spark needs, in its namespace. Executors belong to the driver's pod and go with it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from joinery.model.spec_pods import PodsSpec
from joinery.operator.children import CONTAINER_SECURITY, LAST_WORDS, POD_SECURITY, Manifest, placement_of
from joinery.operator.settings import OperatorSettings

SPARK_FILES: Final = "/etc/joinery-spark"
"""Where the driver finds its ConfigMap."""
MASTER: Final = "k8s://https://kubernetes.default.svc"
NO_SPARK: Final = "found no Spark in this release, wanted its image and rights; helm upgrade --set spark.enabled=true"
DRIVER_PORT: Final = 7078
BLOCKS_PORT: Final = 7079
MEBI: Final = 2**20
USUAL_HEAP: Final = 512 * MEBI
_JAVA: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Java only starts the Python that works: it should start soon, and take little."""
_MEBI_PER_TASK: Final = 192
"""What a Python worker of Spark needs."""
_DRIVER_PYTHON: Final = 1024
"""What the Python of a driver may take, in MiB."""

Make = Callable[..., Manifest]
"""Makes an object of the owner: version, kind, and the rest by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounted:
    """A volume of driver and executors, and where it is."""

    name: str
    path: str
    source: Manifest
    is_read_only: bool = False

    @property
    def volume(self) -> Manifest:
        return {"name": self.name, **self.source}

    @property
    def mount(self) -> Manifest:
        made: Manifest = {"name": self.name, "mountPath": self.path}
        return {**made, "readOnly": True} if self.is_read_only else made


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """One application."""

    own: str
    """Name of its account, binding and ConfigMap. Executors have names that Spark makes, others for every start: those
    of a driver that died may still be there."""
    namespace: str
    title: str
    driver_labels: Mapping[str, str]
    executor_labels: Mapping[str, str]
    pods: PodsSpec
    """Where the pods may be, and what they carry."""
    executors: int
    slots: int
    """Tasks of one executor."""
    heap: int = USUAL_HEAP
    """Bytes of Java's heap, in driver and executor."""
    environment: tuple[Manifest, ...] = ()
    """Of driver and executors."""
    mounted: tuple[Mounted, ...] = ()
    """The same."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Of Spark, beside those that every application has."""
    is_on_one_node: bool = False
    """Whether executors must be where the driver is: one node at a time can have their volume."""


def files_of(application: Application, settings: OperatorSettings) -> dict[str, str]:
    """What the driver reads at its start."""
    conf = "".join(f"{key} {value}\n" for key, value in sorted(_spark(application, settings).items()))
    return {"spark.conf": conf, "executor.yaml": plain_yaml(_executor(application))}


def rights_of(application: Application, settings: OperatorSettings, make: Make) -> Iterator[Manifest]:
    """Who the driver is, and what it may do."""
    yield make("v1", "ServiceAccount", automountServiceAccountToken=False)
    kind, _, name = settings.spark_role.partition("/")
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    subject = {"kind": "ServiceAccount", "name": application.own, "namespace": application.namespace}
    yield make("rbac.authorization.k8s.io/v1", "RoleBinding", roleRef=role, subjects=[subject])


def submitted() -> list[str]:
    """The words of spark-submit, before the program."""
    conf = {"driver.host": "$(POD_IP)", "driver.bindAddress": "$(POD_IP)", "kubernetes.driver.pod.name": "$(POD_NAME)"}
    told = [word for key, value in conf.items() for word in ("--conf", f"spark.{key}={value}")]
    return ["--master", MASTER, "--deploy-mode", "client", "--properties-file", f"{SPARK_FILES}/spark.conf", *told]


def own_session() -> list[Manifest]:
    """Environment of a Python that starts its Spark itself, once it serves already; beside `driver_pod`'s."""
    words = " ".join([*submitted(), "pyspark-shell"])
    return [{"name": "SPARK_MASTER", "value": MASTER}, {"name": "PYSPARK_SUBMIT_ARGS", "value": words}]


def driver_pod(
    application: Application, settings: OperatorSettings, *, mounted: tuple[Mounted, ...] = (), **container: Any
) -> Manifest:
    """The pod's spec; `container`: the rest of it, `env` comes after ours. `mounted`: what only the driver has."""
    config = {"configMap": {"name": application.own}}
    files = Mounted(name="spark", path=SPARK_FILES, source=config, is_read_only=True)
    volumes = (_TMP, *application.mounted, *mounted, files)
    mebi = application.heap // MEBI
    made = {
        "name": "driver",
        "image": settings.spark_image,
        "imagePullPolicy": settings.spark_pull_policy,
        "terminationMessagePath": LAST_WORDS,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {
            "requests": {"cpu": "100m", "memory": f"{mebi + 256}Mi"},
            "limits": {"memory": f"{mebi + _DRIVER_PYTHON}Mi"},
        },
        "securityContext": CONTAINER_SECURITY,
        "volumeMounts": [one.mount for one in volumes],
        **container,
        "env": [*application.environment, *_WHERE, *container.get("env", ())],
    }
    spec = {
        **_pod_base(application),
        "serviceAccountName": application.own,
        "automountServiceAccountToken": True,
        "containers": [made],
        "volumes": [one.volume for one in volumes],
    }
    if settings.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in settings.pull_secrets]
    return spec


def plain_yaml(value: object) -> str:
    """As files in a ConfigMap are written."""
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)


_TMP: Final = Mounted(name="tmp", path="/tmp", source={"emptyDir": {}})  # noqa: S108
_WHERE: Final[tuple[Manifest, ...]] = tuple(
    {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
    for name, path in (("POD_IP", "status.podIP"), ("POD_NAME", "metadata.name"))
)


def _spark(application: Application, settings: OperatorSettings) -> dict[str, object]:
    """Spark's settings. No ConfigMap, Service or claim is made, so that the driver needs no right on them."""
    heap = f"{application.heap // MEBI}m"
    made: dict[str, object] = {
        "spark.master": MASTER,
        "spark.submit.deployMode": "client",
        "spark.app.name": application.title,
        "spark.driver.memory": heap,
        "spark.driver.extraJavaOptions": _JAVA,
        "spark.driver.port": DRIVER_PORT,
        "spark.driver.blockManager.port": BLOCKS_PORT,
        "spark.executor.instances": application.executors,
        "spark.executor.cores": application.slots,
        "spark.executor.memory": heap,
        "spark.executor.extraJavaOptions": _JAVA,
        "spark.executor.memoryOverhead": f"{384 + _MEBI_PER_TASK * application.slots}m",
        "spark.kubernetes.namespace": application.namespace,
        "spark.kubernetes.container.image": settings.spark_image,
        "spark.kubernetes.container.image.pullPolicy": settings.spark_pull_policy,
        "spark.kubernetes.executor.request.cores": "100m",
        "spark.kubernetes.executor.podTemplateFile": f"{SPARK_FILES}/executor.yaml",
        "spark.kubernetes.executor.podTemplateContainerName": "executor",
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        "spark.authenticate": "true",  # by a secret that the driver makes up and gives to its executors
        "spark.network.crypto.enabled": "true",
        "spark.python.daemon.module": "joinery.spark.daemon",
        "spark.ui.enabled": "false",
        "spark.log.level": "WARN",
        **application.settings,
    }
    if settings.pull_secrets:
        made["spark.kubernetes.container.image.pullSecrets"] = ",".join(settings.pull_secrets)
    return made


def _executor(application: Application) -> Manifest:
    """Spark adds image, command, ports and resources."""
    volumes = (_TMP, *application.mounted)
    container = {
        "name": "executor", "env": list(application.environment), "securityContext": CONTAINER_SECURITY,
        "volumeMounts": [one.mount for one in volumes],
    }  # fmt: skip
    spec = {**_pod_base(application), "containers": [container], "volumes": [one.volume for one in volumes]}
    if application.is_on_one_node:
        chosen = {"matchLabels": dict(application.driver_labels)}
        term = {"labelSelector": chosen, "topologyKey": "kubernetes.io/hostname"}
        spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    metadata = {"labels": dict(application.executor_labels), "annotations": dict(application.pods.annotations)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _pod_base(application: Application) -> Manifest:
    """Hardened as a query's pods are; and where the query's own may be."""
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 10,
        "securityContext": POD_SECURITY,
        **placement_of(application.pods),
    }
