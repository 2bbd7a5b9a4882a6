"""`python -m tests.chaos N`: N seeded runs with real processes that are killed and stopped; `--seed S`: one of them."""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.chaos.plans import LONG_FAULTS, LONG_S, Plan, draw, draw_long
from tests.chaos.runs import judge

LONGEST_S = 400.0
"""A run that takes longer is ended, with all its processes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every run was exact."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("n", type=int, nargs="?", default=10, help="how many runs")
    parser.add_argument("--seed", type=int, help="run this one, and tell what was done when")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--long", action="store_true", help=f"{LONG_FAULTS} faults in {LONG_S:g} s each")
    parser.add_argument("--keep", type=Path, default=Path("build/chaos"), help="where a run that failed is kept")
    asked = parser.parse_args(arguments)
    if asked.n < 1:
        print(f"N: found {asked.n}, wanted at least 1 run; say make chaos N=10", file=sys.stderr)  # noqa: T201
        return 2
    if asked.seed is not None:
        return run_one(plan_of(asked.seed, is_long=asked.long), asked.keep)
    return run_many(range(asked.first, asked.first + asked.n), asked.jobs, asked.keep, is_long=asked.long)


def plan_of(seed: int, *, is_long: bool) -> Plan:
    return draw_long(seed) if is_long else draw(seed)


def run_one(plan: Plan, keep: Path) -> int:
    verdict = judge(plan, keep)
    print(verdict, flush=True)  # noqa: T201
    print(verdict.in_a_line(), flush=True)  # noqa: T201
    return 0 if verdict.is_exact else 1


def run_many(seeds: range, jobs: int, keep: Path, *, is_long: bool) -> int:
    """Each in a process of its own; what the failing ones said is told and kept."""
    began_s, failed = time.monotonic(), []
    with ThreadPoolExecutor(jobs) as pool:
        for seed, (code, said) in zip(seeds, pool.map(lambda one: _apart(one, keep, is_long), seeds), strict=True):
            lines = said.splitlines()
            print(f"seed {seed}: {lines[-1] if lines else 'nothing was said'}", flush=True)  # noqa: T201
            if code != 0:
                failed.append(seed)
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"seed-{seed}.txt").write_text(said)
                print(said, flush=True)  # noqa: T201
                print(f"  replay it: make chaos SEED={seed}{' ARGS=--long' if is_long else ''}", flush=True)  # noqa: T201
    took, exact = time.monotonic() - began_s, len(seeds) - len(failed)
    print(f"{exact} of {len(seeds)} runs exact, in {took:.0f} s; not exact: {failed or 'none'}")  # noqa: T201
    return 1 if failed else 0


def _apart(seed: int, keep: Path, is_long: bool) -> tuple[int, str]:
    words = [sys.executable, "-m", "tests.chaos", "--seed", str(seed), "--keep", str(keep)]
    try:
        done = subprocess.run(  # noqa: S603
            [*words, *(["--long"] if is_long else [])], capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired as late:
        said = "\n".join(str(part, errors="replace") for part in (late.stderr, late.stdout) if isinstance(part, bytes))
        return 1, f"{said}\nit did not end within {LONGEST_S:g} s"
    return done.returncode, f"{done.stderr}\n{done.stdout}"


if __name__ == "__main__":
    sys.exit(main())
