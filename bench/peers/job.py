"""What the benchmark and the process of an engine say to each other; the standard library is enough for it."""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

CSV: Final = "s{}.csv"
RAW: Final = "s{}.raw"
PARTS: Final = "s{}.parts"
"""Names of the files and folders of stream 1 and stream 2, by the kind of file."""


@dataclass(frozen=True, slots=True)
class Input:
    """A workload on disk, in every form."""

    folder: str
    rows: int
    """Of each stream."""
    window_us: int

    def path(self, form: str, stream: int) -> str:
        return str(Path(self.folder, form.format(stream)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a join came to."""

    pairs: int
    checksum: int
    """The sum of (id1 * 1000003 + id2 * 7919) % 1000000007 over the pairs; an id is a row's place in its stream."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Job:
    """What an engine's process has to do: join the first input untimed, then the second one."""

    warm_up: Input
    timed: Input
    scratch: str
    """A folder of its own, which is gone afterwards."""
    connector: str
    """The jar of `RawTables.java`; only Flink has one."""
    checkpoint_s: int = 0
    """Between two checkpoints; 0: none. Only Flink takes them."""

    @property
    def answer(self) -> Path:
        return Path(self.scratch, "answer.json")

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_text(text: str) -> "Job":
        said = json.loads(text)
        return Job(warm_up=Input(**said.pop("warm_up")), timed=Input(**said.pop("timed")), **said)


def carry_out(make: Callable[[Job], Callable[[Input], Outcome]]) -> None:
    """The main function of an engine's process: start the engine, join twice, leave the answer in its file."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # if memory ends, end this process and no other
    job = Job.from_text(sys.argv[1])
    join = make(job)
    join(job.warm_up)
    outcome = join(job.timed)
    job.answer.write_text(json.dumps(asdict(outcome)))
