"""A release of the chart with Spark, for the tests that need one; and volumes on this machine's disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.cluster.clusters import Cluster, place
from tests.cluster.user import CHART, ROOT, User, folder

RELEASE: Final = "spark"
TOKEN: Final = "open sesame"  # noqa: S105


@contextmanager
def spark_release(cluster: Cluster) -> Iterator[User]:
    """With certificates and a token, in a namespace of its own and with no ClusterRole."""
    user = User(cluster, RELEASE)
    for plural in ("joinqueries", "loadtests"):
        definition = str(CHART / f"files/{plural}.yaml")
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", definition)
    repository, _, tag = cluster.joinery_image.rpartition(":")
    redis, _, redis_tag = cluster.redis_image.rpartition(":")
    spark, _, spark_tag = place().spark_image().rpartition(":")
    cluster.helm(
        "install", RELEASE, str(CHART), "--namespace", RELEASE, "--create-namespace", "--wait", "--timeout", "3m",
        "--values", str(ROOT / "helm/dev.yaml"), "--set", f"image.repository={repository},image.tag={tag}",
        "--set", f"redis.image.repository={redis},redis.image.tag={redis_tag}", "--set", "crds.install=false",
        "--set", f"watchNamespaces={{{RELEASE}}}", "--set", f"auth.token={TOKEN}", "--set", "tls.enabled=true",
        "--set", f"spark.enabled=true,spark.image.repository={spark},spark.image.tag={spark_tag}",
        timeout_s=240,
    )  # fmt: skip
    yield user
    user.kubectl("delete", "loadt,joinq", "--all", timeout_s=180)
    cluster.helm("uninstall", RELEASE, "--namespace", RELEASE, "--wait", timeout_s=300)
    cluster.kubectl("delete", "namespace", RELEASE, timeout_s=120)


def volume(
    user: User, name: str, mode: str = "ReadWriteMany", *, is_claimed: bool = True, is_default: bool = False
) -> Path:
    """A PersistentVolume of a class with its name, and a claim on it if nobody else makes one; where its files are.

    `is_default`: of no class, for a claim that names none.
    """
    path = folder(name)
    spec = {
        "capacity": {"storage": "10Gi"}, "accessModes": [mode], "storageClassName": "" if is_default else name,
        "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": str(path)},
    }  # fmt: skip
    user.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
    if is_claimed:
        asked = {"accessModes": [mode], "storageClassName": name, "resources": {"requests": {"storage": "1Gi"}}}
        user.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": asked})
    return path
