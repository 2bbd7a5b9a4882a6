"""The end of a query: its keys leave the Redis that it ran on, and nobody else's do."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from joinery.adapters.embedded_redis import find_server
from joinery.adapters.redis_calls import prefix_of
from joinery.adapters.redis_urls import client_of
from joinery.operator.children import Parent, children_of, keys_of
from joinery.operator.ending import end_query
from joinery.operator.reconcile import Wanted
from tests.support.redis_servers import RedisServer
from tests.unit.kubernetes_operator.queries import SETTINGS, wanted


class MemoryKube:
    """A ConfigMap, and pods that are gone after the first look."""

    def __init__(self, ran: Wanted | None) -> None:
        self.deleted: list[str] = []
        self.held: Any = None
        if ran is not None:
            parent = Parent(query=ran.query(), namespace=ran.namespace, uid=ran.uid, replicas=1)
            self.held = next(one for one in children_of(parent, SETTINGS, {}) if one["kind"] == "ConfigMap")

    def delete(self, _version: str, kind: str, _namespace: str, name: str) -> None:
        self.deleted.append(f"{kind}/{name}")

    def list(self, *_: str) -> list[Any]:
        return []

    def read(self, _version: str, kind: str, _namespace: str, name: str) -> Any:
        return self.held if (kind, name) == ("ConfigMap", "orders-query") else None


@pytest.fixture(scope="module", name="url")
def a_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with RedisServer(find_server(), tmp_path_factory.mktemp("redis")) as server:
        yield server.url


def write(url: str, one: Wanted, database: int) -> list[bytes]:
    """Keys of a query and of another one, in a database; what is there then."""
    with client_of(url[:-1] + str(database)) as client:
        for query in (keys_of(one.namespace, one.name, one.uid), "shop.orders.another"):
            client.set(f"{prefix_of(query)}log", "1")
        return keys(url, database)


def keys(url: str, database: int) -> list[bytes]:
    with client_of(url[:-1] + str(database)) as client:
        return sorted(client.keys("*"))


def test_the_keys_of_a_query_are_deleted_and_those_of_others_stay(url: str) -> None:
    one = wanted()
    before = write(url, one, 0)
    kube = MemoryKube(one)
    assert end_query(kube, replace(SETTINGS, redis_url=url), one) is None  # type: ignore[arg-type]
    assert [
        "StatefulSet/orders-worker", "StatefulSet/orders-lookup", "Deployment/orders-gateway",
        "Deployment/orders-collector",
    ] == kube.deleted  # fmt: skip
    assert (2, 1) == (len(before), len(keys(url, 0)))
    assert b"another" in keys(url, 0)[0]


def test_keys_lie_where_the_query_ran_whatever_the_object_says_by_now(url: str) -> None:
    ran, now = wanted(redis__url=url[:-1] + "1"), wanted(redis__url=url[:-1] + "2")
    write(url, ran, 1), write(url, ran, 2)
    assert end_query(MemoryKube(ran), SETTINGS, now) is None  # type: ignore[arg-type]
    assert (1, 2) == (len(keys(url, 1)), len(keys(url, 2)))


def test_a_query_that_ran_nowhere_is_ended_by_what_its_object_says(url: str) -> None:
    one = wanted(redis__url=url[:-1] + "3")
    write(url, one, 3)
    assert end_query(MemoryKube(None), SETTINGS, one) is None  # type: ignore[arg-type]
    assert 1 == len(keys(url, 3))


def test_a_redis_that_is_somebody_elses_is_left_alone_and_that_is_said(url: str) -> None:
    one = wanted(redis__secretName="my-redis")
    told = end_query(MemoryKube(one), SETTINGS, one)  # type: ignore[arg-type]
    assert told is not None
    assert "yours to delete" in told


def test_a_redis_that_is_away_does_not_keep_the_object(tmp_path: Path) -> None:
    one = wanted(redis__url=f"unix://{tmp_path}/nobody.sock")
    told = end_query(MemoryKube(one), SETTINGS, one)  # type: ignore[arg-type]
    assert told is not None
    assert "may be left" in told


def test_pods_that_do_not_go_keep_the_object_no_longer_than_it_may_take() -> None:
    kube = MemoryKube(wanted())
    kube.list = lambda *_: [{}]  # type: ignore[method-assign]
    told = end_query(kube, replace(SETTINGS, delete_s=0.1), wanted())  # type: ignore[arg-type]
    assert "pods of orders are still there after 0.1 s; its keys in Redis stay" == told
