"""One chaos run from its plan to its verdict: both comparisons of docs/design.md §2, and nothing left behind."""

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from joinery.adapters.recording import Recording, read_recording
from joinery.cli.checking import verify_output
from joinery.cli.local import LocalRun
from joinery.cli.query_file import read_query
from joinery.join.plan import JoinPlan
from joinery.model.errors import JoineryError
from joinery.oracle.compare import compare
from tests.chaos.clock import Clock
from tests.chaos.feeding import Feeding, Rows, Subscriber
from tests.chaos.harm import Harm, known_of, left_behind
from tests.chaos.plans import Plan

PATIENCE_S, SLOWER = 90.0, 3
"""A run that has not ended so long, and three times as long as its rows, after its start never will."""
LOOK_S = 0.03


@dataclass(slots=True)
class Verdict:
    """What a run came to."""

    plan: Plan
    complaints: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    """What was done when."""
    notes: list[str] = field(default_factory=list)
    """What the run said."""
    checked: str = ""
    seconds: float = 0.0
    moves: int = 0
    inside_moves: int = 0
    met: Counter[str] = field(default_factory=Counter)
    """Moments that faults met."""
    lost: int = 0
    """Workers that were taken for lost."""

    @property
    def is_exact(self) -> bool:
        return not self.complaints

    def in_a_line(self) -> str:
        met = ", ".join(f"{name} {count}" for name, count in sorted(self.met.items()) if count)
        told = f"{len(self.plan.faults)} faults ({met}; {self.inside_moves} while groups moved)"
        return (
            f"{'exact' if self.is_exact else 'NOT EXACT'}: {self.checked}; {told}, {self.moves} moves, "
            f"{self.lost} workers lost, {self.seconds:.1f} s"
        )

    def __str__(self) -> str:
        lines = [str(self.plan), "what was done:", *(f"  {one}" for one in self.done)]
        lines.append(f"checked: {self.checked}")
        return "\n".join([*lines, *(f"WRONG: {one}" for one in self.complaints)])


Watch = Callable[[LocalRun], None]


