"""A worker that is stopped through its whole fail-over and then goes on: whatever it still says changes nothing."""

import os
import signal
import time
from pathlib import Path

import pytest

from joinery.adapters.tracing import FOLDER, read_trace
from joinery.cli.local import LocalRun
from joinery.machine.facts import HeadsWritten, Received
from joinery.machine.messages import Owners, Results
from tests.chaos.plans import Feed, Plan
from tests.chaos.runs import judge

TRIES = 4
ZOMBIE = "worker-1"


def plan() -> Plan:
    """Ten seconds of two streams on three workers; nobody is harmed but by the test."""
    streams = [
        {
            "name": name,
            "schema": {"k": "int64", "n": "int64", "s": "string", "ts": "int64"},
            "window": f"{window}ms",
            "time": {"column": "ts", "unit": "ms"},
        }
        for name, window in (("a", 400), ("b", 150))
    ]
    spec = {
        "streams": streams,
        "join": {"on": ["k"], "type": "full", "method": "hash"},
        "sinks": [{"file": {"path": "results.parquet"}}],
        "epochs": {"reorganization": "1s", "subgroups": 1},
        "partitions": 12,
        "replicas": 3,
        "checkpoint": {"interval": "100ms", "durability": "wal"},
    }
    feeds = tuple(Feed(name, f"{name}-0", seed, 8000, 40) for seed, name in enumerate("ab"))
    return Plan(0, 10_000, 0, 150, spec, feeds, (), (), subscribes=True)


class Stopping:
    """Stops the worker in the middle, and lets it go on when the others have taken over and go ahead."""

    def __init__(self) -> None:
        self.pid = self.results = 0
        self.woken_ns: int | None = None
        self.returned = False

    def __call__(self, run: LocalRun) -> None:
        view = run.progress.last
        if view is None or not view.results:
            return
        there = {one.worker: one.groups for one in view.workers if one.is_up}
        if not self.pid and len(there) == 3:
            self.pid, self.results = run.pids[ZOMBIE], view.results
            os.kill(self.pid, signal.SIGSTOP)
        elif self.pid and self.woken_ns is None and ZOMBIE not in there and sum(there.values()) == 12:
            if not view.under_way and view.results > self.results + 100:
                assert run.pids[ZOMBIE] == self.pid
                self.woken_ns = time.time_ns()
                os.kill(self.pid, signal.SIGCONT)
        elif self.woken_ns is not None and view.at_ns > self.woken_ns:
            self.returned |= ZOMBIE in there


def stale_results(trace: Path, after_ns: int) -> int:
    """Messages of a former owner that reached the collector."""
    terms, found = None, 0
    for step in read_trace(trace):
        message = step.fact.message if isinstance(step.fact, Received) else None
        if isinstance(message, Owners):
            terms = message.versions
        elif isinstance(message, Results) and terms is not None and step.now_ns > after_ns:
            found += bool((message.versions < terms[message.groups]).any())
    return found


def refused_heads(trace: Path, after_ns: int) -> int:
    """Groups whose checkpoint a worker was not allowed to write any more."""
    steps = (step for step in read_trace(trace) if step.now_ns > after_ns)
    return sum(len(step.fact.refused) for step in steps if isinstance(step.fact, HeadsWritten))


def test_a_worker_that_sleeps_through_its_fail_over_is_fenced_and_comes_back_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be stopped at a moment at which it has nothing to say: such a run is exact, but tells nothing."""
    said: list[int] = []
    while not sum(said) and len(said) < TRIES:
        said.append(_stale_words(tmp_path / f"{len(said)}", monkeypatch))
    assert sum(said) > 0, f"it had nothing to say in {TRIES} runs: this test tells nothing"


def _stale_words(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """What the zombie said that nobody may believe, in one run."""
    folder.mkdir()
    monkeypatch.setenv(FOLDER, str(folder))
    stopping = Stopping()
    verdict = judge(plan(), watch=stopping)
    assert verdict.is_exact, str(verdict)
    assert stopping.woken_ns is not None
    assert 1 == verdict.lost
    assert stopping.returned, str(verdict)
    assert ["worker-1 is silent"] == [note[:18] for note in verdict.notes if ZOMBIE in note], "it did not crash"
    (collector,) = folder.glob("collector-*.trace")
    zombie = folder / f"{ZOMBIE}-{stopping.pid}.trace"
    return stale_results(collector, stopping.woken_ns) + refused_heads(zombie, stopping.woken_ns)
