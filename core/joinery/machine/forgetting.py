"""Producers that joined, never recorded anything and are gone: forgotten, or their streams would wait for ever.

A push that was refused leaves such a one behind. It has no rows, so no result depends on it; what it holds back is the
watermark, and the end of its stream. That it is forgotten is an entry of the log like its joining: replay decides
nothing.

Rule 1: only one without a name. A name is a promise that somebody goes on under it (`joinery push --producer`, Spark).
Rule 2: only while nothing of it is recorded or waits to be, and it has no connection. One that comes back joins anew.
Rule 3: one that hung up is forgotten at once. One whose connection broke, or that was here before the gateway's
        restart, most likely comes back: it is waited for as long as for one that is silent (`idleTimeout`).
"""

from collections.abc import Callable, Iterator

from joinery.machine.log import Head
from joinery.machine.sessions import Key, Sessions
from joinery.model.ids import is_unnamed

IdleAt = Callable[[Key], int | None]
"""When a producer falls silent, if nothing comes of it; None: never."""


def gone(head: Head, sessions: Sessions, idle_at: IdleAt) -> Iterator[tuple[Key, int]]:
    """Whom the next records forget, and from when on; at 0: at once."""
    waiting = {one.key for one in sessions.waiting}
    for key, logged in head.sessions.items():
        if logged.expected is not None or logged.ended or key in waiting or not is_unnamed(key[1]):
            continue
        known = sessions.producers.get(key)
        if head.clocks[key[0]].ended or (known is not None and known.peer is not None):
            continue
        at_ns = 0 if known is not None and known.has_hung_up else idle_at(key)
        if at_ns is not None:
            yield key, at_ns