def judge(plan: Plan, keep: Path | None = None, watch: Watch | None = None) -> Verdict:
    """Run it in a folder of its own; `keep`: where what it left is put if it was not exact; `watch` is called often."""
    folder = Path(tempfile.mkdtemp(prefix="jc-"))
    verdict, began_s = Verdict(plan), time.monotonic()
    try:
        _run(plan, folder, verdict, watch)
        verdict.complaints += [f"left behind: {one}" for one in _left(folder)]
    except JoineryError as error:
        verdict.complaints.append(f"{type(error).__name__}: {error}")
    finally:
        if keep is not None and verdict.complaints:
            shutil.copytree(folder, keep / f"seed-{plan.seed}", dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
    verdict.seconds = time.monotonic() - began_s
    return verdict


def _left(folder: Path) -> list[str]:
    """A child that was killed a moment ago may still be listed."""
    until_s = time.monotonic() + 5
    while (found := left_behind(folder)) and time.monotonic() < until_s:
        time.sleep(0.05)
    return found


def _run(plan: Plan, folder: Path, verdict: Verdict, watch: Watch | None) -> None:
    query, record = folder / "query.yaml", folder / "record"
    whole = {
        "apiVersion": "joinery.dev/v1alpha1",
        "kind": "JoinQuery",
        "metadata": {"name": "chaos"},
        "spec": plan.spec,
    }
    query.write_text(yaml.safe_dump(whole))
    spec = read_query(query)
    with LocalRun(query, spec, record=record, name=f"seed {plan.seed}") as run:
        clock, ended = Clock(), False
        feeding = Feeding(plan, run.gateway, clock)
        harm, subscriber = Harm(plan, run, clock, lambda: feeding.is_done), feeding.subscriber
        try:
            harm.start()
            feeding.start()
            ended = run.wait(_Look(plan, feeding, harm, watch), LOOK_S)
            harm.note("the run has ended" if ended else "the run is given up")
            if not ended:
                _complain(run, verdict)
        finally:
            harm.close()
            feeding.close()
            if subscriber is not None:
                subscriber.close(20 if ended else 0)
            verdict.done, verdict.inside_moves, verdict.met = harm.done, harm.inside_moves, harm.met
            verdict.notes, verdict.moves = run.progress.notes, len(run.progress.moves)
            verdict.lost = sum("taken for lost" in note for note in run.progress.notes)
    verdict.complaints += feeding.failed
    if subscriber is not None and subscriber.failed is not None:
        verdict.complaints.append(subscriber.failed)
    if ended:
        _check(plan, query, record, feeding.rows, subscriber, verdict)


class _Look:
    """Called while the run is waited for: keeps what it says, and gives up when it is time."""

    def __init__(self, plan: Plan, feeding: Feeding, harm: Harm, watch: Watch | None) -> None:
        self._watch, self._told = watch, False
        self._plan, self._feeding, self._harm = plan, feeding, harm
        self._until_s = time.monotonic() + PATIENCE_S + SLOWER * plan.span_ms / 1000

    def __call__(self, run: LocalRun) -> None:
        for text in run.progress.news():
            self._harm.note(f"  the run says: {text}")
        if self._feeding.is_done and not self._told:
            self._told = True
            self._harm.note("  every producer has ended")
        if self._watch is not None:
            self._watch(run)
        if time.monotonic() > self._until_s or self._feeding.failed:
            run.stop()


def _complain(run: LocalRun, verdict: Verdict) -> None:
    why = f"the run failed: {run.failed}" if run.failed is not None else "the run did not end"
    known = "\n".join(f"    {name}: {value}" for name, value in known_of(run).items())
    verdict.complaints.append(f"{why}\n{known}")


# --- both comparisons


def _check(
    plan: Plan, query: Path, record: Path, rows: list[Rows], subscriber: Subscriber | None, verdict: Verdict
) -> None:
    spec, said = read_query(query), list[str]()
    recorded = read_recording(record, JoinPlan.of(spec))
    for stream, found in zip("ab", recorded, strict=True):
        verdict.complaints += differences(stream, found, [one for one in rows if one.feed.stream == stream])
    if verify_output(query, spec, record, said.append) != 0:
        verdict.complaints.append("the results are not what the recorded input gives:\n    " + "\n    ".join(said))
    verdict.checked = "; ".join(said[-2:])
    if subscriber is not None:
        verdict.complaints += _missed(subscriber, pq.read_table(query.parent / "results.parquet"))


def _missed(subscriber: Subscriber, table: pa.Table) -> list[str]:
    """The subscriber must have every row of the file, once."""
    read = pa.Table.from_batches(subscriber.batches, table.schema) if subscriber.batches else table.slice(0, 0)
    compared = compare(read, table)
    if compared.exact:
        return []
    examples = "\n    ".join(str(one) for one in compared.examples)
    return [f"the subscriber has not what the file has: {compared}\n    {examples}"]


def differences(stream: str, recorded: Recording, pushed: list[Rows]) -> list[str]:
    """First comparison: of every producer the same rows in the same order, late where its own sequence says so."""
    known = {one.feed.name for one in pushed}
    strangers = set(pc.unique(recorded.producers).to_pylist()) - known
    wrong = [f"stream {stream}: rows of {name}, who pushed none" for name in strangers]
    for one in pushed:
        own = np.flatnonzero(pc.equal(recorded.producers, one.feed.name).to_numpy())
        found = recorded.rows.take(own)
        wanted = one.table.select(found.column_names).cast(found.schema)
        if not found.equals(wanted):
            compared = compare(found, wanted)
            order = " (the rows are the same, in another order)" if compared.exact else ""
            wrong.append(f"stream {stream}: recorded of {one.feed.name} is not what it pushed: {compared}{order}")
        elif (recorded.late[own] != one.late).any():
            many = int((recorded.late[own] != one.late).sum())
            wrong.append(f"stream {stream}: {many} rows of {one.feed.name} are late, or not, against its own sequence")
    return wrong
