"""Urls of Redis: what can be opened, what is refused, and that no message ever shows a password."""

import pytest
from redis.connection import SSLConnection, UnixDomainSocketConnection
from redis.sentinel import SentinelConnectionPool, SentinelManagedSSLConnection

from joinery.adapters.embedded_redis import connect
from joinery.adapters.redis_urls import client_of, shown
from joinery.model.errors import JoineryError, UserMustAct


def test_a_plain_url_names_user_password_and_database() -> None:
    options = client_of("redis://worker:s3cret%23@host:7000/3").connection_pool.connection_kwargs
    assert ("worker", "s3cret#", "host", 7000, 3) == tuple(
        options[name] for name in ("username", "password", "host", "port", "db")
    )


def test_tls_and_its_authority_are_named_by_the_url() -> None:
    pool = client_of("rediss://host/0?ssl_ca_certs=/etc/redis/ca.crt").connection_pool
    assert (SSLConnection, "/etc/redis/ca.crt") == (pool.connection_class, pool.connection_kwargs["ssl_ca_certs"])
    assert UnixDomainSocketConnection is client_of("unix:///run/redis.sock").connection_pool.connection_class


def test_sentinels_are_asked_in_turn_and_have_their_own_password() -> None:
    pool = client_of("redis+sentinel://u:p@a:26380,b,[::1]:7/mymaster/2?sentinel_password=q").connection_pool
    assert isinstance(pool, SentinelConnectionPool)
    places = [one.connection_pool.connection_kwargs for one in pool.sentinel_manager.sentinels]
    assert [("a", 26380), ("b", 26379), ("::1", 7)] == [(one["host"], one["port"]) for one in places]
    assert [(None, "q")] * 3 == [(one["username"], one["password"]) for one in places]
    options = pool.connection_kwargs
    assert ("mymaster", "u", "p", 2) == (pool.service_name, options["username"], options["password"], options["db"])


def test_tls_is_for_sentinels_and_servers_alike() -> None:
    pool = client_of("rediss+sentinel://a/mymaster?ssl_ca_certs=/ca.crt").connection_pool
    asked = pool.sentinel_manager.sentinels[0].connection_pool  # type: ignore[attr-defined]
    assert (SentinelManagedSSLConnection, SSLConnection) == (pool.connection_class, asked.connection_class)
    assert ["/ca.crt"] * 2 == [one.connection_kwargs["ssl_ca_certs"] for one in (pool, asked)]


BAD = [
    "", "host:6379", "http://:s3cret@host", "redis://:s3#cret@host:1/0", "redis://u:s3/cret@host/0",
    "redis://:s3cret@host:x/0", "redis://:s3cret@host/0?colour=red", "redis://:s3cret@[::1/0",
    "redis+sentinel://:s3cret@host", "redis+sentinel://:s3cret@/m", "redis+sentinel://:s3cret@h:x/m",
    "redis+sentinel://:s3cret@a,,b/m",
]  # fmt: skip


@pytest.mark.parametrize("url", BAD)
def test_a_url_that_says_nothing_is_refused_without_a_word_of_it(url: str) -> None:
    with pytest.raises(UserMustAct, match="found a Redis url that says nothing, wanted redis://") as refused:
        client_of(url)
    assert "s3" not in str(refused.value)
    assert "s3" not in shown(url)


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:s3cret@127.0.0.1:1/0",
        "redis://127.0.0.1:1/0?password=s3cret",
        "rediss://user:s3cret@127.0.0.1:1/0",
        "unix://:s3cret@/nowhere/redis.sock",
        "redis+sentinel://user:s3cret@127.0.0.1:1/mymaster/0?sentinel_password=s3cret",
    ],
)
def test_a_server_that_is_not_there_is_named_without_the_password(url: str) -> None:
    with pytest.raises(JoineryError) as refused:
        connect(url)
    assert "s3cret" not in str(refused.value)
    assert str(refused.value).startswith(shown(url))
    assert "object at" not in str(refused.value)


@pytest.mark.parametrize("url", ["unix:///nowhere/redis.sock", "redis+sentinel://127.0.0.1:1/mymaster/0"])
def test_a_large_value_is_sent_from_where_it_lies(url: str) -> None:
    value = memoryview(bytes(10_000))
    connection = client_of(url).connection_pool.make_connection()
    packed = connection.pack_commands([("MULTI",), ("HSET", "key", 7, value), ("EXEC",)])
    assert any(piece is value for piece in packed)
    assert b"".join(packed).startswith(b"*1\r\n$5\r\nMULTI\r\n*4\r\n$4\r\nHSET\r\n$3\r\nkey\r\n$1\r\n7\r\n$10000\r\n")
