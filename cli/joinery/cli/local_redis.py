"""The Redis of a run on this machine: one of our own, or the one that the query names (`redis.url`).

Rule 1: in a Redis that others use too, every run has keys of its own, and takes them away at its end. What sinks have
        written into Redis Streams stays.
Rule 2: our own Redis is brought up again if it dies, with all that it had answered (`durability: wal`). With `memory`
        it holds checkpoints and commits in memory: if it dies, the run has failed. Somebody else's may come back; the
        processes ask it again, and say so.
Rule 3: with a folder for its state a run can be stopped, and goes on when it is started again; the folder goes when the
        query has ended. Then the keys are named by the query alone.
"""

import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final

from joinery.adapters.embedded_redis import Durability, EmbeddedRedis, connect
from joinery.adapters.redis_calls import calling, prefix_of, run_of
from joinery.adapters.redis_spec import in_force
from joinery.model.errors import JoineryError, TryAgain, UserMustAct
from joinery.model.spec import JoinQuerySpec

_AT_ONCE: Final = 500
"""Keys that are taken away with one call."""


class LocalRedis:
    """Between `start` and `stop`."""

    def __init__(self, url: str, query: str, durability: Durability = "memory", state: Path | None = None) -> None:
        self._given, self._state = url, state
        self._own = None if url else EmbeddedRedis(state, durability=durability)
        self.keys = f"{query}-{uuid.uuid4().hex[:12]}" if url and state is None else query
        """What the keys of this run are called by."""
        self.run: str | None = None
        """By what its unfinished files are called; None: it has not begun."""
        self.goes_on = False
        """Whether there is a log already."""

    @property
    def url(self) -> str:
        return self._given if self._own is None else self._own.url

    @property
    def pids(self) -> dict[str, int]:
        """Our own server and its watcher."""
        return {} if self._own is None else self._own.pids

    @property
    def scratch(self) -> list[Path]:
        """What our own has beside the state."""
        return [] if self._own is None or self._own.scratch is None else [self._own.scratch]

    @property
    def has_died(self) -> bool:
        """Whether our own is no more."""
        return self._own is not None and not self._own.is_running

    def revive(self) -> bool:
        """Bring our own up again (rule 2); False: what it held is lost."""
        if self._own is None or not self._own.survives:
            return False
        self._own.revive()
        return True

    def start(self) -> None:
        """Bring it up, or see that it is there."""
        if self._own is not None:
            self._own.start()
        try:
            client = connect(self.url)
        except TryAgain as error:
            raise UserMustAct(
                f"spec.redis.url: {error}; start a Redis there, or leave the url out for one of our own"
            ) from error
        with calling():
            self.goes_on = bool(client.exists(f"{prefix_of(self.keys)}head"))
        self.run = run_of(client, self.keys)
        client.close()

    def spec(self) -> JoinQuerySpec | None:
        """The spec in force of a query that goes on."""
        client = connect(self.url)
        found = in_force(client, self.keys)
        client.close()
        return found

    def stop(self, *, ended: bool) -> None:
        """Leave nothing behind, but the state of a query that is to go on."""
        if self._own is not None:
            self._own.stop()
            if ended and self._state is not None:
                shutil.rmtree(self._state, ignore_errors=True)
        elif self.run is not None and (ended or self._state is None):
            with suppress(JoineryError):  # it does not answer: there is nothing that we could do
                self._forget()

    def _forget(self) -> None:
        client = connect(self._given)
        with calling():
            pattern = prefix_of(self.keys).replace("[", "\\[") + "*"
            names = list(client.scan_iter(match=pattern, count=_AT_ONCE))
            for first in range(0, len(names), _AT_ONCE):
                client.unlink(*names[first : first + _AT_ONCE])
        client.close()
