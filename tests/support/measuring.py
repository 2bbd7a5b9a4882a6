"""Tests that measure time: what others do on the machine can spoil a measurement, so it is taken again before it fails.

A shape that is not there is not there in the second and third measurement either.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec

TRIES = 3
Given = ParamSpec("Given")


def measured(test: Callable[Given, None]) -> Callable[Given, None]:
    """A test that holds if one of `TRIES` measurements does; it must begin anew each time.

    Only for what is measured: a wrong result is told by `pytest.fail`, which nothing here catches.
    """

    @functools.wraps(test)
    def again(*given: Given.args, **more: Given.kwargs) -> None:
        for _ in range(TRIES - 1):
            try:
                return test(*given, **more)
            except AssertionError:
                continue
        return test(*given, **more)

    return again
