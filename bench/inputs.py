"""Input: workloads as files for the C program, and the same rows as Arrow batches for the core.

`<folder>/s1.raw`, `s2.raw` are packed 64-byte records (ts us, key, 48 bytes); `made.json` says of which workload they
were made, and how many pairs join. It is written last: a folder without it, or of another workload, is made anew.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joinery.generate.workloads import PAYLOAD_BYTES, TUPLE_BYTES, Workload
from joinery.model.ids import StreamIndex
from joinery.window.sliding import Marks

RECORD: Final = np.dtype([("ts", "<i8"), ("key", "<i8"), ("payload", "u1", (PAYLOAD_BYTES,))])
NS_PER_US: Final = 1000
BATCH_ROWS: Final = 1 << 14
"""Rows of a batch of stream 1: near the 1 MB of a message."""

Say = Callable[[str], None]
"""Where progress is told."""


@dataclass(frozen=True, slots=True)
class Files:
    """A workload on disk."""

    workload: Workload
    folder: Path
    pairs: int
    """How many pairs join, counted without either of the programs that are measured."""

    @property
    def window_us(self) -> int:
        return self.workload.window_ns // NS_PER_US


@dataclass(frozen=True, slots=True)
class Turn:
    """What a worker gets at once: a batch of each stream, the place of its first row, and the watermarks after it."""

    batches: tuple[pa.RecordBatch, pa.RecordBatch]
    firsts: tuple[int, int]
    marks: Marks

    @property
    def rows(self) -> int:
        return sum(batch.num_rows for batch in self.batches)


def written(workload: Workload, folder: Path, say: Say) -> Files:
    """The workload's files, made now unless they are there."""
    note, identity = folder / "made.json", repr(workload)
    if note.exists() and (found := json.loads(note.read_text()))["workload"] == identity:
        return Files(workload, folder, found["pairs"])
    say(f"{workload.name}: making 2 x {workload.rows_per_stream:,} rows")
    folder.mkdir(parents=True, exist_ok=True)
    note.unlink(missing_ok=True)
    streams = [workload.rows(StreamIndex(index)) for index in range(2)]
    for index, rows in enumerate(streams):
        _packed(rows).tofile(folder / f"s{index + 1}.raw")
    pairs = count_pairs(streams, workload.window_ns // NS_PER_US)
    note.write_text(json.dumps({"workload": identity, "pairs": pairs}))
    return Files(workload, folder, pairs)


def _packed(rows: pa.RecordBatch) -> NDArray[np.void]:
    packed = np.empty(rows.num_rows, RECORD)
    payload = rows.column("payload")
    text = np.frombuffer(payload.buffers()[1], np.uint8)[payload.offset * PAYLOAD_BYTES :][: packed["payload"].size]
    packed["ts"], packed["key"] = rows.column("ts").to_numpy(), rows.column("key").to_numpy()
    packed["payload"] = text.reshape(packed["payload"].shape)
    return packed


def count_pairs(streams: list[pa.RecordBatch], window_us: int) -> int:
    """Pairs with equal keys and times at most a window apart: by sorting (key, time), and two binary searches."""
    times, keys = ([rows.column(name).to_numpy() for rows in streams] for name in ("ts", "key"))
    origin = min(int(column.min()) for column in times) - window_us
    reach = max(int(column.max()) for column in times) + window_us - origin + 1
    if max(int(column.max()) for column in keys) >= 2**62 // reach:
        raise ValueError("keys and times do not fit one word together; take a smaller domain or a shorter stream")
    left, right = (np.sort(key * reach + (time - origin)) for key, time in zip(keys, times, strict=True))
    upto = np.searchsorted(right, left + window_us, side="right")
    return int((upto - np.searchsorted(right, left - window_us, side="left")).sum())


def loaded(files: Files) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The files as one Arrow batch per stream."""
    first, second = (packed_columns(files.folder / f"s{number}.raw") for number in (1, 2))
    return first, second


def packed_columns(path: Path) -> pa.RecordBatch:
    """A file of packed records as columns."""
    packed: NDArray[np.void] = np.fromfile(path, RECORD)
    text = pa.py_buffer(np.ascontiguousarray(packed["payload"]))
    payload = pa.Array.from_buffers(pa.binary(PAYLOAD_BYTES), packed.size, [None, text])
    plain = {name: pa.array(np.ascontiguousarray(packed[name])) for name in ("ts", "key")}
    return pa.RecordBatch.from_pydict({**plain, "payload": payload})


def turns(streams: tuple[pa.RecordBatch, pa.RecordBatch], batch_rows: int = BATCH_ROWS) -> list[Turn]:
    """Cut both streams, which are in order of time, at the same times: every `batch_rows` rows of the first one."""
    times = [rows.column("ts").to_numpy() for rows in streams]
    edges = np.append(np.arange(batch_rows, times[0].size, batch_rows), times[0].size)
    others = np.append(np.searchsorted(times[1], times[0][edges[:-1] - 1], side="right"), times[1].size)
    cuts = [(0, 0), *zip(edges.tolist(), others.tolist(), strict=True)]
    return [
        Turn(
            batches=tuple(rows.slice(a, b - a) for rows, a, b in zip(streams, begin, end, strict=True)),
            firsts=begin,
            marks=Marks(tuple(_reached(column, place) for column, place in zip(times, end, strict=True))),
        )
        for begin, end in pairwise(cuts)
    ]


def _reached(times: NDArray[np.int64], place: int) -> int:
    """The watermark of a stream in order of time, of which so many rows have come: the time of the last."""
    return int(times[max(place - 1, 0)]) * NS_PER_US


assert RECORD.itemsize == TUPLE_BYTES  # noqa: S101 - the C program reads the same records
