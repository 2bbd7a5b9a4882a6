"""The command: which measurements are asked for, one after another, each written down as soon as it is there."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa

from bench import hybrid_core, hybrid_service, service, spark_load, state, steady, throughput
from bench.answer import BenchError
from bench.lab import HEADLINE, Lab, described, headline
from bench.report import Metric, table, write_json
from joinery.generate.workloads import WORKLOADS

ROOT: Final = Path(__file__).parents[1]
QUICK: Final = 10
"""How many times smaller a quick run is."""


@dataclass(frozen=True, slots=True)
class Job:
    """A measurement, and the metrics that it gives."""

    names: tuple[str, ...]
    run: Callable[[Lab], list[Metric]]

    def is_wanted(self, pattern: str) -> bool:
        return any(fnmatchcase(name, pattern) for name in self.names)

    @property
    def needs_c(self) -> bool:
        return any(name.startswith("c.") for name in self.names)


def jobs() -> list[Job]:
    """Everything that can be measured, in an order in which each workload is loaded once."""
    found = []
    for name in HEADLINE:
        core = f"core.hash.{name}"
        ids = (f"c.{name}.tuples_per_s", *(f"{core}.{end}" for end in _IDS))
        rows = (f"c.{name}.rows.tuples_per_s", f"{core}.rows.tuples_per_s", f"{core}.rows.ratio_to_c")
        found.append(Job(ids, partial(throughput.ids, name=name)))
        found.append(Job(rows, partial(throughput.rows, name=name)))
        if name == "U1":
            found.append(Job(("core.hash.memory_factor",), partial(throughput.memory, name="U1")))
    growth = ("core.hash.window_growth", "core.hash.window_growth.small")
    tuning = ("core.fine_tuning.speedup", "core.nested_loop.comparisons_per_s")
    hybrid = Job(hybrid_core.NAMES, hybrid_core.core)
    core = [*found, Job(growth, steady.window_growth), Job(tuning, steady.fine_tuning), hybrid]
    served = [
        Job(service.FAST_NAMES, service.fast),
        Job(service.SLOW_NAMES, service.slow),
        Job(hybrid_service.NAMES, hybrid_service.hybrid),
    ]
    survived = [
        Job(state.OVERHEAD_NAMES, state.overheads),
        Job(state.PAUSE_NAMES, state.pauses),
        Job(state.RECOVERY_NAMES, state.recovery),
    ]
    return [*core, *served, *survived, Job(spark_load.NAMES, spark_load.load)]


_IDS: Final = ("tuples_per_s", "ratio_to_c", "ingest.tuples_per_s")


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for; 0 if every answer was right, whatever the goals say."""
    asked = _parser().parse_args(arguments)
    wanted = [job for job in jobs() if job.is_wanted(asked.only)]
    if not wanted:
        names = "\n  ".join(name for job in jobs() for name in job.names)
        print(f"--only {asked.only}: found no metric of that name; there are\n  {names}", file=sys.stderr)
        return 2
    path = asked.json or ROOT / "build" / ("bench-quick.json" if asked.quick else "bench.json")
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    scale = QUICK if asked.quick else 1
    folder = ROOT / "build" / "bench"
    lab = Lab(folder / "quick" if asked.quick else folder, headline(scale), asked.reps, scale, _progress())
    if (load := os.getloadavg()[0]) > 0.5:
        lab.say(f"something else is running here (load {load:.1f} on {os.cpu_count()} cores): the figures will move")
    try:
        metrics = run(lab, wanted, path)
    except BenchError as failed:
        print(failed, file=sys.stderr)
        return 1
    print(f"\n{table(metrics, judged=not asked.quick)}\n\nwritten to {path}")
    return 0


def run(lab: Lab, wanted: Sequence[Job], path: Path) -> list[Metric]:
    """The metrics of the jobs; each job's are in the file before the next one starts.

    The C program is compiled first, so that a missing compiler is known before any row is made.
    """
    if any(job.needs_c for job in wanted):
        lab.program()
    metrics: list[Metric] = []
    for job in wanted:
        found = job.run(lab)
        write_json(path, found)
        metrics += found
    return metrics


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure the core of Joinery beside a C program, in one run (about three minutes).",
        epilog="workloads, two streams each:\n" + "\n".join(f"  {described(WORKLOADS[name])}" for name in HEADLINE),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--only", metavar="PATTERN", default="*", help="metrics to measure, with * and ?: 'core.hash.U1.*'")
    quick = f"{QUICK} times smaller (U1: also its window), into build/bench-quick.json: a look, not a figure"
    add("--quick", action="store_true", help=quick)
    add("--reps", type=_reps, default=3, metavar="N", help="turns of C program and core (default 3)")
    add("--json", type=Path, metavar="FILE", help="where metrics go (default build/bench.json)")
    return parser


def _reps(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"found {text!r}, wanted a whole number in 1..100")
    return int(text)


def _progress() -> Callable[[str], None]:
    start = time.perf_counter()
    return lambda what: print(f"[{time.perf_counter() - start:5.0f} s] {what}", flush=True)
