"""One cluster for all tests here: brought up before the first, and ended after the last if it was not there before."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cluster.__main__ import CANNOT
from tests.cluster.clusters import Cluster, CommandFailed, place
from tests.cluster.needs import Missing
from tests.cluster.user import CHART, ROOT, User, folder

HERE = Path(__file__).parent
RELEASE = "joinery"
UNTIL = "JOINERY_CLUSTER_UNTIL"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is built for the first test (programs, images, a cluster) takes its time: only the tests are timed."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(300, func_only=True))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """CI has so much time: what cannot begin before this second is left out, and said to be."""
    until = os.environ.get(UNTIL)
    if until and item.path.is_relative_to(HERE) and time.time() > float(until):
        pytest.skip("no time was left for it: make test-cluster")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    where = place()
    was_up = where.is_up()
    try:
        found = where.up()
    except Missing as missing:
        pytest.exit(f"no cluster for the tests: {missing}", returncode=CANNOT)
    try:
        yield found
    finally:
        if not was_up:
            where.down()


@pytest.fixture(scope="session")
def user(cluster: Cluster) -> Iterator[User]:
    """Who has installed the chart, as the README says; nothing of it is there before or after."""
    user = User(cluster, RELEASE)
    _remove(user)
    repository, _, tag = cluster.joinery_image.rpartition(":")
    redis, _, redis_tag = cluster.redis_image.rpartition(":")
    kept = ["--set", f"redis.persistence.hostPath={folder('redis')}"] if cluster.audit_log else []
    cluster.helm(
        "install", RELEASE, str(CHART), "--namespace", RELEASE, "--create-namespace", "--wait", "--timeout", "3m",
        "--values", str(ROOT / "helm/dev.yaml"), "--set", f"image.repository={repository},image.tag={tag}",
        "--set", f"redis.image.repository={redis},redis.image.tag={redis_tag}",
        "--set", "redis.persistence.enabled=true", *kept, timeout_s=240,
    )  # fmt: skip
    yield user
    _remove(user)


def _remove(user: User) -> None:
    """What an earlier run left, too."""
    with suppress(CommandFailed):
        user.cluster.helm("uninstall", RELEASE, "--namespace", RELEASE, "--wait", timeout_s=300)
    with suppress(CommandFailed):  # without their operator nobody would end them
        for name in user.kubectl("get", "joinq", "-o", "name").split():
            user.kubectl("patch", name, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    user.cluster.kubectl("delete", "namespace", RELEASE, "--ignore-not-found", "--wait=true", timeout_s=180)
    definitions = ("joinqueries.joinery.dev", "loadtests.joinery.dev")
    user.cluster.kubectl("delete", "crd", *definitions, "--ignore-not-found", timeout_s=60)
    user.cluster.kubectl("delete", "pv", "results", "--ignore-not-found", timeout_s=60)
