"""Arrays that grow, arrays from Arrow's memory pool, and arrays that the compiler sees as one type."""

from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import DTypeLike, NDArray

from joinery.model.views import readonly

T = TypeVar("T", bound=np.generic)


def empty(size: int, dtype: DTypeLike) -> NDArray[Any]:
    """Room for results, not filled, from Arrow's pool: it is used again, where malloc would give and take pages."""
    kind = np.dtype(dtype)
    return np.frombuffer(pa.allocate_buffer(size * kind.itemsize), kind, count=size)


def grown(array: NDArray[T], size: int, fill: int | None = None) -> NDArray[T]:
    """A longer copy; what is new stays untouched memory unless it has to be filled."""
    out = np.empty(size, array.dtype)
    out[: array.size] = array
    if fill is not None:
        out[array.size :] = fill
    return out


def pick(values: NDArray[T], at: NDArray[np.int32]) -> NDArray[T]:
    """values[at], without the 64-bit copy of the places that numpy would make."""
    out = empty(at.size, values.dtype)
    _pick(readonly(values), at, out)
    return out


@njit(cache=True, nogil=True)
def _pick(values: NDArray[Any], at: NDArray[np.int32], out: NDArray[Any]) -> None:
    for i in range(at.size):
        out[i] = values[at[i]]
