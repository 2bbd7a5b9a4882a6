"""Arrays that grow, arrays from Arrow's memory pool, and arrays that the compiler sees as one type."""

import mmap
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import DTypeLike, NDArray

from joinery.model.views import readonly

T = TypeVar("T", bound=np.generic)

_RESERVE_FROM: Final = 1 << 20
"""Bytes from which on an array has room to grow where it lies."""
_RESERVE_FACTOR: Final = 16
_FLAGS: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)


class _Reserve(mmap.mmap):
    """Addresses without memory: a page is taken when it is first written to."""


def empty(size: int, dtype: DTypeLike) -> NDArray[Any]:
    """Room for results, not filled, from Arrow's pool: it is used again, where malloc would give and take pages."""
    kind = np.dtype(dtype)
    return np.frombuffer(pa.allocate_buffer(size * kind.itemsize), kind, count=size)


def grown(array: NDArray[T], size: int, fill: int | None = None) -> NDArray[T]:
    """The same, longer; what is new stays untouched memory unless it has to be filled.

    A large array gets addresses for many times its size, so that it grows where it lies: copying each time it doubles
    was a fifth of a worker's time while its window filled.
    """
    out = _in_place(array, size)
    if out is None:
        out = _room(size, array.dtype)
        out[: array.size] = array
    if fill is not None:
        out[array.size :] = fill
    return out


def _in_place(array: NDArray[T], size: int) -> NDArray[T] | None:
    whole = array.base
    if not isinstance(whole, np.ndarray) or not isinstance(whole.base, memoryview) or whole.size < size:
        return None
    if not isinstance(whole.base.obj, _Reserve):
        return None
    longer: NDArray[T] = whole[:size]
    return longer


def _room(size: int, dtype: np.dtype[T]) -> NDArray[T]:
    nbytes = size * dtype.itemsize
    if nbytes < _RESERVE_FROM:
        return np.empty(size, dtype)
    try:
        reserve = _Reserve(-1, _RESERVE_FACTOR * nbytes, flags=_FLAGS)
    except OSError:  # a system that counts addresses as memory
        return np.empty(size, dtype)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        reserve.madvise(mmap.MADV_HUGEPAGE)
    whole: NDArray[T] = np.frombuffer(reserve, dtype)
    return whole[:size]


def pick(values: NDArray[T], at: NDArray[np.int32]) -> NDArray[T]:
    """values[at], without the 64-bit copy of the places that numpy would make."""
    out = empty(at.size, values.dtype)
    _pick(readonly(values), at, out)
    return out


@njit(cache=True, nogil=True)
def _pick(values: NDArray[Any], at: NDArray[np.int32], out: NDArray[Any]) -> None:
    for i in range(at.size):
        out[i] = values[at[i]]
