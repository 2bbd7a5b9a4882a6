"""Back-pressure between threads of a process: who brings more than can be worked off waits, nothing is thrown away.

A machine never waits. So the threads that read connections do, and with them, by gRPC's flow control, whoever sends.

Rule 1: of one producer so many bytes, and so many batches, are unanswered at most (`Unanswered`). Each connection has a
        measure of its own: a producer that the gateway holds back must not hold back the one that it waits for.
Rule 2: while a call to a store is under way, so many bytes of results are taken at most (`Gate`). With a full disk, or
        a Redis that does not answer, the collector's memory stays bounded, then the workers' and the gateway's.
        Only while a call is under way: what is held for another reason may need more results to go on.
Rule 3: a worker whose results are not taken from it joins no further (`Line.nbytes`, `ModuleRunner`).
"""

import threading
from typing import Final

UNANSWERED_BYTES: Final = 32 << 20
UNANSWERED_BATCHES: Final = 1024
TAKEN_BYTES: Final = 64 << 20
"""Of results, while one call to a store is under way."""
UNSENT_BYTES: Final = 32 << 20
"""Of results that a worker has made and the collector has not read."""


class Unanswered:
    """The batches of one connection that were read and are neither acknowledged nor refused."""

    def __init__(self) -> None:
        self._bytes: dict[int, int] = {}
        self._total, self._closed = 0, False
        self._changed = threading.Condition()

    def read(self, sequence: int, nbytes: int) -> None:
        """A batch was read; returns when the next one may be."""
        with self._changed:
            self._total += nbytes - self._bytes.get(sequence, 0)
            self._bytes[sequence] = nbytes
            while not self._closed and (self._total > UNANSWERED_BYTES or len(self._bytes) > UNANSWERED_BATCHES):
                self._changed.wait()

    def answered(self, sequence: int | None) -> None:
        """None: an answer to no batch."""
        with self._changed:
            self._total -= self._bytes.pop(-1 if sequence is None else sequence, 0)
            self._changed.notify_all()

    def close(self) -> None:
        """The connection has ended: nobody needs to wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class Gate:
    """How much is taken while a call to a store is under way (rule 2)."""

    def __init__(self) -> None:
        self._taken, self._is_busy = 0, False
        self._changed = threading.Condition()

    def begin(self) -> None:
        """A call begins."""
        with self._changed:
            self._taken, self._is_busy = 0, True

    def end(self) -> None:
        """It has ended, or was given up."""
        with self._changed:
            self._is_busy = False
            self._changed.notify_all()

    def take(self, nbytes: int) -> None:
        """Results were read; returns when the next may be."""
        with self._changed:
            self._taken += nbytes
            while self._is_busy and self._taken > TAKEN_BYTES:
                self._changed.wait()
