"""`python -m bench.figures.slow_disk`: the lookup application without Spark, its segments on a modelled disk.

One disk, one read at a time: each takes an access at its start and at every basic window after it, and its bytes, as
`HybridCosts` says at the scale of `hybrid_scaled`. How long each took by the clock, the wait for its turn left out, is
written beside the query file.
"""

import sys
import threading
import time
from pathlib import Path
from typing import Final

import numpy as np

from bench import plain_lookup
from bench.figures.hybrid_scaled import disk, notes_of
from joinery.spark.segment_files import SegmentFiles

READS: Final = "reads"


class SlowFiles(SegmentFiles):
    """Segments that take as long to read as the modelled disk needs for them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._costs, self._turn = disk(), threading.Lock()
        self._notes = notes_of(sys.argv, READS).open("ab", buffering=0)

    def read(self, stamp: int, number: int) -> bytes:
        with self._turn:
            begun_ns = time.time_ns()
            until_s = time.monotonic()
            data = super().read(stamp, number)
            until_s += self._costs.read_ns(len(data)) / 1e9
            time.sleep(max(0.0, until_s - time.monotonic()))
            self._notes.write(np.array([begun_ns, time.time_ns() - begun_ns], np.int64).tobytes())
            return data


if __name__ == "__main__":
    sys.exit(plain_lookup.main(SlowFiles))
