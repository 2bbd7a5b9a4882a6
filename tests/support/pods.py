"""The processes of a query as a cluster starts them: by flags and environment, with nobody who plays the operator."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from joinery.adapters.settings import free_port

ROLES = ("gateway", "collector", "worker-0", "worker-1")


def until(is_so: Callable[[], object], seconds: float = 100.0) -> None:
    """Wait for it."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


class Pods:
    """Started one by one; all of them end with the `with` block."""

    def __init__(self, query: Path, redis_url: str, *flags: str, **environment: str) -> None:
        self._query, self._flags = query, flags
        self._environment = {"JOINERY_REDIS_URL": redis_url, **environment}
        self.gateway, self.collector = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self.http = {name: free_port() for name in ROLES}
        self.there: dict[str, subprocess.Popen[bytes]] = {}
        self._said: dict[str, Any] = {}
        self._stack = ExitStack()

    def __enter__(self) -> "Pods":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.there.values():
            process.terminate()
        for process in self.there.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._stack.close()

    def start(self, *names: str, flags: tuple[str, ...] | None = None) -> "Pods":
        """These, or all; `flags` in place of those that all have."""
        for name in names or ROLES:
            role = name.partition("-")[0]
            words = [sys.executable, "-m", f"joinery.{role}", "--query", str(self._query), "--name", name]
            words += ["--keys", "test.query", "--gateway", self.gateway, "--collector", self.collector]
            words += ["--http", f"127.0.0.1:{self.http[name]}"]
            if role != "worker":
                words += ["--listen", getattr(self, role)]
            words += self._flags if flags is None else flags
            said = self._said[name] = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            environment = {**os.environ, **self._environment}
            self.there[name] = subprocess.Popen(words, env=environment, stderr=said)  # noqa: S603
        return self

    def said(self, name: str) -> str:
        """What a process wrote to its standard error."""
        self._said[name].seek(0)
        return str(self._said[name].read().decode())
