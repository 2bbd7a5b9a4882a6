"""Rows of chosen groups out of several batches: every column follows the same order."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from joinery.flow.gather import Grouped, gather
from joinery.model.tuples import Order, TupleBatch, concat

PARTITIONS = 7


def made(rng: np.random.Generator, rows: int, first: int, *, flags: bool, ordered: bool) -> TupleBatch:
    def nullable(values: list[object]) -> list[object]:
        return [None if rng.random() < 0.2 else value for value in values]

    numbers = rng.integers(-(2**40), 2**40, rows)
    columns = {
        "b": pa.array(nullable([bool(n % 2) for n in numbers.tolist()])),
        "d": pa.array([Decimal(n % 1000) / 100 for n in numbers.tolist()], pa.decimal128(12, 2)),
        "f": pa.array(rng.random(rows), pa.float32()),
        "i": pa.array(numbers),
        "n": pa.array(nullable(numbers.tolist()), pa.int64()),
        "p": pa.array([n.to_bytes(48, "little", signed=True) for n in numbers.tolist()], pa.binary(48)),
        "t": pa.array([str(n) for n in numbers.tolist()]),
        "u": pa.array(numbers, pa.timestamp("us")),
        "w": pa.array([n.to_bytes(12, "little", signed=True) for n in numbers.tolist()], pa.binary(12)),
    }
    counts = rng.integers(0, 99, (rows, 2))
    return TupleBatch(
        stream=1,
        times=rng.integers(0, 2**60, rows),
        hashes=rng.integers(0, 2**63, rows).astype(np.uint64) * np.uint64(2),
        words=numbers,
        keyed=rng.random(rows) < 0.5 if flags else None,
        places=np.arange(first, first + rows),
        rows=pa.RecordBatch.from_pydict(columns),
        late=rng.random(rows) < 0.5 if flags else None,
        order=Order(rng.integers(0, 2**40, rows), counts) if ordered else None,
    )


def as_lists(batch: TupleBatch) -> list[object]:
    columns = [batch.times, batch.hashes, batch.words, batch.keyed, batch.places, batch.late]
    order = batch.order and (batch.order.ranks.tolist(), batch.order.counts.tolist())
    return [None if c is None else c.tolist() for c in columns] + [batch.rows.to_pydict(), order]


@pytest.mark.parametrize("seed", range(12))
def test_every_column_is_sorted_by_group_and_then_as_recorded(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ordered = bool(seed % 2)
    batches = [made(rng, int(rng.integers(0, 50)), 100 * k, flags=k == 1, ordered=ordered) for k in range(3)]
    batches[0] = batches[0].slice(len(batches[0]) // 3, len(batches[0]))  # buffers that do not begin at 0
    grouped = [Grouped.of(batch, PARTITIONS) for batch in batches]
    wanted = [rng.random(PARTITIONS) < 0.6 for _ in batches]
    chosen = [b.take(w[g.groups]) for b, g, w in zip(batches, grouped, wanted, strict=True)]
    of = np.concatenate([g.groups[w[g.groups]] for g, w in zip(grouped, wanted, strict=True)])
    found = gather(list(zip(grouped, wanted, strict=True)))
    if not of.size:
        assert found is None
        return
    assert found is not None
    assert as_lists(concat(chosen).take(np.argsort(of, kind="stable"))) == as_lists(found)


def test_no_row_of_the_wanted_groups_is_no_batch() -> None:
    batch = made(np.random.default_rng(0), 20, 0, flags=False, ordered=False)
    assert gather([(Grouped.of(batch, PARTITIONS), np.zeros(PARTITIONS, np.bool_))]) is None
