"""The frame of everything that is stored as bytes: who wrote it, in which format, whole or not; no pickle, ever.

    head     magic, format version, CRC-32 of all that follows, length of all     24 bytes, little-endian
    items    each with its length before it, beginning at a multiple of 8, so that columns are read where they lie

Rule 1: whatever is not exactly what was written is refused: another format by its version, damage by the checksum.
Rule 2: one copy to write, one to read; what was read belongs to the reader, who may write into it.
"""

import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joinery.model.errors import require

_HEAD: Final = struct.Struct("<8sIIQ")
_LENGTH: Final = struct.Struct("<Q")

Column = NDArray[Any]


def item_size(nbytes: int) -> int:
    """Bytes that an item of this size takes."""
    return _LENGTH.size + nbytes + -nbytes % 8


class Writer:
    """Items one after the other, into memory of exactly the size that they need."""

    def __init__(self, magic: bytes, version: int, items: int) -> None:
        """`items`: the sum of their `item_size`."""
        self._magic, self._version = magic, version
        self._data = bytearray(_HEAD.size + items)
        self._file = pa.FixedSizeBufferWriter(pa.py_buffer(self._data))
        self._file.write(bytes(_HEAD.size))

    def put(self, column: Column | bytes) -> None:
        """A column, or plain bytes."""
        nbytes = len(column) if isinstance(column, bytes) else column.nbytes
        self._file.write(_LENGTH.pack(nbytes))
        self._file.write(column if isinstance(column, bytes) else column.reshape(-1))
        self._file.write(bytes(-nbytes % 8))

    def put_with(self, size: int, write: Callable[[pa.NativeFile], None]) -> None:
        """An item of a known size that somebody else writes."""
        self._file.write(_LENGTH.pack(size))
        start = self._file.tell()
        write(self._file)
        wrote = self._file.tell() - start
        require(wrote == size, f"Arrow wrote {wrote} bytes of rows, and had said {size}")
        self._file.write(bytes(-size % 8))

    def sealed(self) -> memoryview:
        """All of it, with its head."""
        self._file.close()
        view = memoryview(self._data)
        checksum = zlib.crc32(view[_HEAD.size :])
        _HEAD.pack_into(view, 0, self._magic, self._version, checksum, len(view))
        return view


class Reader:
    """Items one after the other, read where they lie; `refuse` makes the error out of what was found (rule 1)."""

    def __init__(
        self, pieces: Sequence[bytes | memoryview], magic: bytes, version: int, refuse: Callable[[str], Exception]
    ) -> None:
        self._data, self._at = memoryview(bytearray().join(pieces)), _HEAD.size
        found = _fault(self._data, magic, version)
        if found is not None:
            raise refuse(found)

    def column(self, kind: str) -> Column:
        """The next item, as an array."""
        return np.frombuffer(self.next(), kind)

    def next(self) -> memoryview:
        """The next item."""
        [size] = _LENGTH.unpack_from(self._data, self._at)
        start = self._at + _LENGTH.size
        self._at = start + size + -size % 8
        return self._data[start : start + size]


def _fault(data: memoryview, magic: bytes, version: int) -> str | None:
    if len(data) < _HEAD.size:
        return f"{len(data)} bytes"
    found_magic, found_version, checksum, size = _HEAD.unpack_from(data)
    if found_magic != magic:
        return f"bytes that begin with {found_magic!r}"
    if found_version != version:
        return f"format {found_version}"
    if size != len(data):
        return f"{len(data)} of {size} bytes"
    if zlib.crc32(data[_HEAD.size :]) != checksum:
        return "a wrong checksum"
    return None
