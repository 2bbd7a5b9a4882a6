"""The producer process of the service's benchmark: both streams of a workload, pushed with the Python client.

It loads its rows, says "ready", waits for a line on its standard input, pushes, and says when it began. With `--paced`
each row is pushed when its event time has come, counted from the beginning; else as fast as the gateway takes them.
"""

import argparse
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from bench.inputs import BATCH_ROWS, packed_columns
from joinery.adapters.tuning import keep_memory, settle
from joinery.client import Producer, connect
from joinery.generate.workloads import ORIGIN_NS

STEP_S: Final = 0.005
"""How often a paced producer looks what is due."""
ORIGIN_US: Final = ORIGIN_NS // 1000
_US: Final = 1e6


def main() -> None:
    """Two producers, a thread each."""
    parser = argparse.ArgumentParser(prog="python -m bench.pusher")
    parser.add_argument("address")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--paced", action="store_true")
    asked = parser.parse_args()
    keep_memory()
    settle()
    streams = {name: packed_columns(asked.folder / f"{name}.raw") for name in ("s1", "s2")}
    with connect(asked.address) as query:
        producers = {name: query.producer(name, name) for name in streams}
        _tell("ready")
        sys.stdin.readline()
        begun = time.time()
        _tell(str(begun))
        threads = []
        for name, rows in streams.items():
            batches = _due(rows, begun) if asked.paced else _pieces(rows)
            threads.append(threading.Thread(target=_push, args=(producers[name], batches)))
            threads[-1].start()
        for thread in threads:
            thread.join()


def _push(producer: Producer, batches: Iterator[pa.RecordBatch]) -> None:
    producer.push(batches)
    producer.end()


def _pieces(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for at in range(0, rows.num_rows, BATCH_ROWS):
        yield rows.slice(at, BATCH_ROWS)


def _due(rows: pa.RecordBatch, begun: float) -> Iterator[pa.RecordBatch]:
    """What has become due, every few milliseconds; time 0 is when the stream's origin is."""
    due = (rows.column("ts").to_numpy() - ORIGIN_US) / _US
    sent = 0
    while sent < due.size:
        reached = int(np.searchsorted(due, time.time() - begun, side="right"))
        if reached > sent:
            yield rows.slice(sent, reached - sent)
            sent = reached
        time.sleep(STEP_S)


def _tell(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
