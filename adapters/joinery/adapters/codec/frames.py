"""Envelopes with bodies: large buffers beside a small protobuf header, copied once when written, never when read.

Protobuf copies a `bytes` field twice on each side (into the message and out of it), which is most of what a batch of
1 MB costs. But its wire format is a plain sequence of fields, in any order. So the header is written by protobuf, and
the field `bodies` behind it by hand; a reader cuts the bodies out and leaves the rest to protobuf. What is on the wire
is what protobuf itself would have written or could read (tests prove both), as Arrow Flight does it with `data_body`.

Rule 1: a body begins at a multiple of `ALIGNMENT` from the start of the envelope, by `padding` before it. Where it does
not (somebody wrote the envelope with protobuf alone) it is copied: kernels and Arrow want aligned numbers.
Rule 2: a reader believes nothing: lengths, field types and the number of fields are checked.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray

from joinery.adapters.codec.errors import WireError

Writable: TypeAlias = bytes | pa.Buffer | NDArray[Any]
M = TypeVar("M", bound=Message)

ALIGNMENT: Final = 16
"""Memory of a bytes object begins at a multiple of 16, in every Python that we run on."""
BODY_FIELD: Final = 15
PADDING_FIELD: Final = 14
_LENGTH_DELIMITED: Final = 2
_BODY_TAG: Final = BODY_FIELD << 3 | _LENGTH_DELIMITED
_PADDING_TAG: Final = PADDING_FIELD << 3 | _LENGTH_DELIMITED
_ZEROS: Final = bytes(ALIGNMENT)
_MAX_FIELDS: Final = 4096
"""Fields of an envelope: more is no message, but an attempt to keep us busy."""
_FIXED_SIZES: Final = {1: 8, 5: 4}


class Outgoing:
    """Bodies on their way into an envelope."""

    def __init__(self) -> None:
        self.bodies: list[Writable] = []

    def add(self, body: Writable) -> int:
        """Take in a body; its index."""
        self.bodies.append(body)
        return len(self.bodies) - 1


def pack(envelope: Message, bodies: Sequence[Writable] = ()) -> bytes:
    """The bytes of an envelope with these bodies."""
    header: bytes = envelope.SerializeToString()
    chunks: list[Any] = [header]
    at = len(header)
    for body in bodies:
        size = len(body) if isinstance(body, bytes) else body.nbytes if isinstance(body, np.ndarray) else body.size
        tag = bytes([_BODY_TAG]) + _varint(size)
        gap = -(at + 2 + len(tag)) % ALIGNMENT
        chunks += [bytes([_PADDING_TAG, gap]), _ZEROS[:gap], tag, body]
        at += 2 + gap + len(tag) + size
    return b"".join(chunks)


def unpack(kind: type[M], data: bytes) -> tuple[M, "Incoming"]:
    """The envelope without its bodies, and the bodies."""
    view, start, at, bodies, header = memoryview(data), 0, 0, Incoming(), []
    base = pa.py_buffer(data).address
    for _ in range(_MAX_FIELDS):
        if at >= len(data):
            break
        tag, after = _read_varint(data, at)
        end, content = _field_end(data, tag, after)
        if tag in (_BODY_TAG, _PADDING_TAG):
            header.append(view[start:at])
            start = end
        if tag == _BODY_TAG:
            body = view[content:end]
            bodies.views.append(body if (base + content) % 8 == 0 else memoryview(bytes(body)))
        at = end
    else:
        raise WireError(kind.__name__, f"more than {_MAX_FIELDS} fields", "one message and its bodies")
    header.append(view[start:at])
    return parse(kind, b"".join(header)), bodies


def parse(kind: type[M], data: bytes) -> M:
    """An envelope without bodies."""
    try:
        found: M = kind.FromString(data)
    except DecodeError as error:
        raise WireError(kind.__name__, f"{len(data)} bytes that are no such message", "a protobuf message") from error
    return found


class Incoming:
    """The bodies of an envelope that came."""

    def __init__(self) -> None:
        self.views: list[memoryview] = []

    def get(self, message: Message, name: str, nbytes: int | None = None) -> memoryview:
        """The body that a field of a message names, of that size."""
        where = f"{message.DESCRIPTOR.name}.{name}"
        if not message.HasField(name):
            raise WireError(where, "nothing", "the index of a body")
        index = getattr(message, name)
        if index >= len(self.views):
            raise WireError(where, f"body {index} of {len(self.views)}", "a body that is there")
        body: memoryview = self.views[index]
        if nbytes is not None and body.nbytes != nbytes:
            raise WireError(where, f"a body of {body.nbytes} bytes", f"{nbytes} bytes")
        return body


def _field_end(data: bytes, tag: int, after: int) -> tuple[int, int]:
    """Where a field ends, and where its content begins."""
    wire, content = tag & 7, after
    if wire == 0:
        _, end = _read_varint(data, after)
    elif wire == _LENGTH_DELIMITED:
        size, content = _read_varint(data, after)
        end = content + size
    elif wire in _FIXED_SIZES:
        end = after + _FIXED_SIZES[wire]
    else:
        raise WireError("envelope", f"a field of wire type {wire}", "0, 1, 2 or 5")
    if end > len(data):
        raise WireError("envelope", f"a field that ends at {end} of {len(data)} bytes", "a whole message")
    return end, content


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise WireError("envelope", "the end within a number", "a whole message")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise WireError("envelope", "a number of more than 10 bytes", "a varint")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
