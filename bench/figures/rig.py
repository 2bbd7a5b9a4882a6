"""Real processes to measure: gateway, throttled workers and collector, fed by two producers at a rate that is set.

The scale is the papers' with time, memory and keys divided by 200 (`SCALE`): W = 3 s, theta = 7.5 KiB, 50,000 keys by
the b-model; 64-byte tuples and the papers' rates stay. t_d is divided by 10 only, to 0.2 s: processes on a shared
machine wake up late by milliseconds. A comparison takes what the simulator was fitted to (14.2 ns), times 200: that is
`worker.speed`. So nothing is fitted here. Rows have no time of their own: a window is the last 3 seconds of arrivals.

Every point is what the gateway's overviews and the workers' load reports say about the measured seconds.
"""

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import yaml

from joinery.cli.local import LocalRun
from joinery.cli.query_file import read_query
from joinery.client import Producer, connect
from joinery.elastic.load import LoadReport
from joinery.gateway.throttling import AT_ONCE, LINK, TURNS
from joinery.generate.bmodel import BModelKeys
from joinery.generate.keys import UniformKeys
from joinery.machine.messages import Overview
from joinery.simulate.costs import PAPER_COMPARISON_NS

SCALE: Final = 200
WINDOW_S: Final = 600 / SCALE
THETA: Final = 7680
SPEED: Final = 1e9 / PAPER_COMPARISON_NS / SCALE
KEYS: Final = 10_000_000 // SCALE
ROW_BYTES: Final = 64
PUSH_S: Final = 0.04
"""Both producers push what has become due so often."""
LOOK_S: Final = 0.05
DISTURBED_S: Final = 0.005
"""Who wakes up that much too late in the mean shares its processors with too much other work."""
START_LIMIT_S: Final = 90.0
_starting: Final = threading.Lock()
"""The environment is this process's; runs side by side are started one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What stays the same while processes run."""

    workers: int
    t_d_s: float = 0.2
    subgroups: int = 2
    fine_tuning: bool = True
    is_throttled: bool = True
    """False: workers join as fast as they can, so they idle."""
    link_bytes_per_s: float | None = None
    turns_known: bool = True
    is_skewed: bool = True
    """Keys by the b-model; False: uniform."""

    @property
    def t_r_s(self) -> float:
        """A load report covers at least one epoch."""
        return max(1.0, self.t_d_s)

    def query(self) -> dict[str, Any]:
        """The query file."""
        window = f"{round(WINDOW_S * 1000)}ms"
        streams = [
            {"name": name, "schema": {"key": "int64", "rest": f"binary({ROW_BYTES - 8})"}, "window": window}
            for name in ("left", "right")
        ]
        spec = {
            "streams": streams,
            "join": {"on": ["key"], "method": "nested-loop"},
            "select": ["left.key"],
            "sinks": [{"count": {}}],
            "replicas": self.workers,
            "scaling": {"mode": "Manual"},
            "epochs": {
                "distribution": f"{round(self.t_d_s * 1000)}ms",
                "reorganization": f"{round(self.t_r_s * 1000)}ms",
                "subgroups": self.subgroups,
            },
            "fineTuning": {"enabled": self.fine_tuning, "theta": f"{THETA / 1024}Ki", "block": f"{ROW_BYTES / 1024}Ki"},
            "worker": {"speed": round(SPEED)} if self.is_throttled else {},
            "checkpoint": {"durability": "memory", "interval": "1h"},
        }
        name = f"figure-{self.workers}-{os.getpid()}"
        return {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": name}, "spec": spec}


@dataclass(frozen=True, slots=True)
class Share:
    """One worker in the measured seconds; times are shares of them."""

    busy: float
    idle: float
    communication: float
    window_bytes: float


@dataclass(frozen=True, slots=True)
class Point:
    """One rate, measured."""

    setup: Setup
    rate_hz: float
    """Of each stream, as it came."""
    delay_s: float
    """Mean production delay."""
    results: int
    peak_bytes: int
    """The most that waited in the mini-buffers, since the processes started."""
    shares: tuple[Share, ...]
    load: float
    """The machine's load average: a figure made beside other work may be disturbed."""
    late_s: float
    """By how much this process woke up too late from its short sleeps, in the mean: how much it was disturbed."""

    @property
    def communication(self) -> list[float]:
        """Of each worker, a share of the time."""
        return [one.communication for one in self.shares]

    @property
    def windows(self) -> list[float]:
        """Bytes of each worker's windows."""
        return [one.window_bytes for one in self.shares]


class Rig:
    """Running processes, and what they said."""

    def __init__(self, run: LocalRun, setup: Setup) -> None:
        self._run, self._setup = run, setup
        self._views: list[Overview] = []
        self._rate_hz = 0.0
        self._done = threading.Event()
        self._late: list[float] = []
        self.failed: BaseException | None = None

    def feed(self) -> None:
        """Both producers, until the rig is closed; what is due is counted in rows, so a late push brings more."""
        try:
            with connect(self._run.gateway) as query:
                self._feed([query.producer(name) for name in ("left", "right")])
        except BaseException as error:
            if not self._done.is_set():
                self.failed = error

    def _feed(self, producers: Sequence[Producer]) -> None:
        keys = BModelKeys(KEYS, 0.7) if self._setup.is_skewed else UniformKeys(KEYS)
        rng = np.random.default_rng(1)
        rest = pa.py_buffer(bytes(ROW_BYTES - 8))
        owed, at_s = 0.0, time.monotonic()
        while not self._done.wait(PUSH_S):
            now_s = time.monotonic()
            owed, at_s = owed + self._rate_hz * (now_s - at_s), now_s
            rows = int(owed)
            owed -= rows
            for producer in producers if rows else ():
                filled = pa.FixedSizeBinaryArray.from_buffers(
                    pa.binary(ROW_BYTES - 8), rows, [None, pa.py_buffer(rest.to_pybytes() * rows)]
                )
                producer.push(pa.RecordBatch.from_arrays([keys.draw(rng, rows), filled], names=["key", "rest"]))

    def close(self) -> None:
        self._done.set()

    def ready(self) -> None:
        """Until all workers are in the map."""
        until = time.monotonic() + START_LIMIT_S
        while (view := self._run.progress.last) is None or view.degree < self._setup.workers:
            if time.monotonic() > until:
                raise TimeoutError(f"found no {self._setup.workers} workers after {START_LIMIT_S:g} s")
            time.sleep(0.05)

    def _watch(self, seconds: float) -> None:
        """Let time pass, and keep every overview."""
        until = time.monotonic() + seconds
        while (begun := time.monotonic()) < until:
            time.sleep(LOOK_S)
            self._late.append(time.monotonic() - begun - LOOK_S)
            if self.failed is not None:
                raise self.failed
            view = self._run.progress.last
            if view is not None and (not self._views or self._views[-1].at_ns != view.at_ns):
                self._views.append(view)

    def point(self, rate_hz: float, *, settle_s: float = WINDOW_S, measure_s: float = 5.0) -> Point:
        """Set the rate, wait until the windows are full, measure; a disturbed point is measured once more."""
        self._rate_hz = rate_hz
        self._watch(settle_s + 2 * self._setup.t_r_s)  # the first reports after it are of the new rate alone
        found = self._measured(measure_s)
        if found.late_s <= DISTURBED_S:
            return found
        return min(found, self._measured(measure_s), key=lambda one: one.late_s)

    def _measured(self, seconds: float) -> Point:
        self._views, self._late = self._views[-1:], []
        self._watch(seconds)
        before, after = self._views[0], self._views[-1]
        seconds = (after.at_ns - before.at_ns) / 1e9
        rows = sum(one.rows for one in after.streams) - sum(one.rows for one in before.streams)
        results = after.produced.rows - before.produced.rows
        delay_ns = (after.produced.total_ns - before.produced.total_ns) / max(1, results)
        return Point(
            self._setup, rows / seconds / 2, delay_ns / 1e9, results, after.unsent_peak_bytes, self._shares(),
            os.getloadavg()[0], float(np.mean(self._late)),
        )  # fmt: skip

    def rest(self, limit_s: float = 40.0) -> None:
        """No rows until everything that waits is joined, so that the next point begins anew."""
        self._rate_hz = 0.0
        until = time.monotonic() + limit_s
        self._watch(self._setup.t_r_s)
        while time.monotonic() < until and not self._is_idle():
            self._watch(0.2)

    def _is_idle(self) -> bool:
        view = self._views[-1]
        busy = [worker.report.busy for worker in view.workers if worker.report is not None]
        return view.unsent_bytes == 0 and max(busy, default=1.0) < 0.1

    def _shares(self) -> tuple[Share, ...]:
        reports: dict[str, list[LoadReport]] = {}
        for view in self._views[1:]:
            for worker in view.workers:
                known = reports.setdefault(worker.worker, [])
                if worker.report is not None and (not known or _differ(worker.report, known[-1])):
                    known.append(worker.report)
        return tuple(_share(reports[worker]) for worker in sorted(reports) if reports[worker])


def _differ(one: LoadReport, other: LoadReport) -> bool:
    return (one.elapsed_s, one.cpu_s, one.idle_s) != (other.elapsed_s, other.cpu_s, other.idle_s)


def _share(reports: Sequence[LoadReport]) -> Share:
    elapsed = sum(one.elapsed_s for one in reports)
    return Share(
        sum(one.busy * one.elapsed_s for one in reports) / elapsed,
        sum(one.idle_s for one in reports) / elapsed,
        sum(one.comm_s for one in reports) / elapsed,
        float(np.mean([one.window_bytes for one in reports])),
    )


@contextmanager
def rig(setup: Setup) -> Iterator[Rig]:
    """The processes of a setup, with producers that wait for a rate."""
    with tempfile.TemporaryDirectory(prefix="joinery-figure-") as folder:
        path = Path(folder) / "query.yaml"
        path.write_text(yaml.safe_dump(setup.query()))
        said = path.with_suffix(".log")
        local = LocalRun(path, read_query(path))
        with _starting, _environment(setup), _errors_into(said):
            run = local.__enter__()
        made = Rig(run, setup)
        feeder = threading.Thread(target=made.feed, name="feed", daemon=True)
        try:
            made.ready()
            feeder.start()
            yield made
        except Exception:
            sys.stderr.write(said.read_text())
            raise
        finally:
            made.close()
            if feeder.is_alive():
                feeder.join(timeout=5)
            run.close()


@contextmanager
def _environment(setup: Setup) -> Iterator[None]:
    wanted = {} if setup.link_bytes_per_s is None else {LINK: str(setup.link_bytes_per_s)}
    wanted |= {} if setup.turns_known else {TURNS: AT_ONCE}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name in wanted:
            del os.environ[name]


@contextmanager
def _errors_into(path: Path) -> Iterator[None]:
    """What processes that are started now complain about: told only if the run fails, since they are ended early."""
    mine = os.dup(2)
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(mine, 2)
        os.close(mine)


def ladder(setup: Setup, rates: Sequence[float], *, measure_s: float = 5.0) -> list[Point]:
    """One rate after the other on the same processes; the rates must rise, since a backlog stays."""
    with rig(setup) as running:
        return [running.point(rate, measure_s=measure_s) for rate in rates]


def side_by_side(work: Mapping[Any, Callable[[], Any]]) -> dict[Any, Any]:
    """Several at once, each in a thread; throttled processes mostly sleep."""
    found: dict[Any, Any] = {}
    errors: list[BaseException] = []

    def run(name: Any, task: Callable[[], Any]) -> None:
        try:
            found[name] = task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=one) for one in work.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return {name: found[name] for name in work}
