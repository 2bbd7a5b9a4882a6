"""Hash bits of a key: the same in every process, on every run and machine.

A key's hash has 64 bits. Its high 32 bits choose the partition (scaled to n_part, so no bit of them is left over for
a second use), its low 32 bits choose the mini-group in a directory (fine tuning). The two are independent, as fine
tuning needs: with the bits of `hash mod n_part` the first doublings would split nothing. The join index mixes once
more.

Source: seed 000 §IV.C (partitioning) and §IV.D (h(k) of the extendible hash); the finalizer is splitmix64's.
"""

from typing import Final

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from joinery.model.views import readonly

U64Array = NDArray[np.uint64]
I64Array = NDArray[np.int64]

NULL_HASH: Final = np.uint64(0)
"""Hash of a key with a null in it: such rows all go to one fixed group."""

_SEED: Final = np.uint64(0x6A6F696E65727931)
_M1: Final = np.uint64(0xBF58476D1CE4E5B9)
_M2: Final = np.uint64(0x94D049BB133111EB)
_GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True, inline="always")
def _mix(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> np.uint64(30))) * _M1
    x = (x ^ (x >> np.uint64(27))) * _M2
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def _hash_words(words: I64Array, out: U64Array) -> None:
    for i in range(words.size):
        out[i] = _mix(np.uint64(words[i]) + _GAMMA)


@njit(cache=True, nogil=True)
def _hash_bytes(data: NDArray[np.uint8], starts: I64Array, out: U64Array) -> None:
    """FNV-like over little-endian 8-byte words, finalized with the length, so that no value is a prefix of another."""
    for i in range(out.size):
        at, end = starts[i], starts[i + 1]
        h = _SEED
        while at < end:
            word = np.uint64(0)
            for k in range(min(8, end - at)):
                word |= np.uint64(data[at + k]) << np.uint64(8 * k)
            h = _mix(h ^ word) + _GAMMA
            at += 8
        out[i] = _mix(h ^ np.uint64(end - starts[i]))


@njit(cache=True, nogil=True)
def _combine(into: U64Array, other: U64Array) -> None:
    for i in range(into.size):
        into[i] = _mix(into[i] * _M1 + other[i] + _GAMMA)


@njit(cache=True, nogil=True)
def _groups(hashes: U64Array, partitions: np.uint64, out: NDArray[np.uint16]) -> None:
    for i in range(hashes.size):
        out[i] = np.uint16(((hashes[i] >> np.uint64(32)) * partitions) >> np.uint64(32))


def hash_words(words: I64Array) -> U64Array:
    """Hash of keys that are one 64-bit integer each."""
    out = np.empty(words.size, np.uint64)
    _hash_words(readonly(words), out)
    return out


def hash_column(column: pa.Array) -> U64Array:
    """Hash of one key column in its canonical form (see `keys`); what stands at nulls is not defined."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        starts = np.frombuffer(column.buffers()[1], np.int32, count=column.offset + len(column) + 1)[column.offset :]
        return _hashed_bytes(column.buffers()[2], starts.astype(np.int64), len(column))
    width = kind.bit_width // 8
    if width == 8:
        words = np.frombuffer(column.buffers()[1], np.int64, count=column.offset + len(column))[column.offset :]
        return hash_words(words)
    starts = (np.arange(len(column) + 1, dtype=np.int64) + column.offset) * width
    return _hashed_bytes(column.buffers()[1], starts, len(column))


def combine(hashes: list[U64Array]) -> U64Array:
    """Hash of a composite key from the hashes of its columns; their order counts."""
    into = hashes[0].copy()
    for other in hashes[1:]:
        _combine(into, other)
    return into


def groups_of(hashes: U64Array, partitions: int) -> NDArray[np.uint16]:
    """The partition-group of each hash: its high 32 bits, scaled to `partitions`."""
    out = np.empty(hashes.size, np.uint16)
    _groups(readonly(hashes), np.uint64(partitions), out)
    return out


def _hashed_bytes(buffer: pa.Buffer | None, starts: I64Array, count: int) -> U64Array:
    out = np.empty(count, np.uint64)
    data = np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(0, np.uint8)
    _hash_bytes(readonly(data), starts, out)
    return out
