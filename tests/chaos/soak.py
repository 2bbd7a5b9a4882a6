"""`python -m tests.chaos.soak --minutes 10`: does anything grow that should not?

Two generated streams at a steady rate, groups that change hands all the time, checkpoints and commits as ever. The
memory of every process, and what Redis says that it uses, are looked at every few seconds. Windows are full after
seconds, so from the middle on nothing should grow any more.

Rule: of the second half the robust slope is taken (the median of the slopes between all pairs of samples; Theil and
      Sen), so that a few odd samples mean nothing. Times the length of that half it may be `SHARE` of the median, or
      `FREE_BYTES` if that is more: allocators keep some pages, and what is kept for replay breathes. The server of
      Redis keeps what it once had (`embedded_redis`, rule 4), so that a moment in which rows piled up shows for ever:
      it may grow by `REDIS_BYTES`, and what it holds is judged by its own count.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from joinery.adapters.embedded_redis import connect
from joinery.cli.local import LocalRun
from joinery.cli.query_file import read_query
from joinery.model.errors import TryAgain
from tests.support.faults import processor_s, resident_bytes

EVERY_S = 2.0
EPOCH_S = 1.0
SHARE = 0.05
FREE_BYTES = 8 << 20
REDIS_BYTES = 64 << 20
WORKERS = 3
PARTITIONS = 30


@dataclass(slots=True)
class Samples:
    """Bytes by name, over time."""

    at_s: dict[str, list[float]] = field(default_factory=dict)
    nbytes: dict[str, list[int]] = field(default_factory=dict)
    busy: list[float] = field(default_factory=list)
    """The mean busy share of the workers."""
    processor: list[tuple[float, float]] = field(default_factory=list)
    """When, and seconds of processors that all processes together had used."""

    @property
    def load(self) -> float:
        """The share of this machine that all processes together took."""
        (first_s, before), (last_s, after) = self.processor[0], self.processor[-1]
        return (after - before) / max(1e-9, last_s - first_s) / (os.cpu_count() or 1)

    def add(self, name: str, at_s: float, nbytes: int) -> None:
        self.at_s.setdefault(name, []).append(at_s)
        self.nbytes.setdefault(name, []).append(nbytes)


@dataclass(frozen=True, slots=True)
class Growth:
    """What one process did in the second half."""

    name: str
    median: float
    grown: float
    """Bytes, by the robust slope."""
    bound: float

    @property
    def is_wrong(self) -> bool:
        return self.grown > self.bound

    def __str__(self) -> str:
        mega = [f"{one / 2**20:9.1f}" for one in (self.median, self.grown, self.bound)]
        return f"{self.name:16} {mega[0]} MB {mega[1]} MB {mega[2]} MB  {'GROWS' if self.is_wrong else 'steady'}"


def slope(at_s: Sequence[float], values: Sequence[float]) -> float:
    """The median of the slopes between all pairs."""
    times, levels = np.asarray(at_s, float), np.asarray(values, float)
    first, second = np.triu_indices(times.size, 1)
    return float(np.median((levels[second] - levels[first]) / (times[second] - times[first]))) if first.size else 0.0


def growth(name: str, at_s: Sequence[float], nbytes: Sequence[int]) -> Growth:
    """Of the second half."""
    middle = (at_s[0] + at_s[-1]) / 2
    later = [(at, level) for at, level in zip(at_s, nbytes, strict=True) if at >= middle]
    times, levels = [at for at, _ in later], [float(level) for _, level in later]
    median = float(np.median(levels))
    free = REDIS_BYTES if name == "redis" else FREE_BYTES
    return Growth(name, median, slope(times, levels) * (times[-1] - times[0]), max(free, SHARE * median))


def query_of(rate: int, minutes: float) -> dict[str, Any]:
    """Two streams, at this rate together."""
    streams = [
        {
            "name": name,
            "schema": {"k": "int64", "n": "int64", "ts": "timestamp(us)"},
            "window": "5s",
            "time": {"column": "ts"},
            "source": {
                "generator": {
                    "rate": rate / 2,
                    "keys": {"distribution": "uniform", "range": 10 * rate},
                    "rows": int(rate / 2 * minutes * 60),
                    "seed": seed,
                },
                "pace": "time",
            },
        }
        for seed, name in enumerate("ab")
    ]
    spec = {
        "streams": streams,
        "join": {"on": ["k"], "type": "full"},
        "sinks": [{"count": {}}],
        "results": {"retain": "1Mi"},
        "epochs": {"reorganization": f"{EPOCH_S}s"},
        "partitions": PARTITIONS,
        "replicas": WORKERS,
        "scaling": {"mode": "Manual"},
        "checkpoint": {"interval": "500ms", "durability": "wal"},
    }
    return {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": "soak"}, "spec": spec}


class Looking:
    """Called while the run goes on: samples, and moves of groups every epoch."""

    def __init__(self) -> None:
        self.samples = Samples()
        self._dice = random.Random("soak")
        self._began_s = time.monotonic()
        self._sample_s = self._move_s = 0.0

    def __call__(self, run: LocalRun) -> None:
        now_s = time.monotonic() - self._began_s
        view = run.progress.last
        if view is None or not view.results:
            return
        if now_s >= self._move_s:
            self._move_s = now_s + EPOCH_S
            for _ in range(2):
                run.move(self._dice.randrange(PARTITIONS), f"worker-{self._dice.randrange(WORKERS)}")
        if now_s >= self._sample_s:
            self._sample_s = now_s + EVERY_S
            self._sample(run, now_s)

    def _sample(self, run: LocalRun, now_s: float) -> None:
        used_s = 0.0
        for name, pid in run.pids.items():
            try:
                self.samples.add(name, now_s, resident_bytes(pid))
                used_s += processor_s(pid)
            except (OSError, IndexError, ValueError):
                return  # it is just ending
        self.samples.processor.append((now_s, used_s))
        try:
            client = connect(run.redis_url)
            self.samples.add("redis used_memory", now_s, int(client.info("memory")["used_memory"]))
            client.close()
        except TryAgain:
            return
        view = run.progress.last
        reports = [one.report.busy for one in view.workers if one.report is not None] if view is not None else []
        if reports:
            self.samples.busy.append(float(np.mean(reports)))


def draw(samples: Samples, path: Path) -> None:
    """A plot of all of it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 5))
    for name, levels in samples.nbytes.items():
        axes.plot(np.array(samples.at_s[name]) / 60, np.array(levels) / 2**20, label=name)
    axes.set(xlabel="minutes", ylabel="MB", ylim=(0, None), title="Memory of every process, groups moving all the time")
    axes.legend(loc="upper left", fontsize=8)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)


