"""Compare what came out with what is true, as multisets.

For each distinct item, with r times in the results and t times in the truth: missing is what the truth has more (t -
r), duplicate is what the results have more of an item that the truth does have (r - t, t > 0), extra is what the truth
does not have at all (r, t = 0).

Items may be tuples or dicts in any iterable; rows of a numpy array; values of an Arrow array; rows of an Arrow table.
Numpy and Arrow are counted in Arrow, so that millions of items take seconds. Equal means the same value: NaN is NaN,
null is null, 0.0 and -0.0 differ, and a dict's columns have their order. How Arrow stores a value (large or
dictionary-encoded) makes no difference; its type does.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Items = Iterable[object] | np.ndarray | pa.Array | pa.ChunkedArray | pa.Table

_COLUMNAR: Final = (np.ndarray, pa.Array, pa.ChunkedArray, pa.Table)


@dataclass(frozen=True, slots=True)
class Wrong:
    """One item that is not there as often as it should be."""

    item: object
    found: int
    wanted: int

    def __str__(self) -> str:
        return f"{self.item}: found {self.found}, wanted {self.wanted}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How results differ from the truth; the three numbers of every verification, and examples of what they count."""

    missing: int
    extra: int
    duplicate: int
    missing_examples: tuple[Wrong, ...] = ()
    extra_examples: tuple[Wrong, ...] = ()
    duplicate_examples: tuple[Wrong, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether results and truth are the same multiset."""
        return self.missing == self.extra == self.duplicate == 0

    def __str__(self) -> str:
        lines = [f"missing {self.missing}, extra {self.extra}, duplicate {self.duplicate}"]
        for kind in ("missing", "extra", "duplicate"):
            lines += [f"  {kind} {wrong}" for wrong in getattr(self, f"{kind}_examples")]
        return "\n".join(lines)


def compare(results: Items, truth: Items, examples: int = 5) -> Comparison:
    """Count what is missing, extra and duplicate in the results, with up to that many examples of each kind."""
    if isinstance(results, _COLUMNAR) and isinstance(truth, _COLUMNAR):
        found, wanted = _as_table(results), _as_table(truth)
        _same_columns(found.schema, wanted.schema)
        if not any(pa.types.is_nested(column.type) for column in found.schema):
            return _compare_tables(found, wanted, examples)
        return _compare_items(found.to_pylist(), wanted.to_pylist(), examples)
    found_items = results if isinstance(results, _COLUMNAR) else list(results)
    wanted_items = truth if isinstance(truth, _COLUMNAR) else list(truth)
    return _compare_items(_as_items(found_items, wanted_items), _as_items(wanted_items, found_items), examples)


def _compare_items(results: Iterable[object], truth: Iterable[object], examples: int) -> Comparison:
    shown: dict[object, object] = {}

    def count(items: Iterable[object]) -> Counter[object]:
        counter: Counter[object] = Counter()
        for item in items:
            key = _canonical(item)
            shown.setdefault(key, item)
            counter[key] += 1
        return counter

    found, wanted = count(results), count(truth)
    wrong = [Wrong(item, found[key], wanted[key]) for key, item in shown.items() if found[key] != wanted[key]]
    kinds: dict[str, list[Wrong]] = {"missing": [], "extra": [], "duplicate": []}
    for one in wrong:
        kinds["missing" if one.found < one.wanted else "duplicate" if one.wanted else "extra"].append(one)
    return Comparison(
        **{kind: sum(abs(one.found - one.wanted) for one in some) for kind, some in kinds.items()},
        **{f"{kind}_examples": tuple(some[:examples]) for kind, some in kinds.items()},
    )


def _compare_tables(results: pa.Table, truth: pa.Table, examples: int) -> Comparison:
    names = [f"c{index}" for index in range(results.num_columns)]

    def marked(table: pa.Table, found: int, wanted: int) -> pa.Table:
        marks = [pa.repeat(pa.scalar(mark, pa.int64()), table.num_rows) for mark in (found, wanted)]
        return pa.table([*table.columns, *marks], names=[*names, "found", "wanted"])

    both = pa.concat_tables([marked(results, 1, 0), marked(truth, 0, 1)])
    counted = both.group_by(names).aggregate([("found", "sum"), ("wanted", "sum")])
    found, wanted = counted["found_sum"], counted["wanted_sum"]
    kinds = {
        "missing": pc.less(found, wanted),
        "extra": pc.equal(wanted, 0),
        "duplicate": pc.and_(pc.greater(found, wanted), pc.greater(wanted, 0)),
    }
    numbers: dict[str, int] = {}
    shown: dict[str, tuple[Wrong, ...]] = {}
    for kind, mask in kinds.items():
        some = counted.filter(mask)
        numbers[kind] = pc.sum(pc.abs(pc.subtract(some["found_sum"], some["wanted_sum"])), min_count=0).as_py()
        shown[f"{kind}_examples"] = tuple(_wrongs(some.slice(0, examples), names, results.column_names))
    return Comparison(**numbers, **shown)


def _wrongs(counted: pa.Table, names: list[str], columns: list[str]) -> Iterable[Wrong]:
    rows = zip(*(_values(counted[name]) for name in [*names, "found_sum", "wanted_sum"]), strict=True)
    for *values, found, wanted in rows:
        item = tuple(values) if columns == _numbers(len(columns)) else dict(zip(columns, values, strict=True))
        yield Wrong(item, found, wanted)


def _as_table(items: np.ndarray | pa.Array | pa.ChunkedArray | pa.Table) -> pa.Table:
    """Columns with one representation per type; the columns of arrays are called 0, 1 ..."""
    if isinstance(items, np.ndarray):
        columns = [items] if items.ndim == 1 else list(items.T)
        table = pa.table([pa.array(np.ascontiguousarray(column)) for column in columns], names=_numbers(len(columns)))
    elif isinstance(items, pa.Table):
        table = items
    else:
        table = pa.table([items], names=_numbers(1))
    return pa.table([_plain(column) for column in table.columns], names=table.column_names)


def _numbers(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_binary(column.type) or pa.types.is_binary_view(column.type):
        return column.cast(pa.large_binary())
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_nan(column), pa.scalar(math.nan, column.type), column)
    return column


def _same_columns(results: pa.Schema, truth: pa.Schema) -> None:
    found, wanted = ([(column.name, column.type) for column in schema] for schema in (results, truth))
    if found != wanted:
        raise ValueError(f"the columns differ: found {found}, wanted {wanted}")


def _as_items(items: Items, other: Items) -> Iterable[object]:
    """Python items: the values of an array; of a table dicts if the other side has dicts, else tuples."""
    if not isinstance(items, _COLUMNAR):
        return items
    table = _as_table(items)
    if isinstance(items, pa.Array | pa.ChunkedArray) or (isinstance(items, np.ndarray) and items.ndim == 1):
        return _values(table.column(0))
    rows = zip(*(_values(column) for column in table.columns), strict=True)
    if isinstance(other, list) and other and isinstance(other[0], Mapping):
        return (dict(zip(table.column_names, row, strict=True)) for row in rows)
    return rows


def _values(column: pa.ChunkedArray) -> list[object]:
    """The values in Python; single nanoseconds, for which Python has no type, as text."""
    try:
        return column.to_pylist()
    except ValueError:
        return column.cast(pa.string()).to_pylist()


def _canonical(value: object) -> object:
    """A hashable stand-in, equal for the same value: NaN equals itself, -0.0 does not equal 0.0."""
    match value:
        case float():
            if math.isnan(value):
                return ("nan",)
            return ("-0.0",) if value == 0 and math.copysign(1, value) < 0 else value
        case Mapping():
            return tuple((name, _canonical(one)) for name, one in value.items())
        case tuple() | list():
            return tuple(_canonical(one) for one in value)
        case _:
            return value
