"""`python -m tests.simulation N`: N seeded schedules of the whole protocol; `--seed S`: one of them, with its story."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.simulation.mutations import MUTATIONS
from tests.simulation.runs import Verdict, examine, first_failure, judge_all, tell
from tests.simulation.schedules import random_schedule
from tests.simulation.story import story

STOP_AFTER = 5
"""Failures; more of them tell little."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every schedule was exact."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("n", type=int, nargs="?", default=1000, help="how many schedules")
    parser.add_argument("--seed", type=int, help="replay this one, and tell its story")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--no-shrink", action="store_true", help="tell a failing schedule as it is")
    parser.add_argument(
        "--planted", action="store_true", help="plant known bugs, one by one, and say when each is found"
    )
    asked = parser.parse_args(arguments)
    if asked.n < 1:
        print(f"N: found {asked.n}, wanted at least 1 schedule; say make simulate N=100", file=sys.stderr)  # noqa: T201
        return 2
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False, soft_wrap=True)
    if asked.planted:
        return find_planted(console, range(asked.first, asked.first + asked.n))
    if asked.seed is not None:
        return replay(console, asked.seed, shrinking=not asked.no_shrink)
    return run_many(console, range(asked.first, asked.first + asked.n), asked.jobs, shrinking=not asked.no_shrink)


def find_planted(console: Console, seeds: range) -> int:
    """After how many schedules each planted bug is found, and by which complaint."""
    missed = 0
    for name, planted in MUTATIONS.items():
        with planted():
            found = first_failure(seeds)
        missed += found is None
        where = "not found" if found is None else f"after {found.seed - seeds.start + 1:4}: {_first_line(found)[:90]}"
        console.print(f"{name:40} {where}", markup=False)
    return 1 if missed else 0


def _first_line(verdict: Verdict) -> str:
    return verdict.complaints[0].partition("\n")[0]


def replay(console: Console, seed: int, *, shrinking: bool) -> int:
    """One schedule with its story."""
    schedule = random_schedule(seed)
    outcome, complaints = examine(schedule)
    console.print(story(schedule, outcome, complaints), markup=False)
    if not complaints:
        console.print("exact: missing 0, extra 0, duplicate 0")
        return 0
    if shrinking:
        console.print("\n--- the same failure, with as little as it needs ---")
        console.print(tell(seed), markup=False)
    return 1


def run_many(console: Console, seeds: range, jobs: int, *, shrinking: bool) -> int:
    """Many schedules, then what happened in them; the first failure is told."""
    began, counted, failed, done = time.monotonic(), Counter[str](), [], 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("schedules", total=len(seeds))
        for verdict in judge_all(seeds, jobs):
            done += 1
            counted += verdict.counted
            progress.update(task, advance=1, description=f"schedules, {len(failed)} not exact")
            if not console.is_terminal and done % max(1, len(seeds) // 20) == 0:
                console.print(f"{done} of {len(seeds)} schedules, {len(failed)} not exact")
            if verdict.complaints:
                failed.append(verdict)
                console.print(f"seed {verdict.seed}: {_first_line(verdict)}", markup=False)
                if len(failed) >= STOP_AFTER:
                    break
    took = time.monotonic() - began
    console.print(
        f"{done - len(failed)} of {done} schedules exact, in {took:.0f} s ({took / max(1, done) * 1000:.0f} ms each)"
    )
    for name, number in sorted(counted.items()):
        console.print(f"  {number:8} {name}", markup=False)
    return tell_failures(console, failed, shrinking=shrinking)


def tell_failures(console: Console, failed: list[Verdict], *, shrinking: bool) -> int:
    """Which seeds failed, how to replay them, and the story of the first."""
    for verdict in failed:
        console.print(f"seed {verdict.seed}: {_first_line(verdict)}", markup=False)
        console.print(f"  replay it: make simulate SEED={verdict.seed}")
    if failed:
        console.print(tell(failed[0].seed) if shrinking else tell(failed[0].seed, budget=0), markup=False)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
