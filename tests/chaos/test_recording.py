"""A recording whose gateways die: between log and recording, or at any byte of it; it is whole all the same."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

from joinery.adapters.recording import RecordingLog, read_recording
from joinery.join.plan import JoinPlan
from joinery.machine.log import Head, LoggedBatch, Record, StreamEnded
from joinery.machine.memory import MemoryLog
from joinery.model.ids import ProducerId, RecordNo, Term
from joinery.model.time import FOREVER
from joinery.window.watermark import StreamClock
from tests.support.queries import plan_of

RECORDS = 30


class Story:
    """A log that outlives its gateways, and what they record of it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.dice = folder, random.Random(seed)
        self.plan: JoinPlan = plan_of({"k": "int64"})
        clocks = (StreamClock(0), StreamClock(0))
        self.head = Head(RecordNo(0), clocks, (0, 0), (1, 1))
        self.log = MemoryLog()
        self.rows: tuple[list[int], list[int]] = ([], [])
        self.term = Term(0)
        self.recording = self.begin()

    def begin(self) -> RecordingLog:
        recording = RecordingLog(self.log, self.plan, self.folder)
        self.term = recording.open(self.head, f"gateway {self.dice.random()}")
        recording.read()
        return recording

    def files(self) -> dict[Path, int]:
        """Of the gateway that is there, and how long they are."""
        return {path: path.stat().st_size for path in self.folder.glob(f"stream-*.{self.term}.arrows")}

    def record(self, *, ends: bool) -> Record:
        batches = []
        for stream in (0, 1):
            for _ in range(self.dice.choice((0, 1, 1, 2))):
                at = len(self.rows[stream])
                values = list(range(at, at + self.dice.randint(1, 5)))
                self.rows[stream].extend(values)
                columns = {"k": pa.array(values), "ts": pa.array(values)}
                rows = pa.RecordBatch.from_pydict(columns).select(self.plan.formats[stream].schema.names)
                batches.append(LoggedBatch(stream, ProducerId("p"), 1, at, at + 1, 0, at, 0, None, rows))
        marks = (FOREVER, FOREVER) if ends else (0, 0)
        return Record(self.term, tuple(batches), marks, (StreamEnded(0), StreamEnded(1)) if ends else ())

    def append(self, record: Record) -> None:
        """The gateway may die before it has recorded all of it."""
        number, before = self.head.next_record, self.files()
        self.head = self.head.after(record, self.plan)
        if self.dice.random() < 0.2:
            self.log.append(self.term, number, record)  # and it dies
        else:
            self.recording.append(self.term, number, record)
            if self.dice.random() < 0.3:
                for path, size in self.files().items():  # it dies in the middle of it
                    with path.open("r+b") as file:
                        file.truncate(self.dice.randint(before[path], size))
                (self.folder / "end.json").unlink(missing_ok=True)
            elif self.dice.random() < 0.5:
                self.log.trim(self.term, self.head, self.head.next_record)
                return
            else:
                return
        for _ in range(self.dice.choice((1, 1, 2, 3))):  # the next one may die at once too
            self.recording = self.begin()


@pytest.mark.parametrize("seed", range(60))
def test_every_row_is_recorded_once_however_often_gateways_die(seed: int, tmp_path: Path) -> None:
    story = Story(tmp_path, seed)
    for number in range(RECORDS):
        story.append(story.record(ends=number == RECORDS - 1))
    for wanted, found in zip(story.rows, read_recording(tmp_path, story.plan), strict=True):
        assert wanted == found.rows["k"].to_pylist()
        assert [] == found.disorder()
