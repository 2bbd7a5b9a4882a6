"""Keys in one form: what is equal across streams must be the same bits before it is hashed or compared.

Rule 1: integers become the widest integer, timestamps nanoseconds, dates days, booleans 0 and 1, decimals one scale,
texts and fixed binaries bytes (`canonical_type`; `joinery.model.types.check_keys` has refused what has no form).
Rule 2: a key of one column whose form is a 64-bit integer *is* the word that the join compares: no second comparison.
Rule 3: every other key is compared by hash first and by its real columns after the probe (`equal_keys`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from joinery.model.errors import BadBatch, require
from joinery.model.time import NS_PER_UNIT
from joinery.partition import hashing


def canonical_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The form in which key columns of these types (one per stream) are hashed and compared."""
    if all(pa.types.is_integer(kind) for kind in types):
        if all(pa.types.is_unsigned_integer(kind) for kind in types) and pa.uint64() in types:
            return pa.uint64()
        return pa.decimal128(38, 0) if pa.uint64() in types else pa.int64()
    if any(pa.types.is_decimal(kind) for kind in types):
        return pa.decimal128(38, max(kind.scale if pa.types.is_decimal(kind) else 0 for kind in types))
    if all(pa.types.is_timestamp(kind) for kind in types):
        return pa.timestamp("ns", "UTC" if types[0].tz else None)
    if all(pa.types.is_fixed_size_binary(kind) or pa.types.is_binary(kind) for kind in types):
        return pa.binary()
    require(all(kind == types[0] for kind in types), f"key types without a common form: {types}")
    return types[0]


def word_scale(kind: pa.DataType, form: pa.DataType) -> int | None:
    """How many units of `form` one unit of `kind` is, if a column of that form is a word (rule 2), else None."""
    if pa.types.is_timestamp(form):
        return NS_PER_UNIT[kind.unit]
    words = pa.types.is_integer(form) or pa.types.is_date32(form) or pa.types.is_boolean(form)
    return 1 if words else None


@dataclass(frozen=True, slots=True)
class KeyForm:
    """How the key columns of one stream become hashes and words."""

    stream: str
    columns: tuple[str, ...]
    forms: tuple[pa.DataType, ...]

    @property
    def is_word(self) -> bool:
        """Whether the key is a single integer, compared as itself."""
        return len(self.forms) == 1 and word_scale(pa.timestamp("ns"), self.forms[0]) is not None

    def canonical(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The key columns of these rows in their canonical forms."""
        return [self._cast(name, rows.column(name), form) for name, form in zip(self.columns, self.forms, strict=True)]

    def _cast(self, name: str, column: pa.Array, form: pa.DataType) -> pa.Array:
        try:
            return column if column.type == form else column.cast(form)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise BadBatch(
                self.stream, f"{name}: {error}", f"keys that fit {form}", "send keys in that range"
            ) from error

    def digest(self, rows: pa.RecordBatch) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.bool_] | None]:
        """Hashes, words, and which rows have a key at all (None: every row)."""
        columns = self.canonical(rows)
        keyed = self._keyed(columns)
        if self.is_word:
            words = word_values(columns[0])
            hashes = hashing.hash_words(words)
        else:
            hashes = hashing.combine([hashing.hash_column(_hashable(column)) for column in columns])
            words = hashes.view(np.int64)
        if keyed is not None:
            hashes = np.where(keyed, hashes, hashing.NULL_HASH)
            words = np.where(keyed, words, 0)
        return hashes, words, keyed

    @staticmethod
    def _keyed(columns: list[pa.Array]) -> NDArray[np.bool_] | None:
        masks = [column.is_valid().to_numpy(zero_copy_only=False) for column in columns if column.null_count]
        return reduce(np.logical_and, masks) if masks else None


def word_values(column: pa.Array) -> NDArray[np.int64]:
    """A column of a word form as int64 bits; zero where it is null."""
    if pa.types.is_boolean(column.type) or pa.types.is_date32(column.type):
        column = column.cast(pa.int32()) if pa.types.is_date32(column.type) else column
        column = column.cast(pa.int64())
    if len(column) == 0:
        return np.empty(0, np.int64)  # which may come without a buffer
    values = np.frombuffer(column.buffers()[1], np.int64, count=column.offset + len(column))[column.offset :]
    if column.null_count:
        return np.where(column.is_valid().to_numpy(zero_copy_only=False), values, 0)
    return values


def equal_keys(left: list[pa.Array], right: list[pa.Array]) -> NDArray[np.bool_]:
    """Row by row: are the real keys equal? (Rule 3; both in their canonical forms.)"""
    masks = [pc.equal(one, other).fill_null(False) for one, other in zip(left, right, strict=True)]
    return np.asarray(reduce(pc.and_, masks).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _hashable(column: pa.Array) -> pa.Array:
    """Booleans and dates have no 8-byte buffer of their own; bring them to int64."""
    if pa.types.is_boolean(column.type) or pa.types.is_date32(column.type):
        return pa.array(word_values(column))
    return column
