"""Certificates on both sides, a token, one namespace: who has no right is told so, who has it gets every result."""

import base64
from collections.abc import Iterator

import pytest

from joinery.adapters.certificates import leaf, new_authority
from tests.cluster import rights
from tests.cluster.clusters import Cluster
from tests.cluster.test_release import stall_a_load
from tests.cluster.user import CHART, ROOT, User, join_query

RELEASE = "secured"
TOKEN = "open sesame"  # noqa: S105


@pytest.fixture(scope="module")
def secured(cluster: Cluster) -> Iterator[User]:
    """A release after the first: it watches its own namespace, and no ClusterRole is made for it."""
    secured = User(cluster, RELEASE)
    for plural in ("joinqueries", "loadtests"):
        definition = str(CHART / f"files/{plural}.yaml")
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", definition)
    repository, _, tag = cluster.joinery_image.rpartition(":")
    redis, _, redis_tag = cluster.redis_image.rpartition(":")
    cluster.helm(
        "install", RELEASE, str(CHART), "--namespace", RELEASE, "--create-namespace", "--wait", "--timeout", "3m",
        "--values", str(ROOT / "helm/dev.yaml"), "--set", f"image.repository={repository},image.tag={tag}",
        "--set", f"redis.image.repository={redis},redis.image.tag={redis_tag}", "--set", "crds.install=false",
        "--set", f"watchNamespaces={{{RELEASE}}}", "--set", f"auth.token={TOKEN}", "--set", "tls.enabled=true",
        timeout_s=240,
    )  # fmt: skip
    secured.apply(join_query("locked"))
    secured.apply(join_query("other", replicas=1))  # of the same release, with an authority of its own
    secured.ready("locked", 90)
    yield secured
    secured.kubectl("delete", "joinq", "--all")
    cluster.helm("uninstall", RELEASE, "--namespace", RELEASE, "--wait", timeout_s=300)
    cluster.kubectl("delete", "namespace", RELEASE, timeout_s=120)


def test_it_needs_no_right_beyond_its_namespace(secured: User) -> None:
    roles = secured.kubectl("get", "clusterroles,clusterrolebindings", "-o", "name")
    assert [] == [one for one in roles.split() if RELEASE in one]


@pytest.mark.parametrize(
    ("name", "token", "tls", "word"),
    [
        ("plain", TOKEN, None, "TLS"),
        ("guess", "wrong", "locked-tls", "token"),
        ("foreign", TOKEN, "foreign", "certificate"),
        ("neighbour", TOKEN, "other-tls", "certificate"),
    ],
)
def test_who_has_no_right_is_told_so(secured: User, name: str, token: str, tls: str | None, word: str) -> None:
    files = leaf(new_authority("somebody else"), "joinery")
    data = {key: base64.b64encode(text).decode() for key, text in files.items()}
    secured.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "foreign"}, "data": data})
    secured.traffic("locked", "100x1", name=name, token=token, tls=tls)
    secured.until("it gives up", lambda: secured.read("pod", name)["status"]["phase"] == "Failed", 200)
    assert word in secured.logs(name)


def test_who_has_certificate_and_token_gets_every_result(secured: User) -> None:
    secured.traffic("locked", "500x10", token=TOKEN, tls="locked-tls")
    secured.exact()


def test_the_operator_of_a_namespace_uses_every_right_that_it_has_and_no_other(secured: User) -> None:
    """Last: for that its queries are deleted, too."""
    stall_a_load(secured)
    secured.clear()
    rights.check(secured, "secured-joinery-operator")
