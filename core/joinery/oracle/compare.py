"""Results against the truth, as multisets of rows: what is missing, extra and duplicate.

Of a row that is r times in the results and t times in the truth: missing t - r; duplicate r - t if the truth has it at
all; extra r if it has not. Equal means the same value: NaN is NaN, null is null.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Wrong:
    """A row that is not there as often as it should be."""

    kind: str
    row: dict[str, object]
    found: int
    wanted: int

    def __str__(self) -> str:
        return f"{self.kind}: found {self.found}, wanted {self.wanted}: {self.row}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The three numbers of every verification, and the first rows that they count."""

    missing: int = 0
    extra: int = 0
    duplicate: int = 0
    examples: tuple[Wrong, ...] = ()

    @property
    def exact(self) -> bool:
        return self.missing == self.extra == self.duplicate == 0

    def __str__(self) -> str:
        return f"missing {self.missing}, extra {self.extra}, duplicate {self.duplicate}"


def compare(results: pa.Table, truth: pa.Table, examples: int = 5) -> Comparison:
    """How results differ from the truth; both have the same columns."""
    names = [f"c{number}" for number in range(results.num_columns)]
    both = pa.concat_tables([_marked(results, names, 1, 0), _marked(truth, names, 0, 1)])
    counted = both.group_by(names, use_threads=False).aggregate([("found", "sum"), ("wanted", "sum")])
    found, wanted = counted["found_sum"], counted["wanted_sum"]
    kinds = {
        "missing": pc.less(found, wanted),
        "extra": pc.equal(wanted, 0),
        "duplicate": pc.and_(pc.greater(found, wanted), pc.greater(wanted, 0)),
    }
    numbers, shown = {}, []
    for kind, mask in kinds.items():
        some = counted.filter(mask)
        numbers[kind] = int(pc.sum(pc.abs(pc.subtract(some["found_sum"], some["wanted_sum"])), min_count=0).as_py())
        shown += [_wrong(kind, row, results.column_names) for row in some.slice(0, examples).to_pylist()]
    return Comparison(**numbers, examples=tuple(shown))


def _marked(table: pa.Table, names: list[str], found: int, wanted: int) -> pa.Table:
    marks = [pa.repeat(pa.scalar(mark, pa.int64()), table.num_rows) for mark in (found, wanted)]
    return pa.table([*(_plain(column) for column in table.columns), *marks], names=[*names, "found", "wanted"])


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """One form for each value: one NaN, one kind of text; nanoseconds, which Python cannot show, as numbers."""
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return column.cast(pa.int64())
    return column.cast(pa.large_string()) if pa.types.is_string(column.type) else column


def _wrong(kind: str, row: dict[str, object], names: list[str]) -> Wrong:
    *values, found, wanted = row.values()
    return Wrong(kind, dict(zip(names, values, strict=True)), int(str(found)), int(str(wanted)))