def soak(minutes: float, rate: int, folder: Path) -> tuple[Samples, LocalRun, bool]:
    """Run it; what was seen, and whether it came to its end."""
    query = folder / "query.yaml"
    query.write_text(yaml.safe_dump(query_of(rate, minutes)))
    looking = Looking()
    with LocalRun(query, read_query(query), name="soak") as run:
        ended = run.wait(looking, 0.1)
    return looking.samples, run, ended


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if nothing grows."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=600_000, help="rows per second, of both streams together")
    parser.add_argument("--into", type=Path, default=Path("build"), help="where table and plot are put")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="js-") as folder:
        samples, run, ended = soak(asked.minutes, asked.rate, Path(folder))
    found = [growth(name, samples.at_s[name], levels) for name, levels in samples.nbytes.items() if len(levels) > 8]
    head = f"{'process':16} {'median':>12} {'grown':>12} {'allowed':>12}  in the second half"
    view = run.progress.last
    results, moves = (view.results, view.moves_done) if view is not None else (0, 0)
    told = (
        f"{asked.minutes:g} minutes, {asked.rate:,} rows/s, {results:,} results, {moves} groups moved, "
        f"{samples.load:.0%} of {os.cpu_count()} cores, workers busy {np.median(samples.busy or [0]):.0%}"
    )
    text = "\n".join([told, head, *(str(one) for one in found)])
    asked.into.mkdir(parents=True, exist_ok=True)
    (asked.into / "soak.txt").write_text(text + "\n")
    draw(samples, asked.into / "soak.png")
    print(text)  # noqa: T201
    if not ended:
        print(f"the run did not end: {run.failed}", file=sys.stderr)  # noqa: T201
    return 0 if ended and found and not any(one.is_wrong for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
