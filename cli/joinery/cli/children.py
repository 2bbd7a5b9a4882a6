"""The processes of a run, looked after: one that dies is started again, as a cluster would do it.

Rule 1: a process that ends with code 0 has done its work. One that ends with code 2 says that it cannot run; another
        one could not either.
Rule 2: any other end is a crash: it is started again after a pause that doubles with every crash that follows soon, and
        `MOST_CRASHES` of them within `SOON_S` are too many.
Rule 3: a child dies with the nursery that started it (`--with-parent`), which dies with this process.
"""

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from joinery.adapters.settings import CANNOT_RUN
from joinery.cli.nursery import Born, start

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 3.0
SOON_S: Final = 60.0
MOST_CRASHES: Final = 10
GRACE_S: Final = 10.0
"""How long a process may take to end when it is asked to."""
KILLED_S: Final = 2.0
"""How long the news of a killed process may take."""


@dataclass(slots=True)
class _Child:
    module: str
    words: Sequence[str]
    process: Born | None = None
    """None: it has crashed, and is to come back."""
    back_s: float = 0.0
    """When it comes back."""
    crashes: deque[float] = field(default_factory=deque)
    is_leaving: bool = False


class Children:
    """Processes by name; `say` is told of every crash."""

    def __init__(self, say: Callable[[str], None], may_return: Callable[[str], bool]) -> None:
        self._say, self._may_return = say, may_return
        self.environment: dict[str, str] = {}
        """What they are told beside their flags; it can be seen by this user alone."""
        self._children: dict[str, _Child] = {}
        self.failed: str | None = None
        self.done: set[str] = set()
        """Who has done its work."""

    def __contains__(self, name: str) -> bool:
        return name in self._children

    @property
    def names(self) -> list[str]:
        """Those that are there, or will be again."""
        return list(self._children)

    @property
    def pids(self) -> dict[str, int]:
        """Those that run now."""
        there = list(self._children.items())  # another thread may ask
        return {name: child.process.pid for name, child in there if child.process is not None}

    def start(self, name: str, module: str, words: Sequence[str]) -> None:
        """A new process of this name, with these flags."""
        child = self._children[name] = _Child(module, words)
        child.process = self._spawn(child)

    def leave(self, name: str) -> None:
        """Let it end in its own time; it does not come back."""
        child = self._children[name]
        child.is_leaving = True
        if child.process is not None:
            child.process.send(signal.SIGTERM)

    def look_after(self) -> None:
        """Note who has ended, and start again who must."""
        for name, child in list(self._children.items()):
            if child.process is None:
                if child.is_leaving:
                    del self._children[name]
                elif time.monotonic() >= child.back_s:
                    child.process = self._spawn(child)
            elif (code := child.process.poll()) is not None:
                self._ended(name, child, code)

    def _ended(self, name: str, child: _Child, code: int) -> None:
        if code == 0 or child.is_leaving:
            self.done.add(name)
            del self._children[name]
            return
        now, how = time.monotonic(), f"{name} {_how(code)}"
        child.crashes.append(now)
        while child.crashes[0] < now - SOON_S:
            child.crashes.popleft()
        if code == CANNOT_RUN or not self._may_return(name):
            self._fail(name, how)
        elif len(child.crashes) >= MOST_CRASHES:
            self._fail(name, f"{how}, for the {len(child.crashes)}th time within {SOON_S:g} s")
        else:
            pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (len(child.crashes) - 1))
            child.process, child.back_s = None, now + pause_s
            self._say(f"{how}; another one takes its place")

    def _spawn(self, child: _Child) -> Born:
        return start(child.module, child.words, {**os.environ, **self.environment})

    def _fail(self, name: str, how: str) -> None:
        self.failed = self.failed or how
        del self._children[name]

    def close(self) -> None:
        """End all of them."""
        there = [child.process for child in self._children.values() if child.process is not None]
        for process in there:
            process.send(signal.SIGTERM)
        until = time.monotonic() + GRACE_S
        for process in there:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.send(signal.SIGKILL)
                with suppress(subprocess.TimeoutExpired):  # nobody outlives that; perhaps nobody is left to tell
                    process.wait(KILLED_S)
        self._children.clear()


def _how(code: int) -> str:
    """How a process ended."""
    return f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with code {code}"
