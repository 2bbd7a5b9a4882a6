"""How the columns of a stored row are laid out: what is kept, what can be told from its time and key.

Rule 1: nothing is kept twice. The time column and a key of one integer are not packed: they are read back from the
row's time and word. Rule 2: everything else of fixed width is packed into one row of bytes, the wide columns first,
so that gathering a row for a result costs one cache miss, not one per column. Rule 3: a text or binary is 16 bytes in
the row (address and length) that point into the heap of the row's block.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joinery.partition.format import StreamFormat
from joinery.partition.hashing import hash_words
from joinery.partition.keys import word_scale

_REFERENCE_BYTES = 16


class Home(Enum):
    """Where a column of a stored row lives."""

    TIME = "read back from the row's time"
    WORD = "read back from the row's word"
    PACKED = "bytes of the packed row"
    HEAP = "bytes in the block's heap"


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a stored row."""

    name: str
    type: pa.DataType
    home: Home
    offset: int = 0
    """In the packed row, bytes."""
    width: int = 0
    scale: int = 1
    """Time and word: how many of their units one unit of the column is."""


@dataclass(frozen=True, slots=True)
class RowLayout:
    """The fields of a stream's stored rows, in the order of its schema."""

    stream: int
    schema: pa.Schema
    is_word: bool
    """Whether the key is the word itself (else the word is the key's hash)."""
    fields: tuple[Field, ...]
    stride: int
    """Bytes of a packed row, a multiple of 8 as soon as a field needs it."""

    def hashes(self, words: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The hashes of stored words: they need not be kept."""
        return hash_words(words) if self.is_word else words.view(np.uint64)

    @property
    def has_heap(self) -> bool:
        return any(field.home is Home.HEAP for field in self.fields)

    def index(self, name: str) -> int:
        """Place of a column in the layout."""
        return next(i for i, field in enumerate(self.fields) if field.name == name)

    @staticmethod
    def of(stream: StreamFormat) -> "RowLayout":
        """The layout of a stream's rows."""
        found = [_home(stream, column.name, column.type) for column in stream.schema]
        at, placed = 0, {}
        for field in sorted(found, key=lambda field: (field.width % 8 != 0, -(field.width % 8 or 8))):
            if field.home in (Home.PACKED, Home.HEAP):
                placed[field.name] = at
                at += field.width
        stride = (at + 7) // 8 * 8 if any(field.width % 8 == 0 for field in found if field.width) else at
        fields = tuple(Field(f.name, f.type, f.home, placed.get(f.name, 0), f.width, f.scale) for f in found)
        return RowLayout(stream.index, stream.schema, stream.key.is_word, fields, stride)


def _home(stream: StreamFormat, name: str, kind: pa.DataType) -> Field:
    if name == stream.time_column:
        return Field(name, kind, Home.TIME, scale=stream.time_unit_ns)
    if stream.key.is_word and name == stream.key.columns[0]:
        return Field(name, kind, Home.WORD, scale=word_scale(kind, stream.key.forms[0]) or 1)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return Field(name, kind, Home.HEAP, width=_REFERENCE_BYTES)
    width = 1 if pa.types.is_boolean(kind) else kind.bit_width // 8
    return Field(name, kind, Home.PACKED, width=width)
