"""Views of arrays, as compiled kernels want them."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


def readonly(array: NDArray[T]) -> NDArray[T]:
    """The same array, not writable: one type for a kernel, whoever owns the bytes; else it is compiled twice."""
    view: NDArray[Any] = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
