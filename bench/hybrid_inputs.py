"""The rows of the hybrid benchmark: a stream of which 80 % have a key of the hottest tenth, and a stored table.

Payloads are random bytes, so that nothing makes the table or the stream smaller than it is: with payloads that are all
alike Parquet stores them once, and Spark reads a table of 131 MB out of 4. Files are neither compressed nor encoded by
dictionaries, which would only cost time then. The stream lies in files whose ages are in its order, as the
stream-stream comparison gives it to Spark (`bench.peers.forms`), 20,000 rows in each.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HOT_SHARE: Final = 0.8
HOT_KEYS: Final = 0.1
STREAM_BYTES: Final = 48
TABLE_BYTES: Final = 120
FILES: Final = 200
"""Of the stream."""
_OLDEST_S: Final = 1_600_000_000


@dataclass(frozen=True, slots=True)
class Data:
    """Where the rows lie, and how many there are."""

    folder: Path
    rows: int

    @property
    def table(self) -> Path:
        return self.folder / "table"

    @property
    def stream(self) -> Path:
        return self.folder / "stream"

    def stream_rows(self) -> pa.Table:
        """All rows of the stream, in memory and in order."""
        return pq.read_table(sorted(self.stream.iterdir())).combine_chunks()


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn took: by the clock, and of the processors, all processes together."""

    tuples: int
    seconds: float
    cpu_s: float

    @property
    def tuples_per_s(self) -> float:
        return self.tuples / self.seconds

    @property
    def cpu_us(self) -> float:
        """Per tuple."""
        return self.cpu_s / self.tuples * 1e6


def written(folder: Path, keys: int, rows: int) -> Data:
    """The table and the stream as Parquet files."""
    rng = np.random.default_rng(6)
    data = Data(folder, rows)
    data.table.mkdir()
    data.stream.mkdir()
    stored = pa.table({"key": np.arange(keys), "info": _random(rng, keys, TABLE_BYTES)})
    _write(stored, data.table / "part-0.parquet")
    hot = rng.integers(0, int(keys * HOT_KEYS), rows)
    chosen = np.where(rng.random(rows) < HOT_SHARE, hot, rng.integers(0, keys, rows))
    stream = pa.table({"key": chosen, "ts": np.arange(rows), "body": _random(rng, rows, STREAM_BYTES)})
    size = -(-rows // FILES)
    for number, first in enumerate(range(0, rows, size)):
        path, age = data.stream / f"{number:03}.parquet", _OLDEST_S + 10 * number
        _write(stream.slice(first, size), path)
        os.utime(path, (age, age))  # Spark takes the oldest files first; it sees whole seconds
    return data


def _random(rng: np.random.Generator, rows: int, width: int) -> pa.Array:
    starts = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(starts), pa.py_buffer(rng.bytes(rows * width))])


def _write(rows: pa.Table, path: Path) -> None:
    pq.write_table(rows, path, compression="none", use_dictionary=False)
