"""Columns of a fixed width as 8-byte words, without a copy: what compiled loops move and sum up."""

from typing import Final

import numpy as np
import pyarrow as pa

from joinery.model.tuples import I64Array

_WORD: Final = 8


def words_wide(kind: pa.DataType) -> int:
    """How many words a value takes; 0: it has no fixed width of whole words."""
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal(kind):
        return 0 if kind.byte_width % _WORD else kind.byte_width // _WORD
    return int(pa.types.is_primitive(kind) and not pa.types.is_boolean(kind) and kind.bit_width == 8 * _WORD)


def words_of(column: pa.Array, words: int) -> I64Array:
    """The words of a column of so many words per value; what stands at nulls is not defined."""
    if not len(column):
        return np.empty(0, np.int64)
    return np.frombuffer(column.buffers()[1], np.int64, len(column) * words, column.offset * words * _WORD)
