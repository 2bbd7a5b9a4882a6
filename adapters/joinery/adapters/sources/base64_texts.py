"""Bytes that were written as base64 (RFC 4648 §4, with padding), whole columns at a time: how our sinks write them."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from joinery.model.errors import UserMustAct

_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_PAD, _WRONG = 64, 255
_VALUE_OF: Final = np.full(256, _WRONG, np.uint8)
_VALUE_OF[np.frombuffer(_ALPHABET, np.uint8)] = np.arange(64)
_VALUE_OF[ord("=")] = _PAD


def bytes_of(texts: pa.Array) -> pa.Array:
    """A column of texts as the bytes that they stand for; nulls stay null. Refuses what is not base64."""
    plain = texts.cast(pa.large_binary()).fill_null(b"")
    lengths = pc.binary_length(plain).to_numpy(zero_copy_only=False).astype(np.int64)
    values = _VALUE_OF[_bytes(plain)]
    ends = np.cumsum(lengths)
    last, before = _at(values, ends - 1, lengths), _at(values, ends - 2, lengths)
    pads = last.astype(np.int64) + (before & last)
    if (lengths % 4).any() or (values == _WRONG).any() or int((values == _PAD).sum()) != int(pads.sum()):
        raise UserMustAct("found a text that is not base64, wanted base64 for bytes; encode them")
    words = np.where(values == _PAD, 0, values).astype(np.uint32).reshape(-1, 4) @ np.array([1 << 18, 1 << 12, 64, 1])
    made = np.stack([(words >> shift) & 255 for shift in (16, 8, 0)], axis=1).astype(np.uint8).ravel()
    keep = np.ones(made.size, np.bool_)
    keep[ends[pads >= 1] // 4 * 3 - 1] = False
    keep[ends[pads == 2] // 4 * 3 - 2] = False
    starts = np.concatenate([[0], np.cumsum(lengths // 4 * 3 - pads)]).astype(np.int64)
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(np.ascontiguousarray(made[keep]))]
    found = pa.Array.from_buffers(pa.large_binary(), len(texts), buffers).cast(pa.binary())
    return pc.if_else(texts.is_valid(), found, pa.scalar(None, pa.binary())) if texts.null_count else found


def _bytes(column: pa.Array) -> NDArray[np.uint8]:
    """The bytes of all values, one after the other."""
    _, offsets, data = column.buffers()
    if len(column) == 0 or data is None:
        return np.empty(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int64)[[column.offset, column.offset + len(column)]]
    return np.frombuffer(data, np.uint8)[bounds[0] : bounds[1]]


def _at(values: NDArray[np.uint8], places: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each text has padding at this place."""
    if not values.size:
        return np.zeros(lengths.size, np.bool_)
    has_pad: NDArray[np.bool_] = (lengths > 0) & (values[np.maximum(places, 0)] == _PAD)
    return has_pad
