"""Relations and stream rows for the tests of the hybrid join, and the join that is slow and plainly right."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from joinery.hybrid.hybrid import HybridJoin, Step
from joinery.hybrid.segments import Cut, Relation, Segment, cut_relation
from joinery.model.tuples import TupleBatch
from joinery.partition.hashing import hash_words

SCHEMA = pa.schema({"key": pa.int64(), "name": pa.string()})
Store = Mapping[tuple[int, int], Segment]
"""Segments by stamp and number, as a disk holds them."""


def table(keys: Sequence[int | None], text: str) -> pa.RecordBatch:
    names = [f"{text}{number}" for number in range(len(keys))]
    return pa.record_batch([pa.array(keys, pa.int64()), pa.array(names, pa.string())], schema=SCHEMA)


def words_of(rows: pa.RecordBatch) -> np.ndarray:
    return rows.column("key").fill_null(0).to_numpy()


def cut_rows(version: int, cut: Cut, rows: pa.RecordBatch) -> tuple[Relation, tuple[Segment, ...]]:
    words, keyed = words_of(rows), rows.column("key").is_valid().to_numpy(zero_copy_only=False)
    return cut_relation(version, cut, words, hash_words(words), rows, keyed)


def batch_of(keys: Sequence[int | None], first: int = 0) -> TupleBatch:
    places = np.arange(first, first + len(keys))
    column = pa.array(keys, pa.int64())
    words = column.fill_null(0).to_numpy()
    keyed = column.is_valid().to_numpy(zero_copy_only=False)
    return TupleBatch(
        stream=0,
        times=places * 1000,
        hashes=hash_words(words),
        words=words,
        keyed=None if keyed.all() else keyed,
        places=places,
        rows=pa.record_batch([column, pa.array(places)], names=["key", "place"]),
    )


def naive(
    batches: Iterable[tuple[TupleBatch, int]], versions: Mapping[int, pa.RecordBatch], *, left: bool
) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for batch, version in batches:
        relation = versions[version].to_pylist()
        for row in batch.rows.to_pylist():
            partners = [one["name"] for one in relation if row["key"] is not None and one["key"] == row["key"]]
            for name in partners or ([None] if left else []):
                found[row["place"], name, version] += 1
    return found


def rows_of(step: Step) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for part in step.results:
        places = part.stream.rows.column("place").to_pylist()
        assert places == part.stream.places.tolist()
        names, keys = (part.relation.column(name).to_pylist() for name in ("name", "key"))
        for place, name, version, key, word in zip(
            places, names, part.versions.tolist(), keys, part.stream.words.tolist(), strict=True
        ):
            assert key in (None, word)
            found[place, name, version] += 1
    return found


def answered(join: HybridJoin, step: Step, store: Store) -> Counter[tuple[object, ...]]:
    """The results of a step whose probes are answered at once, and those of what comes of that."""
    found = rows_of(step)
    for probe in step.probes:
        found += answered(join, join.on_segment(store[probe]), store)
    return found
