"""`python -m bench.figures.timed_worker`: a worker that notes when each result is found, with scaled blocks.

The service tells results by messages, in their order, when none of a message's rows waits any more. The delay of the
thesis (6.4.1) ends earlier, when a stream row is joined, and nobody but the join sees that. So moments and arrivals are
written beside the query file.
"""

import sys
import time
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bench.figures.hybrid_scaled import SCALE, notes_of
from joinery.adapters.settings import exit_code
from joinery.hybrid.config import HybridConfig
from joinery.hybrid.hybrid import HybridJoin, Step
from joinery.machine import hybrid_module
from joinery.worker import __main__ as worker

FOUND: Final = "found"


class TimedJoin(HybridJoin):
    """The join, with blocks of the scaled size; every result is noted."""

    def __init__(self, config: HybridConfig, schema: pa.Schema, condition: Any = None) -> None:
        super().__init__(replace(config, block_bytes=config.block_bytes // SCALE), schema, condition)
        self._notes = notes_of(sys.argv, FOUND).open("ab", buffering=0)

    def on_batch(self, *what: Any, **more: Any) -> Step:
        return self._noted(super().on_batch(*what, **more))

    def on_segments(self, *what: Any) -> Step:
        return self._noted(super().on_segments(*what))

    def on_time(self, now_ns: int) -> Step:
        return self._noted(super().on_time(now_ns))

    def on_end(self) -> Step:
        return self._noted(super().on_end())

    def _noted(self, step: Step) -> Step:
        for joined in step.results:
            moments = np.full(len(joined), time.time_ns())
            self._notes.write(np.stack([moments, joined.stream.times], axis=1).tobytes())
        return step


if __name__ == "__main__":
    hybrid_module.HybridJoin = TimedJoin  # type: ignore[misc]
    sys.exit(exit_code("worker", worker.wired))
