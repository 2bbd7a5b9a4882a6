"""Queries that run on this machine, by name: a small file in the user's runtime folder says where each one listens.

`joinery run` writes it and takes it away; `joinery push`, `tail`, `change` and `stop` find the addresses there. A
file whose process is gone is no query.
"""

import json
import os
import socket
import stat
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from joinery.model.errors import UserMustAct
from joinery.model.spec import JoinQuerySpec

LOOK_S: Final = 0.2
"""How often somebody looks who waits for a query."""
REACH_S: Final = 30.0
"""How long a gateway that should be there is waited for, if nobody says how long."""
WAIT_HELP: Final = "Seconds to wait for a query that is not there. Left out: 30, none if no such file or name runs."
_QUERY_FILES: Final = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Running:
    """Where a query listens."""

    name: str
    file: str
    gateway: str
    collector: str
    pid: int
    dashboard: str = ""
    """Its address; empty: there is none."""

    @property
    def is_alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


class Announcement:
    """Other commands find the query between `begin` and `end`."""

    def __init__(self, query: Path, name: str, gateway: str, collector: str) -> None:
        self._query, self._name, self._addresses = query, name, (gateway, collector)
        self.path: Path | None = None
        """The file, while it is there."""
        self.dashboard = ""

    def begin(self) -> None:
        """Write the file; where that is not possible the address must be given instead."""
        running = Running(self._name, str(self._query), *self._addresses, os.getpid(), self.dashboard)
        with suppress(OSError):
            path = made_folder() / f"{quote(self._name, safe='')}-{running.pid}.json"
            path.write_text(json.dumps(asdict(running)))
            self.path = path

    def end(self) -> None:
        """Take the file away."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            self.path = None


class NotRunning(UserMustAct):
    """No query of that file or name runs on this machine."""


def gateway_of(query_or_address: str, wait_s: float = 0.0) -> str:
    """The gateway's address of a query file, of a query's name (waited for so long), or the address itself."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            found = running_of(query_or_address)
        except NotRunning:
            is_typed_wrong = Path(query_or_address).suffix in _QUERY_FILES and not Path(query_or_address).exists()
            if is_typed_wrong or time.monotonic() >= deadline:
                raise
            time.sleep(LOOK_S)
        else:
            return query_or_address if found is None else found.gateway


def reached(query_or_address: str, wait_s: float | None) -> tuple[str, float]:
    """The gateway's address, and how long it may be silent; None: nobody said how long to wait."""
    return gateway_of(query_or_address, wait_s or 0.0), REACH_S if wait_s is None else wait_s


def running_of(query_or_address: str) -> Running | None:
    """The run of a query file, or of a query's name; None: it is an address."""
    found = all_running()
    path = Path(query_or_address)
    if path.suffix in _QUERY_FILES or path.is_file():
        matching = [one for one in found if Path(one.file) == path.resolve()]
    else:
        matching = [one for one in found if one.name == query_or_address]
        if not matching and ":" in query_or_address:
            return None
    if len(matching) == 1:
        return matching[0]
    there = ", ".join(f"{one.name} at {one.gateway}" for one in matching or found) or "none"
    if matching:
        raise UserMustAct(
            f"found {len(matching)} running queries {query_or_address!r} on this machine ({there}), wanted one; "
            "name it by its HOST:PORT"
        )
    raise NotRunning(
        f"found no running query {query_or_address!r} on this machine (running: {there}), wanted one; "
        "start it with joinery run, or give HOST:PORT"
    )


def running_at(address: str) -> Running:
    """The run on this machine whose gateway is there."""
    host, _, port = address.rpartition(":")
    wanted = f"127.0.0.1:{port}" if host in ("localhost", "") else address
    for one in all_running():
        if one.gateway == wanted:
            return one
    there = ", ".join(f"{one.name} at {one.gateway}" for one in all_running()) or "none"
    raise UserMustAct(
        f"found no run of this machine at {address} (running: {there}), wanted one; a run is stopped where it runs"
    )


def all_running() -> list[Running]:
    """The queries of this user that run on this machine now."""
    found = []
    for path in sorted(folder().glob("*.json")):
        try:
            one = Running(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            continue
        if one.is_alive:
            found.append(one)
    return found


def check_port(port: int) -> None:
    """Refuse a port that somebody has."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            message = f"--port: found {port} ({error.strerror}), wanted a free one; choose another, or leave it out"
            raise UserMustAct(message) from error


def folder() -> Path:
    """Where runs of this user tell of themselves."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    return Path(base) / "joinery" if base else Path(tempfile.gettempdir()) / f"joinery-{os.getuid()}"


def made_folder() -> Path:
    """The folder, which is there now; `PermissionError` if others could put something into it."""
    made = folder()
    made.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = made.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{made} is not this user's alone")
    return made


def addresses(spec: JoinQuerySpec, query: Path, gateway: str, dashboard: str = "") -> str:
    """What to tell whoever wants to look, to push or to read."""
    lines = [f"dashboard: {dashboard}"] if dashboard else []
    lines.append(f"results: joinery tail {gateway} --follow")
    lines += [
        f"table {stream.name}: Spark starts and cuts it into segments first (10 seconds or more); rows wait until then"
        for stream in spec.streams
        if stream.table is not None
    ]
    pushed = [stream.name for stream in spec.streams if stream.source is None and stream.table is None]
    if pushed:
        lines.append(f"{query.name} waits for rows of {', '.join(pushed)}:")
        lines += [f"  joinery push {gateway} {name} FILE --end" for name in pushed]
    return "\n".join(lines)
