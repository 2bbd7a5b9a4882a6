"""Tests that measure time: what others do on the machine can spoil a measurement, so it is taken again before it fails.

A shape that is not there is not there in the second and third measurement either. And one such test runs at a time, on
whatever worker of pytest: each starts a dozen processes.
"""

import fcntl
import functools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec

TRIES = 3
Given = ParamSpec("Given")


@contextmanager
def alone() -> Iterator[None]:
    """While nobody else measures on this machine."""
    with (Path(tempfile.gettempdir()) / f"joinery-measuring-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def measured(test: Callable[Given, None]) -> Callable[Given, None]:
    """A test that holds if one of `TRIES` measurements does; it must begin anew each time.

    Only for what is measured: a wrong result is told by `pytest.fail`, which nothing here catches.
    """

    @functools.wraps(test)
    def again(*given: Given.args, **more: Given.kwargs) -> None:
        with alone():
            for _ in range(TRIES - 1):
                try:
                    return test(*given, **more)
                except AssertionError:
                    continue
            return test(*given, **more)

    return again
