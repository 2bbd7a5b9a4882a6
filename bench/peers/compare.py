"""Ours and theirs in turns: rates, and how many times theirs ours is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench import service
from bench.answer import Answer, BenchError
from bench.inputs import Files, Say, written
from bench.lab import Lab
from bench.measure import Sample, in_turns
from bench.peers.engines import FLINK, Engine, outcome_of
from bench.peers.forms import converted
from bench.peers.home import Home
from bench.peers.job import Input, Job, Outcome
from bench.report import Metric
from bench.state import WAL
from joinery.model.errors import JoineryError

WARM_UP: Final = "U1small"
OURS: Final = "service"
OURS_DURABLE: Final = "service.durable"
FLINK_DURABLE: Final = "flink.durable"
"""With everything that survives a crash, on both sides: our log on disk and checkpoints, its checkpoints."""
FLINK_CHECKPOINT_S: Final = 10
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a run gave: the metrics, and why others are not there, by who failed."""

    metrics: list[Metric]
    failed: dict[str, str]


@dataclass(frozen=True, slots=True)
class Peer:
    """An engine that is set up, its input, and what it has to find."""

    engine: Engine
    home: Home
    python: Path
    connector: Path
    warm_up: Input
    timed: Input
    truth: Answer
    checkpoint_s: int = 0

    def turn(self) -> float:
        """Tuples per second of one run."""
        _keep_in_memory([Path(self.timed.path(self.engine.form, stream)) for stream in (1, 2)])
        with TemporaryDirectory(prefix=f"{self.engine.name}-run-", dir=self.home.folder) as scratch:
            job = Job(self.warm_up, self.timed, scratch, str(self.connector), self.checkpoint_s)
            outcome = outcome_of(self.engine, self.python, job, self.home.log(self.engine.name))
        rate = rate_of(self.engine.title, outcome, self.truth, 2 * self.timed.rows)
        how = f" with checkpoints every {self.checkpoint_s} s" if self.checkpoint_s else ""
        self.home.say(f"{self.engine.title}{how}: {rate / 1e6:.3f} M tuples/s, {outcome.pairs:,} pairs")
        return rate


def compare(lab: Lab, name: str, engines: Sequence[Engine], workers: int) -> Comparison:
    """Set up, find out what is right, and give everybody its turns on a workload."""
    lab.program()  # a compiler that fails is known before any row is made
    files, small = (written(lab.workloads[one], lab.folder / "data" / one, lab.say) for one in (name, WARM_UP))
    timed, warm_up, truth = converted(files, lab.say), converted(small, lab.say), true_answer(lab, files)
    home, failed = Home(lab.folder, lab.say), dict[str, str]()
    runs: dict[str, Callable[[], float]] = {OURS: lambda: _ours(lab, name, workers)}
    for engine in engines:
        try:
            connector = home.connector(engine) if engine is FLINK else Path()
            peer = Peer(engine, home, home.python(engine), connector, warm_up, timed, truth)
            runs[engine.name] = peer.turn
            if engine is FLINK:
                runs[OURS_DURABLE] = lambda: _ours(lab, name, workers, WAL)
                runs[FLINK_DURABLE] = replace(peer, checkpoint_s=FLINK_CHECKPOINT_S).turn
        except BenchError as error:
            lab.say(str(error))
            failed[engine.name] = str(error)
    samples, fell_out = taken_in_turns(runs, lab.reps, lab.say)
    return Comparison(metrics_of(name, samples), failed | fell_out)


def _ours(lab: Lab, name: str, workers: int, checkpoint: Mapping[str, str] = service.NO_CHECKPOINT) -> float:
    """The whole service over real gRPC, to the count sink."""
    return service.throughput(lab, name, workers, "count", checkpoint).tuples_per_s


def true_answer(lab: Lab, files: Files) -> Answer:
    """The C program's, whose number of pairs must be the counted one."""
    with lab.program().loaded(files, full=False) as program:
        answer = program.run().answer
    if answer.pairs != files.pairs:
        raise BenchError(f"{files.workload.name}: the C program found {answer.pairs} pairs, counted {files.pairs}")
    return answer


def rate_of(who: str, outcome: Outcome, truth: Answer, tuples: int) -> float:
    """Tuples per second; refused unless the answer is right."""
    found = Answer(outcome.pairs, outcome.checksum)
    if found != truth:
        raise BenchError(f"{who}: found {found}, wanted {truth}: a wrong result has no rate")
    return tuples / outcome.seconds


def taken_in_turns(
    runs: Mapping[str, Callable[[], float]], reps: int, say: Say
) -> tuple[dict[str, Sample], dict[str, str]]:
    """Samples of those that never failed, and the reasons of the others, who have no turn after their failure."""
    failed: dict[str, str] = {}

    def unless_failed(who: str, run: Callable[[], float]) -> float:
        if who not in failed:
            try:
                return run()
            except JoineryError as error:
                say(str(error))
                failed[who] = str(error)
        return nan

    tried = {who: lambda who=who, run=run: unless_failed(who, run) for who, run in runs.items()}
    samples = in_turns(tried, reps)
    return {who: sample for who, sample in samples.items() if who not in failed}, failed


def metrics_of(name: str, samples: Mapping[str, Sample]) -> list[Metric]:
    """Rates of all, then the ratios of ours to each of theirs."""
    mine = samples.get(OURS)
    durable = {who: sample for who, sample in samples.items() if who in (OURS_DURABLE, FLINK_DURABLE)}
    theirs = {who: sample for who, sample in samples.items() if who != OURS and who not in durable}
    found = [] if mine is None else [Metric.rate(f"{OURS}.{name}.tuples_per_s", mine)]
    found += [Metric.rate(f"peers.{who}.{name}.tuples_per_s", sample) for who, sample in theirs.items()]
    if mine is not None:
        found += [Metric.ratio(f"{OURS}.{name}.ratio_to_{who}", mine, sample) for who, sample in theirs.items()]
    if OURS_DURABLE in durable:
        found.append(Metric.rate(f"{OURS}.{name}.durable.tuples_per_s", durable[OURS_DURABLE]))
    if FLINK_DURABLE in durable:
        found.append(Metric.rate(f"peers.flink.{name}.durable.tuples_per_s", durable[FLINK_DURABLE]))
    if len(durable) == 2:  # both of them
        ratio = Metric.ratio(f"{OURS}.{name}.durable.ratio_to_flink", durable[OURS_DURABLE], durable[FLINK_DURABLE])
        found.append(ratio)
    return found


def _keep_in_memory(paths: Sequence[Path]) -> None:
    """Read files once, so that no clock runs while a disk is read."""
    for path in paths:
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            with file.open("rb") as opened:
                while opened.read(_CHUNK):
                    pass
