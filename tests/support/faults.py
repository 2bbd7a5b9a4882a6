"""A `joinery run` that is done harm to: where its processes are, what they say, and what they leave behind."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from tests.support.running import command

PATIENCE_S = 90.0
"""How long a test waits for what comes within seconds on an idle machine."""
PAIR = "a.k = b.k and ((a.ts between b.ts - 300 and b.ts) or (b.ts between a.ts - 120 and a.ts))"
OLD = "k,n\nfrom an earlier run\n"


def until(is_so: Callable[[], bool], what: str, seconds: float = PATIENCE_S, seen: object = "") -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"it did not come: {what}; {seen}"
        time.sleep(0.02)


def write_files(folder: Path, rows: int = 3000, span_ms: int = 6000) -> None:
    """Two files of rows, and an output of an earlier run."""
    rng = np.random.default_rng(11)
    for name in ("a", "b"):
        times = np.sort(rng.integers(0, span_ms, rows))
        table = pa.table({"k": rng.integers(0, 200, rows), "n": np.arange(rows), "ts": times})
        pq.write_table(table, folder / f"{name}.parquet")
    (folder / "out.csv").write_text(OLD)


def write_query(folder: Path, **more: Any) -> Path:
    """A join of the two files, as fast as their times say."""
    streams = [
        {
            "name": name,
            "schema": {"k": "int64", "n": "int64", "ts": "int64"},
            "window": f"{window}ms",
            "time": {"column": "ts", "unit": "ms"},
            "source": {"file": {"path": f"{name}.parquet"}, "pace": "time"},
        }
        for name, window in (("a", 300), ("b", 120))
    ]
    spec: dict[str, Any] = {
        "streams": streams,
        "join": {"on": ["k"]},
        "sinks": [{"file": {"path": "out.csv"}}],
        "checkpoint": {"durability": "memory", "interval": "200ms"},
        "epochs": {"reorganization": "1s"},
        "scaling": {"mode": "Manual"},
        "replicas": 2,
        **more,
    }
    query = {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": "trial"}, "spec": spec}
    path = folder / "query.yaml"
    path.write_text(yaml.safe_dump(query))
    return path


def truth(folder: Path) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name in "ab":
            connection.execute(f"create view {name} as select * from '{folder}/{name}.parquet'")
        return Counter(connection.execute(f"select a.k, a.n, a.ts, b.k, b.n, b.ts from a join b on {PAIR}").fetchall())


def written(folder: Path) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return Counter(connection.execute(f"select * from read_csv('{folder}/out.csv', header = true)").fetchall())


class Running:
    """`joinery run` as a process, in a group of its own, with a temporary folder of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder, self.temporary = folder, folder / "t"
        self.temporary.mkdir(exist_ok=True)
        environment = {**os.environ, "TMPDIR": str(self.temporary), "XDG_RUNTIME_DIR": str(self.temporary)}
        self.process = subprocess.Popen(  # noqa: S603
            command("run", str(folder / "query.yaml"), *words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, env=environment, start_new_session=True,
        )  # fmt: skip
        self._lines: list[str] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        with self.process.stderr or open(os.devnull) as said:
            for line in said:
                self._lines.append(line)

    @property
    def said(self) -> str:
        return "".join(self._lines)

    def hears(self, text: str, times: int = 1) -> None:
        """Until the run has said so."""
        until(lambda: self.said.count(text) >= times or self.process.poll() is not None, f"{text!r} in {self.said}")
        assert self.said.count(text) >= times, self.said

    def ends(self, seconds: float = PATIENCE_S) -> int:
        """Its exit code; never left behind, even if the test fails."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"it did not end within {seconds} s: {self.said}") from None
        self._reading.join(10)
        return code

    def of(self, name: str) -> int | None:
        """The process of that name, if it is there."""
        return self.processes().get(name)

    def processes(self) -> dict[str, int]:
        """All processes that have to do with this run, by name, Redis and the runner among them."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_text().split("\0")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            is_nursery = words[2:4] == ["joinery.cli.nursery", str(self.process.pid)]
            if state == "Z" or not (is_nursery or any(str(self.folder) in word for word in words)):
                continue
            name = words[words.index("--name") + 1] if "--name" in words else _other(words)
            found[name] = int(entry.name)
        return found

    def ports(self) -> list[int]:
        """Where its processes listen."""
        found = []
        for pid in self.processes().values():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            except OSError:
                continue
            if "--listen" in words:
                found.append(int(words[words.index("--listen") + 1].rpartition(":")[2]))
        return found

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal to a process that must be there; its id."""
        until(lambda: self.of(name) is not None, name)
        pid = self.of(name)
        assert pid is not None
        os.kill(pid, how)
        return pid

    def has_parts(self) -> bool:
        return any(part.stat().st_size for part in self.folder.glob("*.parts/*"))

    def left_behind(self, ports: list[int]) -> list[str]:
        """Processes, files and open ports that should not be there any more."""
        names = {"query.yaml", "a.parquet", "b.parquet", "out.csv", "t"}
        left = [path.name for path in self.folder.iterdir() if path.name not in names]
        left += [str(path) for path in self.temporary.rglob("*") if path != self.temporary / "joinery"]
        for port in ports:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    left.append(f"port {port}")
        return left + [f"{name} ({pid})" for name, pid in self.processes().items()]


def _other(words: list[str]) -> str:
    if any("redis_watcher" in word for word in words):
        return "watcher"
    if "joinery.cli.nursery" in words:
        return "nursery"
    return "redis" if "redis-server" in words[0] else "runner"


def resident_bytes(pid: int) -> int:
    """Memory that a process has in use."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def processor_s(pid: int) -> float:
    """Seconds of a processor that a process has used."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
