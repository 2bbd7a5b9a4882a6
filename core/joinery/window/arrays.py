"""Arrays that grow, and arrays that the compiler sees as one type."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


def grown(array: NDArray[T], size: int, fill: int | None = None) -> NDArray[T]:
    """A longer copy; what is new stays untouched memory unless it has to be filled."""
    out = np.empty(size, array.dtype)
    out[: array.size] = array
    if fill is not None:
        out[array.size :] = fill
    return out


def readonly(array: NDArray[T]) -> NDArray[T]:
    """The same values, never to be written: Arrow's buffers are such arrays, so a kernel is compiled once for all."""
    view = array.view()
    view.flags.writeable = False
    return view
