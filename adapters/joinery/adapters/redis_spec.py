"""The spec that a query was begun with, and the one that is in force, in Redis beside the log (`redis_log`).

A query file may be edited while the query runs, to change it (`joinery change`) or by mistake. So a process that starts
does not go by the file but by what the log began with: its windows are those before the first change in the log,
whichever file it was given. Only what is read at the start (`Way.RESTART`) is taken from the file. What was changed at
once is told by the gateway.
"""

import logging
from collections.abc import Callable
from typing import Final, cast

from redis import Redis

from joinery.adapters.redis_calls import calling, prefix_of
from joinery.model.errors import BadSpec, Bug
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import KeptSpec, read_spec, restarted, write_spec

log = logging.getLogger(__name__)

SPEC: Final = "spec"


def read_kept(client: Redis, key: str) -> KeptSpec | None:
    """The spec in force; None: it was never changed."""
    with calling():
        version, now = cast("list[bytes | None]", client.hmget(key, "version", "now"))
    return None if version is None or now is None else KeptSpec(int(version), _read(now))


def read_origin(client: Redis, query: str) -> JoinQuerySpec | None:
    """What the log of a query began with; None: there is no log yet."""
    with calling():
        text = cast("bytes | None", client.hget(f"{prefix_of(query)}{SPEC}", "origin"))
    return None if text is None else _read(text)


def in_force(client: Redis, query: str) -> JoinQuerySpec | None:
    """The spec of a query as it was changed last; None: there is no log yet."""
    kept = read_kept(client, f"{prefix_of(query)}{SPEC}")
    return read_origin(client, query) if kept is None else kept.spec


def begin_anew(client: Redis, query: str, spec: JoinQuerySpec) -> None:
    """A log in the gateway's memory begins, with this spec; what an earlier one left is void."""
    key = f"{prefix_of(query)}{SPEC}"
    with calling(), client.pipeline() as pipe:
        pipe.delete(key)
        pipe.hset(key, "origin", write_spec(spec))
        pipe.execute()


def starting_spec(client: Redis, query: str, read_file: Callable[[], JoinQuerySpec]) -> JoinQuerySpec:
    """What a process of a query is built from; a file that cannot be read just now is not needed, once it was."""
    origin = read_origin(client, query)
    if origin is None:
        return read_file()
    try:
        return restarted(origin, read_file())
    except (BadSpec, OSError) as error:
        log.warning("the query file cannot be used, and is not: the query goes on as it is (%s)", error)
        return origin


def _read(text: bytes) -> JoinQuerySpec:
    try:
        return read_spec(text.decode())
    except (BadSpec, ValueError) as error:
        raise Bug(f"found a stored spec that cannot be read ({error}), wanted one of ours") from error
