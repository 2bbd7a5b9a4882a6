"""The Redis of a run on this machine: one of our own, or the one that the query names (`redis.url`).

Rule 1: in a Redis that others use too, every run has keys of its own, and takes them away at its end. What sinks have
        written into Redis Streams stays.
Rule 2: our own Redis holds checkpoints and commits in memory: if it dies, the run has failed. Somebody else's may come
        back; the processes ask it again, and say so.
"""

import uuid
from contextlib import suppress
from typing import Final

from joinery.adapters.embedded_redis import EmbeddedRedis, connect
from joinery.adapters.redis_calls import calling, prefix_of, run_of
from joinery.model.errors import JoineryError, TryAgain, UserMustAct

_AT_ONCE: Final = 500
"""Keys that are taken away with one call."""


class LocalRedis:
    """Between `start` and `stop`."""

    def __init__(self, url: str, query: str) -> None:
        self._given = url
        self._own = None if url else EmbeddedRedis(durability="memory")
        self.keys = f"{query}-{uuid.uuid4().hex[:12]}" if url else query
        """What the keys of this run are called by."""
        self.run: str | None = None
        """By what its unfinished files are called; None: it has not begun."""

    @property
    def url(self) -> str:
        return self._given if self._own is None else self._own.url

    @property
    def failed(self) -> str | None:
        """Whether our own has died."""
        return None if self._own is None or self._own.is_running else "the embedded Redis has died"

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
        self.run = run_of(client, self.keys)
        client.close()

    def stop(self) -> None:
        """Leave nothing behind."""
        if self._own is not None:
            self._own.stop()
        elif self.run is not None:
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
