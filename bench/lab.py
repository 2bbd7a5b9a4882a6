"""What every measurement needs: where to work, how often, how large, and whom to tell."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from bench.c_program import CProgram
from bench.inputs import Files, Say, Turn, loaded, turns, written
from joinery.generate.bmodel import BModelKeys
from joinery.generate.keys import UniformKeys
from joinery.generate.workloads import WORKLOADS, Workload

HEADLINE = ("U1", "B7", "B8")
"""The workloads that are joined beside the C program."""
LATENCY = "L1"
"""The workload whose rows come at their times."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A workload in memory."""

    files: Files
    streams: tuple[pa.RecordBatch, pa.RecordBatch]
    turns: list[Turn]

    @property
    def workload(self) -> Workload:
        return self.files.workload

    @property
    def tuples(self) -> int:
        return sum(rows.num_rows for rows in self.streams)


@dataclass(slots=True)
class Lab:
    """The place of one run of the benchmark."""

    folder: Path
    workloads: Mapping[str, Workload]
    reps: int
    scale: int
    """What windows and rows of measurements without the C program are divided by: 1, or more for a quick look."""
    say: Say
    _opened: Opened | None = field(default=None)

    def program(self) -> CProgram:
        return CProgram.compiled(self.folder)

    def open(self, name: str) -> Opened:
        """A workload by name; only the last one is kept."""
        if self._opened is None or self._opened.workload != self.workloads[name]:
            self._opened = None
            files = written(self.workloads[name], self.folder / "data" / name, self.say)
            self.say(f"{name}: loading")
            streams = loaded(files)
            self._opened = Opened(files, streams, turns(streams))
        return self._opened

    def close(self) -> None:
        """Give the memory back."""
        self._opened = None


def small(workload: Workload, factor: int) -> Workload:
    """The same with fewer rows; where keys are uniform also a shorter window over fewer keys: as many pairs per row."""
    fewer = replace(workload, rows_per_stream=workload.rows_per_stream // factor)
    if not isinstance(workload.keys, UniformKeys):
        return fewer
    keys = UniformKeys(workload.keys.domain // factor)
    return replace(fewer, keys=keys, window_ns=workload.window_ns // factor)


def headline(factor: int) -> dict[str, Workload]:
    """The workloads by name, with that many times fewer rows."""
    return {name: small(WORKLOADS[name], factor) if factor > 1 else WORKLOADS[name] for name in (*HEADLINE, LATENCY)}


def described(workload: Workload) -> str:
    """One line for people: how many rows, how fast, which keys, which window."""
    keys = workload.keys
    skew = f"by the b-model with b = {keys.b:g}" if isinstance(keys, BModelKeys) else "all alike"
    size = f"{workload.rows_per_stream:,} rows at {workload.rate_hz:,.0f}/s"
    return f"{workload.name}: {size}, {keys.domain:,} keys {skew}, windows of {workload.window_ns / 1e9:g} s"
