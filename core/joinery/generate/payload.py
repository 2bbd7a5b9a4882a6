"""What rows carry besides time and key: columns of one kind each, drawn chunk by chunk."""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from joinery.generate.checks import want, want_real, want_whole

WIDTH_MAX: Final = 1 << 16
_LETTER_BITS: Final = np.uint64(0x0F0F0F0F0F0F0F0F)
_LETTER_A: Final = np.uint64(0x6161616161616161)


class PayloadColumn(Protocol):
    """One more column of a stream."""

    @property
    def name(self) -> str:
        """Its name in the schema."""
        ...

    @property
    def type(self) -> pa.DataType:
        """Its Arrow type."""
        ...

    def draw(self, rng: np.random.Generator, first_row: int, count: int) -> pa.Array:
        """The values of `count` rows, the first of which has this number."""
        ...


def want_name(field: str, name: object) -> None:
    """Refuse what is not the name of a column."""
    want(isinstance(name, str) and name != "", field, name, "a name", "give the name of the column")


@dataclass(frozen=True, slots=True)
class Letters:
    """Random letters a-p of one width, as fixed-size binary: 4 bits each, safe in CSV and JSON too."""

    name: str
    width: int

    def __post_init__(self) -> None:
        want_name("name", self.name)
        want_whole("width", self.width, 1, WIDTH_MAX, "give the bytes of a value")

    @property
    def type(self) -> pa.DataType:
        return pa.binary(self.width)

    def draw(self, rng: np.random.Generator, first_row: int, count: int) -> pa.Array:  # noqa: ARG002
        words = rng.integers(0, 2**64, size=(count, -(-self.width // 8)), dtype=np.uint64)
        words &= _LETTER_BITS
        words += _LETTER_A
        text = words.view(np.uint8)[:, : self.width]
        return pa.Array.from_buffers(self.type, count, [None, pa.py_buffer(np.ascontiguousarray(text))])


@dataclass(frozen=True, slots=True)
class Integers:
    """Uniform whole numbers in [low, high), as int64."""

    name: str
    low: int
    high: int

    def __post_init__(self) -> None:
        want_name("name", self.name)
        want_whole("low", self.low, -(2**63), 2**63 - 2, "give the least value")
        want_whole("high", self.high, self.low + 1, 2**63 - 1, "give the bound, above low")

    @property
    def type(self) -> pa.DataType:
        return pa.int64()

    def draw(self, rng: np.random.Generator, first_row: int, count: int) -> pa.Array:  # noqa: ARG002
        return pa.array(rng.integers(self.low, self.high, size=count, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Floats:
    """Uniform numbers in [low, high), as float64."""

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        want_name("name", self.name)
        want_real("low", self.low, -1e300, 1e300, "give the least value")
        want_real("high", self.high, self.low, 1e300, "give the bound, above low")

    @property
    def type(self) -> pa.DataType:
        return pa.float64()

    def draw(self, rng: np.random.Generator, first_row: int, count: int) -> pa.Array:  # noqa: ARG002
        return pa.array(self.low + (self.high - self.low) * rng.random(count))


@dataclass(frozen=True, slots=True)
class RowNumbers:
    """The position of the row in its stream, as int64: what a verifier needs to tell equal rows apart."""

    name: str

    def __post_init__(self) -> None:
        want_name("name", self.name)

    @property
    def type(self) -> pa.DataType:
        return pa.int64()

    def draw(self, rng: np.random.Generator, first_row: int, count: int) -> pa.Array:  # noqa: ARG002
        return pa.array(np.arange(first_row, first_row + count, dtype=np.int64))
