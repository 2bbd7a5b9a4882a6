"""Tuples per second of the `hash` method on U1, B7 and B8, beside the C program.

Two modes, each with the same output on both sides: ids (which rows join) and rows (all columns of both members, as
Arrow). `ingest` is the ids mode with the reading of Arrow batches (`joinery.flow.ingest`) inside the clock.
"""

from collections.abc import Callable, Iterable

from bench.answer import Answer, BenchError
from bench.c_program import Asked
from bench.core_join import Fed, answer_of, feed, living_rows, plan_of, read
from bench.inputs import Files
from bench.lab import Lab, Opened
from bench.measure import Sample, in_turns, seconds
from bench.report import Metric
from joinery.generate.workloads import TUPLE_BYTES
from joinery.join.logic import WindowJoin
from joinery.join.plan import JoinPlan


def ids(lab: Lab, name: str) -> list[Metric]:
    """Which rows join, with and without the reading of batches."""
    opened, prefix = lab.open(name), f"core.hash.{name}"
    plan = plan_of(opened.workload, rows=False)
    fed = list(read(plan, opened.turns))
    runs = {
        "core": lambda: _joined(opened, plan, fed),
        "core with ingest": lambda: _joined(opened, plan, read(plan, opened.turns)),
    }
    found = _beside_c(lab, opened, runs, answer_of(plan, fed), full=False)
    return [
        Metric.rate(f"c.{name}.tuples_per_s", found["C"]),
        Metric.rate(f"{prefix}.tuples_per_s", found["core"]),
        Metric.ratio(f"{prefix}.ratio_to_c", found["core"], found["C"]),
        Metric.rate(f"{prefix}.ingest.tuples_per_s", found["core with ingest"]),
    ]


def rows(lab: Lab, name: str) -> list[Metric]:
    """Whole result rows."""
    opened, prefix = lab.open(name), f"core.hash.{name}.rows"
    plan = plan_of(opened.workload, rows=True)
    fed = list(read(plan, opened.turns))
    runs = {"core": lambda: _joined(opened, plan, fed)}
    found = _beside_c(lab, opened, runs, answer_of(plan, fed, opened.streams), full=True)
    return [
        Metric.rate(f"c.{name}.rows.tuples_per_s", found["C"]),
        Metric.rate(f"{prefix}.tuples_per_s", found["core"]),
        Metric.ratio(f"{prefix}.ratio_to_c", found["core"], found["C"]),
    ]


def memory(lab: Lab, name: str) -> list[Metric]:
    """Bytes that windows and index take at the end of the stream, over the raw bytes of the rows in the windows."""
    opened = lab.open(name)
    plan = plan_of(opened.workload, rows=False)
    join = WindowJoin(plan)
    feed(join, read(plan, opened.turns))
    living = living_rows(opened.turns, opened.workload.window_ns)
    lab.say(f"{name}: {join.bytes_held():,} bytes for {living:,} living rows")
    return [Metric("core.hash.memory_factor", join.bytes_held() / (living * TUPLE_BYTES), "ratio")]


def _beside_c(
    lab: Lab, opened: Opened, runs: dict[str, Callable[[], float]], answer: Answer, *, full: bool
) -> dict[str, Sample]:
    """The runs in turns with the C program, once both were seen to give the same answer."""
    name, mode = opened.workload.name, "rows" if full else "ids"
    with lab.program().loaded(opened.files, full=full) as program:
        agree(opened.files, answer, program.run().answer)
        lab.say(f"{name}, {mode}: {answer.pairs:,} pairs, checksum {answer.checksum}, C and core agree")
        told = {which: _told(lab, f"{name}, {mode}: {which}", run) for which, run in runs.items()}
        beside = _told(lab, f"{name}, {mode}: C", lambda: _run_c(opened.files, program, answer))
        return in_turns({"C": beside, **told}, lab.reps)


def agree(files: Files, core: Answer, program: Answer) -> None:
    """Stop unless both answers are the same, and the number of pairs is the one counted when the files were made."""
    if core != program or core.pairs != files.pairs:
        found = f"core {core}, C program {program}, counted {files.pairs} pairs"
        raise BenchError(f"{files.workload.name}: the answers differ, so nothing was timed: {found}")


def _run_c(files: Files, program: Asked, answer: Answer) -> float:
    run = program.run()
    agree(files, answer, run.answer)
    return run.tuples_per_s


def _joined(opened: Opened, plan: JoinPlan, fed: Iterable[Fed]) -> float:
    """Tuples per second of one run from empty windows."""
    join, pairs = WindowJoin(plan), 0

    def run() -> None:
        nonlocal pairs
        pairs = feed(join, fed)

    took = seconds(run)
    if pairs != opened.files.pairs:
        raise BenchError(f"{opened.workload.name}: the core gave {pairs} pairs, wanted {opened.files.pairs}")
    return opened.tuples / took


def _told(lab: Lab, what: str, run: Callable[[], float]) -> Callable[[], float]:
    def told() -> float:
        rate = run()
        lab.say(f"{what} {rate / 1e6:.2f} M tuples/s")
        return rate

    return told
