"""Columns as text, whole columns at a time: base64 of bytes, and JSON values.

| type       | NDJSON                                             | CSV (Arrow's writer)                     |
|------------|----------------------------------------------------|------------------------------------------|
| integers   | 42                                                 | 42                                       |
| floats     | 1.5; not finite: "NaN", "Infinity", "-Infinity"    | 1.5, nan, inf, -inf                      |
| decimal    | "1.50" (a JSON number would lose digits)           | 1.50, tiny ones 1E-30                    |
| string     | escaped where JSON asks for it                     | always in quotes                         |
| binary     | base64                                             | base64, in quotes                        |
| bool       | true                                               | true                                     |
| date       | "2026-01-31"                                       | 2026-01-31                               |
| timestamp  | "2026-01-31T12:00:00.000001", all digits of its    | 2026-01-31 12:00:00.000001               |
|            | unit; with a timezone: in UTC, with Z behind it    | the same                                 |
| null       | null                                               | nothing (an empty string is "")          |

A time that no calendar has (years beyond 32767) is written as Arrow says it: <value out of range: N>.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_ALPHABET: Final = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_PAD: Final = ord("=")
_TEXT: Final = pa.large_string()
"""Texts of a whole batch can be longer than 2 GB."""
_SHORT_ESCAPES: Final = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_CONTROLS: Final = {chr(code): _SHORT_ESCAPES.get(chr(code), f"\\u{code:04x}") for code in range(32)}


def base64_of(column: pa.Array) -> pa.Array:
    """A column of bytes as base64 with padding (RFC 4648 §4); nulls stay null."""
    data, offsets = _bytes_of(column.cast(pa.large_binary()))
    lengths = np.diff(offsets)
    triples = (lengths + 2) // 3
    ends = np.cumsum(triples)
    #  every value moves to a start that is a multiple of 3, with zeros behind it
    padded = np.zeros(3 * int(ends[-1]) if ends.size else 0, np.uint8)
    padded[np.arange(data.size) + np.repeat(3 * (ends - triples) - offsets[:-1], lengths)] = data
    first, second, third = padded.reshape(-1, 3).astype(np.int32).T
    word = (first << 16) | (second << 8) | third
    text = np.stack([_ALPHABET[(word >> shift) & 63] for shift in (18, 12, 6, 0)], axis=1)
    text[ends[lengths % 3 == 1] - 1, 2:] = _PAD
    text[ends[lengths % 3 == 2] - 1, 3] = _PAD
    starts = np.concatenate([np.zeros(1, np.int64), 4 * ends]).astype(np.int64)
    found = pa.LargeStringArray.from_buffers(len(column), pa.py_buffer(starts), pa.py_buffer(text.tobytes()))
    return pc.if_else(column.is_valid(), found, pa.scalar(None, _TEXT)) if column.null_count else found


def _bytes_of(column: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of all values, one after the other, and where each begins; nothing of a null."""
    if column.null_count:
        column = column.fill_null(b"")
    _, offset_buffer, data_buffer = column.buffers()
    if len(column) == 0 or data_buffer is None:
        return np.empty(0, np.uint8), np.zeros(len(column) + 1, np.int64)
    offsets = np.frombuffer(offset_buffer, np.int64)[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(data_buffer, np.uint8)[offsets[0] : offsets[-1]]
    return data, offsets - offsets[0]


def in_utc(column: pa.Array) -> pa.Array:
    """Times with a timezone in UTC; all else as it is."""
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return column.cast(pa.timestamp(kind.unit, "UTC"))
    return column


def is_bytes(kind: pa.DataType) -> bool:
    """Whether values are plain bytes, of any or of one length."""
    return bool(pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind))


def json_values(column: pa.Array) -> pa.Array:
    """Each value of a column as JSON."""
    kind = column.type
    if pa.types.is_floating(kind):
        found = _floats(column)
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        found = column.cast(_TEXT)
    elif is_bytes(kind):
        found = _quoted(base64_of(column))
    elif pa.types.is_timestamp(kind):
        found = _quoted(pc.replace_substring(in_utc(column).cast(_TEXT), " ", "T", max_replacements=1))
    elif pa.types.is_string(kind):
        found = _quoted(_escaped(column.cast(_TEXT)))
    else:
        found = _quoted(column.cast(_TEXT))
    return found.fill_null("null")


def _quoted(texts: pa.Array) -> pa.Array:
    mark = pa.scalar('"', _TEXT)
    return pc.binary_join_element_wise(mark, texts, mark, pa.scalar("", _TEXT))


def _floats(column: pa.Array) -> pa.Array:
    texts = column.cast(_TEXT)
    if pc.all(pc.is_finite(column)).as_py() is not False:
        return texts
    for found, wanted in (("nan", '"NaN"'), ("-nan", '"NaN"'), ("inf", '"Infinity"'), ("-inf", '"-Infinity"')):
        texts = pc.if_else(pc.equal(texts, found), pa.scalar(wanted, _TEXT), texts)
    return texts


def _escaped(texts: pa.Array) -> pa.Array:
    data, _ = _bytes_of(texts.cast(pa.large_binary()))
    present = np.flatnonzero(np.bincount(data, minlength=128)[:128]) if data.size else np.empty(0, np.int64)
    for code in [ord("\\"), ord('"'), *range(32)]:  # the backslash first: the others bring new ones
        if code in present:
            character = chr(code)
            texts = pc.replace_substring(texts, character, _CONTROLS.get(character, f"\\{character}"))
    return texts


def lines_of(rows: pa.RecordBatch) -> bytes:
    """Every row as a JSON object on a line of its own, columns in their order."""
    if rows.num_rows == 0:
        return b""
    pieces, before = [], "{"
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        key = json_values(pa.array([name], pa.string()))[0].as_py()
        pieces += [pa.scalar(f"{before}{key}:", _TEXT), json_values(column)]
        before = ","
    pieces.append(pa.scalar("}\n" if pieces else "{}\n", _TEXT))
    lines = pc.binary_join_element_wise(*pieces, pa.scalar("", _TEXT))
    data, _ = _bytes_of(lines.cast(pa.large_binary()))
    return data.tobytes()
