"""Compiled parts of an expression: a type, and a function from rows to a column. Constants are computed once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from joinery.model.expression_kernels import Datum
from joinery.model.expression_types import INT, UINT, convert
from joinery.model.types import ColumnType, Family, decimal_shape, decimal_type

ColumnKey = tuple[str, str]
"""Stream and column."""
Rows = Mapping[ColumnKey, Any]
"""Arrow arrays by stream and column."""


@dataclass(frozen=True, slots=True)
class Term:
    """A compiled part: its type, and what it gives for rows; `value` if it is the same for all of them."""

    kind: ColumnType
    run: Callable[[Rows], Datum]
    value: pa.Scalar | None = None

    @property
    def constant(self) -> object:
        """The value as Python has it; None if it is null, or not the same for all rows."""
        return None if self.value is None else self.value.as_py()


def constant(kind: ColumnType, value: pa.Scalar) -> Term:
    """A term that is the same for all rows."""
    return Term(kind, lambda _: value, value)


def column(key: ColumnKey, kind: ColumnType) -> Term:
    """A column, read in a type that is at least as wide as its own."""

    def read(rows: Rows) -> Datum:
        held = rows[key]
        whole = held.combine_chunks() if isinstance(held, pa.ChunkedArray) else held
        return whole if whole.type == kind.arrow else whole.cast(kind.arrow)

    return Term(kind, read)


def applied(kind: ColumnType, kernel: Callable[..., Datum], terms: Sequence[Term]) -> Term:
    """A kernel over terms; over constants it runs now, once."""
    values = [term.value for term in terms if term.value is not None]
    if len(values) == len(terms):
        return constant(kind, kernel(*values))
    runs = [term.run for term in terms]
    return Term(kind, lambda rows: kernel(*(run(rows) for run in runs)))


def converted(term: Term, kind: ColumnType) -> Term:
    """A term in the type where it meets others."""
    return term if term.kind == kind else applied(kind, lambda value: convert(value, term.kind, kind), [term])


def fitted(terms: Sequence[Term]) -> list[Term]:
    """Integer literals beside decimals or uint64 take the smallest type that holds them: columns need no cast then."""
    families = {term.kind.family for term in terms}
    if Family.DECIMAL in families:
        return [_as_small_decimal(term) for term in terms]
    if all(term.kind == UINT or is_natural(term) for term in terms) and any(term.kind == UINT for term in terms):
        return [converted(term, UINT) for term in terms]
    return list(terms)


def is_natural(term: Term) -> bool:
    """Whether a term is an integer literal that is not negative."""
    value = term.constant
    return term.kind == INT and isinstance(value, int) and value >= 0


def _as_small_decimal(term: Term) -> Term:
    value = term.constant
    if term.kind != INT or not isinstance(value, int):
        return term
    kind = decimal_type(len(str(abs(value))), 0)
    return constant(kind, pa.scalar(Decimal(value), kind.arrow))


def as_decimal(term: Term, result: ColumnType) -> Term:
    """A number as a decimal of its own digits, in the storage (128 or 256 bits) of the result."""
    digits, scale = decimal_shape(term.kind)
    make = pa.decimal256 if isinstance(result.arrow, pa.Decimal256Type) else pa.decimal128
    kind = ColumnType(f"decimal({digits},{scale})", make(digits, scale), Family.DECIMAL)
    return applied(kind, lambda value: value.cast(kind.arrow), [term])
