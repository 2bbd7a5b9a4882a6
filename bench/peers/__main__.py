"""`python -m bench.peers`: what is asked for, what is missing for it, the comparison, the file."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from bench.answer import BenchError
from bench.lab import Lab
from bench.peers.compare import WARM_UP, compare
from bench.peers.engines import ENGINES, ROOT
from bench.peers.home import home_folder, missing
from bench.report import table, write_json
from joinery.generate.workloads import WORKLOADS


def main(arguments: Sequence[str]) -> int:
    """Run it; 0 if all of them gave a right answer, whatever the ratios say."""
    asked = _parser().parse_args(arguments)
    engines = [engine for engine in ENGINES if engine.name in asked.engines]
    name = WARM_UP if asked.quick else "U1"
    path = asked.json or ROOT / "build" / ("bench-quick.json" if asked.quick else "bench.json")
    start, folder = time.perf_counter(), home_folder()

    def say(what: str) -> None:
        print(f"[{time.perf_counter() - start:5.0f} s] {what}", flush=True)

    lab = Lab(folder, WORKLOADS, asked.reps, 1, say)
    if lacking := missing(folder, engines):
        print("\n".join(lacking), file=sys.stderr)
        return 2
    pa.set_cpu_count(1)
    say(f"{name} in turns; what is made once is kept in {folder}")
    if (load := os.getloadavg()[0]) > 0.5:
        say(f"something else is running here (load {load:.1f} on {os.cpu_count()} cores): the figures will move")
    try:
        found = compare(lab, name, engines, asked.workers)
    except BenchError as failed:
        print(failed, file=sys.stderr)
        return 1
    write_json(path, found.metrics)
    print(f"\n{table(found.metrics, judged=not asked.quick)}\n\nwritten to {path}")
    for who, why in found.failed.items():
        print(f"\nno figure for {who}: {why}", file=sys.stderr)
    return 1 if found.failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers",
        description="Measure the service beside other engines, in one run (a quarter of an hour, the first time more).",
    )
    names = [engine.name for engine in ENGINES]
    add = parser.add_argument
    add("--engines", nargs="+", choices=names, default=names, metavar="NAME", help=f"some of {', '.join(names)}")
    add("--quick", action="store_true", help=f"{WARM_UP} instead of U1, into build/bench-quick.json: a look")
    add("--reps", type=_reps, default=3, metavar="N", help="turns of each (default 3)")
    workers = "workers of our service (default 1: on two cores producer, gateway and collector fill the other one)"
    add("--workers", type=_reps, default=1, metavar="N", help=workers)
    add(
        "--json",
        type=Path,
        metavar="FILE",
        help="where metrics go (default build/bench.json, beside what `make bench` found)",
    )
    return parser


def _reps(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"found {text!r}, wanted a whole number in 1..100")
    return int(text)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # an engine is ended on the way out
    sys.exit(main(sys.argv[1:]))
