"""A Redis that is killed again while it is being brought back."""

import os
import signal
import threading
import time
from contextlib import suppress

from joinery.cli.local import LocalRun
from tests.chaos.runs import judge
from tests.chaos.test_chaos import calm

TIMES = 4


class Killing:
    """Kills every new Redis as soon as it is there, a few times; on a thread, since the run waits for Redis."""

    def __init__(self) -> None:
        self.killed: list[int] = []
        self._thread: threading.Thread | None = None

    def __call__(self, run: LocalRun) -> None:
        view = run.progress.last
        if self._thread is None and view is not None and view.records:
            self._thread = threading.Thread(target=self._kill, args=(run,), daemon=True)
            self._thread.start()

    def _kill(self, run: LocalRun) -> None:
        until_s = time.monotonic() + 30
        while len(self.killed) < TIMES and time.monotonic() < until_s:
            pid = run.pids.get("redis")
            if pid is not None and pid not in self.killed:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                self.killed.append(pid)
            time.sleep(0.002)


def test_a_redis_that_dies_while_it_is_brought_back_is_brought_back_again() -> None:
    killing = Killing()
    verdict = judge(calm(10.0), watch=killing)
    assert verdict.is_exact, str(verdict)
    assert len(killing.killed) >= 2, "one of them a new Redis; a busy machine may be too slow for more"
