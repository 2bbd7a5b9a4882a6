"""The same rows in the forms that the engines read, each made once beside the packed records.

| form | for | |
|---|---|---|
| `s1.raw` | ours, Flink, the C program | packed 64-byte records, as `bench.inputs` wrote them |
| `s1.csv` | DataFusion | id, ts, key, payload as text, with a header |
| `s1.parts/` | Spark | the same columns in Parquet, in 100 files whose ages are in the order of the stream |

An id is a row's place in its stream. It is no part of the 64 bytes and only serves to check the result.
"""

import os
import shutil
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from bench.inputs import Files, Say, packed_columns
from bench.peers.job import CSV, PARTS, RAW, Input

FILES: Final = 100
"""Of a stream, for Spark."""
_OLDEST_S: Final = 1_600_000_000


def converted(files: Files, say: Say) -> Input:
    """The workload in every form; what is not there is made now."""
    note, identity = files.folder / "forms", repr(files.workload)
    if not note.exists() or note.read_text() != identity:
        note.unlink(missing_ok=True)
        say(f"{files.workload.name}: writing CSV for DataFusion and Parquet for Spark")
        for stream in (1, 2):
            rows = _numbered(files.folder / RAW.format(stream))
            _write_csv(rows, files.folder / CSV.format(stream))
            _write_parts(rows, files.folder / PARTS.format(stream))
        note.write_text(identity)
    return Input(str(files.folder), files.workload.rows_per_stream, files.window_us)


def _numbered(path: Path) -> pa.Table:
    rows = packed_columns(path)
    return pa.Table.from_batches([rows]).add_column(0, "id", pa.array(np.arange(rows.num_rows)))


def _write_csv(rows: pa.Table, path: Path) -> None:
    at = rows.schema.get_field_index("payload")
    text = rows.set_column(at, "payload", rows.column("payload").cast(pa.binary()).cast(pa.string()))
    pa.csv.write_csv(text, path, pa.csv.WriteOptions(include_header=True, quoting_style="none"))


def _write_parts(rows: pa.Table, folder: Path) -> None:
    """Spark takes the oldest files first; it sees whole seconds."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    size = -(-rows.num_rows // FILES)
    for number, first in enumerate(range(0, rows.num_rows, size)):
        path = folder / f"{number:03}.parquet"
        pa.parquet.write_table(rows.slice(first, size), path, compression="none", use_dictionary=False)
        age = _OLDEST_S + 10 * number
        os.utime(path, (age, age))
