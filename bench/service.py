"""The service as its users see it: a producer process, the gateway, workers, the collector, a sink or a subscriber.

Everything is a process of its own and talks real gRPC; `joinery run` starts them. What is timed is from the first push
until the last result is committed. The number of results is checked against the pairs that were counted when the input
was made. Unless it is said no checkpoint falls into a run (the peers' figures are without them, too).
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.answer import BenchError
from bench.inputs import Files, written
from bench.lab import Lab
from bench.measure import Sample
from bench.report import Metric
from joinery.adapters.tuning import settle
from joinery.cli.local import LocalRun
from joinery.cli.query_file import read_query
from joinery.client import connect
from joinery.generate.workloads import ORIGIN_NS, PAYLOAD_BYTES

LIMIT_S: Final = 600.0
"""A run that takes longer hangs."""
_LOOK_S: Final = 0.05
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_SINKS: Final[Mapping[str, Any]] = {"count": {"count": {}}, "parquet": {"file": {"path": "results.parquet"}}}


@dataclass(slots=True)
class Used:
    """What the processes of a run have used."""

    cpu_s: dict[str, float] = field(default_factory=dict)
    rss_bytes: dict[str, int] = field(default_factory=dict)
    """The most that each had."""
    _before: dict[str, float] = field(default_factory=dict)

    def look(self, pids: Mapping[str, int]) -> None:
        """Once more; what a process used before the first look does not count."""
        for name, pid in pids.items():
            try:
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended; what was seen last holds
            cpu = (int(stat[11]) + int(stat[12])) / _TICKS
            self.cpu_s[name] = cpu - self._before.setdefault(name, cpu)
            self.rss_bytes[name] = max(self.rss_bytes.get(name, 0), int(stat[21]) * _PAGE)


@dataclass(frozen=True, slots=True)
class Ran:
    """One run."""

    tuples: int
    seconds: float
    used: Used

    @property
    def tuples_per_s(self) -> float:
        return self.tuples / self.seconds


NO_CHECKPOINT: Final[Mapping[str, str]] = {"durability": "memory", "interval": "1h"}


def throughput(
    lab: Lab, name: str, workers: int, sink: str, checkpoint: Mapping[str, str] = NO_CHECKPOINT
) -> Ran:  # fmt: skip
    """A workload as fast as it goes, to a sink."""
    files = written(lab.workloads[name], lab.folder / "data" / name, lab.say)
    with _running(files, workers, sink, checkpoint) as (run, pusher):
        used, begun = Used(), 0.0
        pids = {name: pid for name, pid in {**run.pids, "producer": pusher.pid}.items() if name != "watcher"}
        used.look(pids)
        begun = _go(pusher)

        def look(one: LocalRun) -> None:
            used.look(pids)
            if time.time() - begun > LIMIT_S:
                one.failed = f"found no end after {LIMIT_S:g} s, wanted one"

        if not run.wait(look, _LOOK_S):
            raise BenchError(f"{name}: {run.failed}")
        results = 0 if run.progress.last is None else run.progress.last.results
        if run.finished_s is None or results != files.pairs:
            raise BenchError(f"{name}: found {results} results, wanted {files.pairs}")
        ran = Ran(2 * files.workload.rows_per_stream, run.finished_s - begun, used)
        how = "" if checkpoint is NO_CHECKPOINT else f", {' '.join(checkpoint.values())}"
        lab.say(f"{name}: {workers} workers, {sink}{how}: {ran.tuples_per_s / 1e6:.2f} M tuples/s")
        return ran


def latencies_ms(lab: Lab, name: str, workers: int) -> NDArray[np.float64]:
    """Of every result, from the due time of its later tuple until a subscriber has it; the rows come at their times."""
    files = written(lab.workloads[name], lab.folder / "data" / name, lab.say)
    with _running(files, workers, "count", NO_CHECKPOINT, "--paced") as (run, pusher), connect(run.gateway) as query:
        results = iter(query.results())
        begun = _go(pusher)
        found, rows = [], 0
        for batch in results:
            now = time.time()
            later = np.maximum(batch.column("s1_ts").to_numpy(), batch.column("s2_ts").to_numpy())
            found.append(1e3 * (now - begun) - (later - ORIGIN_NS // 1000) / 1e3)
            rows += batch.num_rows
    if rows != files.pairs:
        raise BenchError(f"{name}: found {rows} results, wanted {files.pairs}")
    return np.concatenate(found)


@contextmanager
def _running(
    files: Files, workers: int, sink: str, checkpoint: Mapping[str, str], *flags: str
) -> Iterator[tuple[LocalRun, subprocess.Popen[str]]]:  # fmt: skip
    """The query and its producer, all of them ready."""
    with tempfile.TemporaryDirectory(prefix="joinery-bench-") as folder:
        path = Path(folder) / "query.yaml"
        path.write_text(json.dumps(_query(files, workers, sink, checkpoint)))
        settle()  # as `joinery run` does
        with LocalRun(path, read_query(path)) as run:
            command = [sys.executable, "-m", "bench.pusher", run.gateway, str(files.folder), *flags]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as pusher:
                try:
                    _wait_until_ready(run, pusher, workers)
                    yield run, pusher
                finally:
                    pusher.kill()


def _wait_until_ready(run: LocalRun, pusher: "subprocess.Popen[str]", workers: int) -> None:
    if pusher.stdout is None or pusher.stdout.readline().strip() != "ready":
        raise BenchError("the producer did not come up")
    until = time.monotonic() + LIMIT_S
    while run.progress.last is None or run.progress.last.degree < workers:
        if time.monotonic() > until:
            raise BenchError(f"found no {workers} workers after {LIMIT_S:g} s, wanted them")
        time.sleep(_LOOK_S)


def _go(pusher: "subprocess.Popen[str]") -> float:
    """Let the producer begin; when it did."""
    if pusher.stdin is None or pusher.stdout is None:
        raise BenchError("the producer cannot be talked to")
    pusher.stdin.write("go\n")
    pusher.stdin.flush()
    return float(pusher.stdout.readline())


def _query(files: Files, workers: int, sink: str, checkpoint: Mapping[str, str]) -> dict[str, object]:
    def stream(name: str) -> dict[str, object]:
        schema = {"ts": "int64", "key": "int64", "payload": f"binary({PAYLOAD_BYTES})"}
        window = f"{files.workload.window_ns}ns"
        return {"name": name, "schema": schema, "window": window, "time": {"column": "ts", "unit": "us"}}

    spec = {
        "streams": [stream("s1"), stream("s2")],
        "join": {"on": ["key"]},
        "replicas": workers,
        "scaling": {"mode": "Manual"},
        "checkpoint": dict(checkpoint),
        "worker": {"buffer": "4Mi"},  # messages are a quarter of it: 1 MB
        "sinks": [_SINKS[sink]],
    }
    return {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": "bench"}, "spec": spec}


# --- metrics

_ROLES: Final = ("producer", "gateway", "worker", "collector", "redis")


def fast(lab: Lab) -> list[Metric]:
    """Tuples per second with one and two workers, to a counter and to a file; CPU and memory by process."""
    runs = {(workers, sink): [throughput(lab, "U1", workers, sink) for _ in range(lab.reps)] for workers, sink in _FAST}
    rates = {key: Sample(tuple(ran.tuples_per_s for ran in found)) for key, found in runs.items()}
    best = max(runs[2, "count"], key=lambda ran: ran.tuples_per_s)
    cpu = {role: _of_role(best.used.cpu_s, role) / best.tuples * 1e6 for role in _ROLES}
    return [
        Metric.rate("service.U1.tuples_per_s", rates[2, "count"]),
        Metric.rate("service.U1.one_worker.tuples_per_s", rates[1, "count"]),
        Metric.rate("service.U1.parquet.tuples_per_s", rates[2, "parquet"]),
        *(Metric(f"service.U1.{role}.cpu_us", us, "us/tuple") for role, us in cpu.items()),
        Metric("service.U1.cpu_us", sum(cpu.values()), "us/tuple"),
        Metric("service.rss_bytes", sum(best.used.rss_bytes.values()), "bytes"),
    ]


def slow(lab: Lab) -> list[Metric]:
    """Latency at a steady rate."""
    found = latencies_ms(lab, "L1", 1)
    lab.say(f"L1: {found.size:,} results")
    return [Metric(f"service.L1.p{q}_ms", float(np.percentile(found, q)), "ms") for q in (50, 99)]


_FAST: Final = ((2, "count"), (1, "count"), (2, "parquet"))
FAST_NAMES: Final = (
    "service.U1.tuples_per_s", "service.U1.one_worker.tuples_per_s", "service.U1.parquet.tuples_per_s",
    *(f"service.U1.{role}.cpu_us" for role in _ROLES), "service.U1.cpu_us", "service.rss_bytes",
)  # fmt: skip
SLOW_NAMES: Final = ("service.L1.p50_ms", "service.L1.p99_ms")


def _of_role(values: Mapping[str, float], role: str) -> float:
    return sum(value for name, value in values.items() if name.partition("-")[0] == role)
