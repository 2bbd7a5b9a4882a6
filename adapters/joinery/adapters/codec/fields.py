"""Fields of messages, read with suspicion: each is there, of the right length and within bounds, or a `WireError`."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from joinery.adapters.codec.errors import WireError
from joinery.model.complaints import show
from joinery.model.tuples import I64Array

T = TypeVar("T")

MAX_I64: Final = 2**63 - 1
MIN_I64: Final = -(2**63)
LONGEST_NAME: Final = 1024
LONGEST_TEXT: Final = 1 << 16


def where_of(message: Message, name: str) -> str:
    """How an error calls a field."""
    return f"{message.DESCRIPTOR.name}.{name}"


def number(message: Message, name: str, low: int = 0, high: int = MAX_I64) -> int:
    """A number that must be there."""
    if not message.HasField(name):
        raise WireError(where_of(message, name), "nothing", "a number")
    return _within(message, name, getattr(message, name), low, high)


def maybe_number(message: Message, name: str, low: int = 0, high: int = MAX_I64) -> int | None:
    """A number, or None if it was left out."""
    return number(message, name, low, high) if message.HasField(name) else None


def numbers(message: Message, name: str, size: int, low: int = MIN_I64, high: int = MAX_I64) -> tuple[int, ...]:
    """A list of so many numbers."""
    found = tuple(getattr(message, name))
    if len(found) != size:
        raise WireError(where_of(message, name), f"{len(found)} numbers", f"{size}")
    for value in found:
        _within(message, name, value, low, high)
    return found


def _within(message: Message, name: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise WireError(where_of(message, name), str(value), f"{low} to {high}")
    return value


def flag(message: Message, name: str) -> bool:
    """Yes or no."""
    if not message.HasField(name):
        raise WireError(where_of(message, name), "nothing", "true or false")
    return bool(getattr(message, name))


def real(message: Message, name: str) -> float:
    """A floating point number that must be there."""
    if not message.HasField(name):
        raise WireError(where_of(message, name), "nothing", "a number")
    return float(getattr(message, name))


def text(message: Message, name: str, longest: int = LONGEST_NAME) -> str:
    """A text that is not empty."""
    return checked_text(where_of(message, name), getattr(message, name), longest)


def texts(message: Message, name: str) -> tuple[str, ...]:
    """A list of texts that are not empty."""
    return tuple(checked_text(where_of(message, name), value) for value in getattr(message, name))


def checked_text(where: str, value: str, longest: int = LONGEST_NAME) -> str:
    """The text itself, if it is not empty and not too long."""
    if not 1 <= len(value) <= longest:
        raise WireError(where, show(value) if value else "no text", f"a text of 1 to {longest} signs")
    return value


def inner(message: Message, name: str) -> Any:
    """A message inside a message, that must be there."""
    if not message.HasField(name):
        raise WireError(where_of(message, name), "nothing", "a message")
    return getattr(message, name)


def chosen(envelope: Message) -> tuple[str, Any]:
    """Which message an envelope holds, and the message."""
    name = envelope.WhichOneof("message")
    if name is None:
        raise WireError(envelope.DESCRIPTOR.name, "no message that is known", "one message")
    return name, getattr(envelope, name)


def choice(where: str, value: int, known: Mapping[Any, T]) -> T:
    """What a value of an enum means."""
    if value not in known:
        raise WireError(where, f"value {value}", f"one of {sorted(known)}")
    return known[value]


# --- vectors over groups


def i64(values: I64Array | Sequence[int]) -> bytes:
    """A vector as it travels."""
    return np.asarray(values, "<i8").tobytes()


def vector(message: Message, name: str, size: int | None = None, low: int = -1) -> I64Array:
    """A vector of numbers from `low` on; of so many, if `size` is given."""
    found: I64Array = raw(message, name, "<i8", size)
    if found.size and int(found.min()) < low:
        raise WireError(where_of(message, name), str(found.min()), f"{low} or more")
    return found


def raw(message: Message, name: str, kind: str, size: int | None = None) -> NDArray[Any]:
    """Numbers of a type, as a vector of its own."""
    if not message.HasField(name):
        raise WireError(where_of(message, name), "nothing", "a vector")
    data, width = getattr(message, name), np.dtype(kind).itemsize
    if len(data) % width or (size is not None and len(data) != width * size):
        wanted = f"a multiple of {width}" if size is None else f"{size} x {width}"
        raise WireError(where_of(message, name), f"{len(data)} bytes", wanted)
    return np.frombuffer(data, kind).astype(np.dtype(kind).newbyteorder("="))  # a copy: bytes cannot be written to


def groups(message: Message, partitions: int, name: str = "groups") -> I64Array:
    """Groups of the query, ascending, each once."""
    found = vector(message, name, low=0)
    if found.size and (int(found[-1]) >= partitions or not (found[1:] > found[:-1]).all()):
        raise WireError(where_of(message, name), f"groups {found[:8]} ...", f"ascending ones below {partitions}")
    return found
