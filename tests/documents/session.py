"""A person who does what a page says: one folder, one command after the other, a terminal for each that stays."""

import gzip
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
from pyarrow import csv

from tests.documents.blocks import ROOT, blocks

ORDERS: Final = pa.table(
    {"order_id": [1, 2, 3], "cost": [10.0, 20.0, 30.0], "ts": pa.array([0, 1000, 2000], pa.timestamp("us"))}
)
FULFILMENTS: Final = pa.table(
    {"order_id": [2, 3], "clerk": ["Ann", "Bo"], "ts": pa.array([5000, 9000], pa.timestamp("us"))}
)
STAYS: Final = re.compile(r"joinery (run query\.yaml (--port|--state)|tail \S+ --follow)")
PATIENCE_S: Final = 120.0


def query_of_the_readme() -> str:
    """Its file."""
    (text,) = [one.text for one in blocks("README.md") if one.language == "yaml" and "kind: JoinQuery" in one.text]
    return text


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@dataclass(slots=True)
class Terminal:
    """A command that stays."""

    command: str
    process: subprocess.Popen[bytes]
    said: Path


@dataclass(slots=True)
class Session:
    """The folder and its terminals; use it with `with`: at the end of a page everything that stays must end well."""

    folder: Path
    stays: list[Terminal] = field(default_factory=list)
    gateway: int = field(default_factory=free_port)
    dashboard: int = field(default_factory=free_port)

    def __enter__(self) -> Self:
        (self.folder / "query.yaml").write_text(query_of_the_readme())
        csv.write_csv(ORDERS, self.folder / "orders.csv")
        csv.write_csv(FULFILMENTS, self.folder / "fulfilments.csv")
        lines = "".join(
            f'{{"order_id": {row["order_id"]}, "clerk": "{row["clerk"]}", "ts": "{row["ts"].isoformat()}"}}\n'
            for row in FULFILMENTS.to_pylist()
        )
        (self.folder / "fulfilments.ndjson.gz").write_bytes(gzip.compress(lines.encode()))
        shutil.copytree(ROOT / "examples", self.folder / "examples")
        (self.folder / ".venv").symlink_to(sys.prefix)
        (self.folder / "tests").symlink_to(ROOT / "tests")  # example 00 is checked by their oracle
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if kind is None:
                self.all_ended()
        finally:
            for one in self.stays:
                if one.process.poll() is None:
                    one.process.terminate()
                    one.process.wait(30)

    def perform(self, command: str) -> str:
        """Run it; what it said on standard output (nothing yet if it stays)."""
        if "curl" in command:
            return self._looked_up(command)
        if "joinery change" in command:
            self._edit()
        if STAYS.search(command):
            return self._stay(command)
        done = subprocess.run(  # noqa: S603
            ["bash", "-c", self._here(command)],  # noqa: S607
            cwd=self.folder, env=self._environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert 0 == done.returncode, f"{command}\n{done.stdout}\n{done.stderr}\n{self._said()}"
        return done.stdout

    def all_ended(self) -> None:
        """What stays ends when the query does; each must have ended well."""
        for one in self.stays:
            assert 0 == one.process.wait(PATIENCE_S), f"{one.command}\n{one.said.read_text()}"
        self.stays.clear()

    def _stay(self, command: str) -> str:
        is_run = "joinery run" in command
        if is_run:
            self.all_ended()
        said = self.folder / f"terminal-{time.monotonic_ns()}.txt"
        flags = f" --dashboard 127.0.0.1:{self.dashboard}" if is_run else ""
        with said.open("wb") as out:
            process = subprocess.Popen(  # noqa: S603
                ["bash", "-c", f"exec {self._here(command)}{flags}"],  # noqa: S607
                cwd=self.folder, env=self._environment(), stdout=out, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self.stays.append(Terminal(command, process, said))
        if is_run:
            self._until_it_listens()
        return ""

    def _until_it_listens(self) -> None:
        end = time.monotonic() + PATIENCE_S
        while "dashboard:" not in self.stays[-1].said.read_text():
            assert time.monotonic() < end, self._said()
            assert self.stays[-1].process.poll() is None, self._said()
            time.sleep(0.05)

    def _looked_up(self, command: str) -> str:
        """`curl`, without it; a page that does not start a query means one that runs."""
        if not self.stays:
            self.perform("joinery run query.yaml --port 7400")
        (url,) = re.findall(r"http://\S+", self._here(command))
        end, text = time.monotonic() + PATIENCE_S, ""
        while "joinery_gateway" not in text and time.monotonic() < end:  # until the gateway has said something
            time.sleep(0.2)
            with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - of this machine
                text = str(answer.read().decode())
        self.perform("joinery stop query.yaml --drain")
        return text

    def _edit(self) -> None:
        path = self.folder / "query.yaml"
        assert "window: 10m" in path.read_text()
        path.write_text(path.read_text().replace("window: 10m", "window: 15m"))

    def _here(self, command: str) -> str:
        """With ports that are free on this machine."""
        return command.replace("7400", str(self.gateway)).replace("7480", str(self.dashboard))

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}", "PYTHONHASHSEED": "0"}

    def _said(self) -> str:
        return "\n".join(f"--- {one.command}\n{one.said.read_text()}" for one in self.stays)
