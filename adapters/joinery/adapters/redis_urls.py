"""From a Redis url to a client; and the url as it may be shown.

    redis://user:password@host:6379/0        plain
    rediss://...?ssl_ca_certs=/path/ca.crt   TLS; other options of redis-py in the same way
    unix:///run/redis.sock?db=0
    redis+sentinel://user:password@host:26379,host2:26379/mymaster/0     the master that Sentinel names; rediss+sentinel

User and password are those of the Redis servers; if Sentinels ask too: `?sentinel_username=u&sentinel_password=p`.

Rule 1: no message shows a password. A url that cannot be read may have it anywhere, so nothing of such a url is shown.
Rule 2: the client repeats nothing by itself (`redis_calls`, rule 2); after a fail-over the next call finds the new
        master.
Rule 3: values go from their own memory into the socket. The packer that hiredis brings copies each of them four times
        into fresh memory: 25 ms of processor time instead of 2 for a record of 8 MB (measured).
"""

import re
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from redis import Redis
from redis.backoff import NoBackoff
from redis.connection import PythonRespSerializer, SSLConnection, parse_url
from redis.retry import Retry
from redis.sentinel import Sentinel

from joinery.model.errors import UserMustAct

ANSWER_S: Final = 30.0
"""How long an answer may take."""
_TOGETHER_BYTES: Final = 6000
"""Smaller pieces of a command are sent together."""
_SENTINEL: Final = {"redis+sentinel": "redis", "rediss+sentinel": "rediss"}
_SENTINEL_PORT: Final = 26379


def client_of(url: str) -> Redis:
    """A client of the Redis at this url; nobody is asked yet."""
    try:
        if _split(url).scheme in _SENTINEL:
            return _by_sentinel(url)
        client = Redis.from_url(url, **_common(), **_packing())
        client.connection_pool.make_connection()  # options that there are not are refused here
    except (ValueError, TypeError):
        raise _unreadable() from None  # whose text may show a part of the password
    return client


def shown(url: str) -> str:
    """A url without its secrets (rule 1)."""
    try:
        parts = _split(url)
        hosts = parts.netloc.rpartition("@")[2]
        readable = not parts.fragment and "@" not in parts.path and all(_place(one) for one in hosts.split(",") if one)
    except ValueError:
        readable = False
    return f"{parts.scheme}://{hosts}{parts.path}" if readable else "(a url that cannot be read)"


def _common() -> dict[str, Any]:
    return {
        "protocol": 2,
        "socket_timeout": ANSWER_S,
        "socket_connect_timeout": ANSWER_S,
        "retry": Retry(NoBackoff(), 0),
    }


def _packing() -> dict[str, Any]:
    """Rule 3."""
    return {"command_packer": PythonRespSerializer(_TOGETHER_BYTES, _encoded)}


def _encoded(value: object) -> bytes | bytearray | memoryview:
    return value if isinstance(value, bytes | bytearray | memoryview) else str(value).encode()


def _unreadable() -> UserMustAct:
    """Rule 1."""
    return UserMustAct(
        "found a Redis url that says nothing, wanted redis://user:password@host:port/db, rediss://, unix:// or "
        "redis+sentinel://host:port,host:port/master/db; write characters such as # / @ : in a password as %23 %2F %40 "
        "%3A, and options as redis-py names them"
    )


def _by_sentinel(url: str) -> Redis:
    parts = _split(url)
    who, at, hosts = parts.netloc.rpartition("@")
    master, _, database = parts.path.lstrip("/").partition("/")
    if not master or not hosts:
        raise ValueError("no host, or no name of a master")
    asked = dict(parse_qsl(parts.query))
    for_sentinels = {
        key.removeprefix("sentinel_"): asked.pop(key) for key in list(asked) if key.startswith("sentinel_")
    }
    plain = f"{_SENTINEL[parts.scheme]}://{who}{at}one/{database}?{urlencode(asked)}"
    options = {**_common(), **_packing(), **parse_url(plain)}  # type: ignore[no-untyped-call]
    del options["host"]
    if options.pop("connection_class", None) is SSLConnection:
        options["ssl"] = True
    secure = {key: value for key, value in options.items() if key.startswith("ssl")}
    sentinel = Sentinel(  # type: ignore[no-untyped-call]
        [_place(one) for one in hosts.split(",")],
        sentinel_kwargs={**_common(), **secure, **for_sentinels},
        **options,
    )
    client: Redis = sentinel.master_for(master)  # type: ignore[no-untyped-call]
    client.connection_pool.make_connection()
    return client


def _split(url: str) -> SplitResult:
    """The parts of a url; several hosts, of which one is in brackets, are too much for newer versions of `urlsplit`."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return urlsplit(url)
    netloc = re.split(r"[/?#]", rest, maxsplit=1)[0]
    return urlsplit(f"{scheme}://hosts{rest[len(netloc) :]}")._replace(netloc=netloc)


def _place(text: str) -> tuple[str, int]:
    """host, host:port or [::1]:port."""
    found = urlsplit(f"//{text}")
    if not found.hostname:
        raise ValueError("an empty host")
    return found.hostname, found.port or _SENTINEL_PORT
