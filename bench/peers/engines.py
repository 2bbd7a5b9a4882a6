"""The engines: what each is made of, and one run of it as a process that is ended whatever happens."""

import json
import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from bench.answer import BenchError
from bench.peers.job import CSV, PARTS, RAW, Job, Outcome

ROOT: Final = Path(__file__).parents[2]
LIMIT_S: Final = 1800.0
"""A run with start and warm-up that takes longer hangs, or has too little memory."""
SPARE_GB: Final = 0.7
"""A run is stopped before the memory of the machine is used up."""
_LOOK_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Engine:
    """One of the programs beside which we are measured."""

    name: str
    title: str
    packages: tuple[str, ...]
    form: str
    """The kind of file that it reads."""
    memory_gb: float
    """What it needs on U1."""
    needs_jdk: bool = False

    @property
    def module(self) -> str:
        return f"bench.peers.{self.name}_join"


FLINK: Final = Engine("flink", "Flink 2.3.0", ("apache-flink==2.3.0",), RAW, 15.5, needs_jdk=True)
SPARK: Final = Engine("spark", "Spark 4.3.0", ("pyspark==4.3.0",), PARTS, 14, needs_jdk=True)
DATAFUSION: Final = Engine(
    "datafusion", "DataFusion 55.0.0", ("datafusion==55.0.0", "numpy==2.4.6", "pyarrow==26.0.1"), CSV, 1.5
)
ENGINES: Final = (FLINK, SPARK, DATAFUSION)


def outcome_of(engine: Engine, python: Path, job: Job, log: Path, limit_s: float = LIMIT_S) -> Outcome:
    """One run: a process starts, warms up, joins, and ends."""
    if (free := free_memory_gb()) < engine.memory_gb:
        wanted = f"wanted {engine.memory_gb:g} GB: end other programs, or leave it out (--engines)"
        raise BenchError(f"{engine.title}: found {free:.1f} GB of free memory, {wanted}")
    command = [str(python), "-m", engine.module, job.to_text()]
    job.answer.unlink(missing_ok=True)
    with log.open("wb") as out:
        # A group of its own: it is ended as a whole, and Ctrl-C comes to us first.
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            failed = _watched(process, limit_s)
        finally:
            _end_group(process)
    if failed:
        raise BenchError(f"{engine.title}: {failed} ({log})\n{tail(log)}".rstrip())
    return read_answer(engine, job.answer)


def read_answer(engine: Engine, path: Path) -> Outcome:
    """What the engine's process left."""
    try:
        said = json.loads(path.read_text())
        outcome = Outcome(int(said["pairs"]), int(said["checksum"]), float(said["seconds"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchError(f"{engine.title} ended, but left no answer that can be read: {error!r}") from error
    if not outcome.seconds > 0:
        raise BenchError(f"{engine.title}: found {outcome.seconds} seconds, wanted more than 0")
    return outcome


def free_memory_gb() -> float:
    """What programs can still have, without swapping."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return int(kilobytes) * 1024 / 1e9


def tail(log: Path, lines: int = 8) -> str:
    """The end of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def _watched(process: "subprocess.Popen[bytes]", limit_s: float) -> str:
    """Wait for the end; what went wrong, if anything."""
    until = monotonic() + limit_s
    while True:
        try:
            code = process.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            if monotonic() > until:
                return f"stopped after {limit_s:g} s: it hangs, or has too little memory"
            if free_memory_gb() < SPARE_GB:
                return f"stopped, since less than {SPARE_GB:g} GB of memory were left: end other programs"
        else:
            return f"ended with code {code}" if code else ""


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """Nothing of it stays, not even a Java process that its Python left behind."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
