from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.hybrid import pieces, waiting
from joinery.hybrid.waiting import Rows, WaitBuffer
from tests.unit.hybrid.relations import batch_of


def rows_of(units: list[int], first: int, tag: int) -> Rows:
    count, batch = len(units), batch_of([None if unit == 2 else unit for unit in units], first)
    numbers = (np.full(count, value, np.int64) for value in (1, tag, 10 * tag, 16))
    return Rows(batch, np.array(units, np.int32), *numbers)


def places(rows: Rows | None) -> list[tuple[int, int, int]]:
    if rows is None:
        return []
    rows.batch.rows.validate(full=True)
    assert rows.batch.places.tolist() == rows.batch.rows.column("place").to_pylist()
    assert (10 * rows.tags).tolist() == rows.since.tolist()
    keyed = [unit != 2 for unit in rows.units.tolist()]
    assert (keyed if not all(keyed) else None) == (None if rows.batch.keyed is None else rows.batch.keyed.tolist())
    return list(zip(rows.tags.tolist(), rows.batch.places.tolist(), rows.units.tolist(), strict=True))


@given(st.data())
def test_what_is_taken_is_what_waited_for_the_units_oldest_tags_first(data: st.DataObject) -> None:
    buffer, model, first = WaitBuffer(), defaultdict[int, list[tuple[int, int, int]]](list), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "_FEW", 3)  # so that pieces are brought together
        for tag in range(data.draw(st.integers(1, 12))):
            units = data.draw(st.lists(st.integers(0, 6), max_size=8))
            chosen = np.flatnonzero([data.draw(st.booleans()) for _ in units])
            buffer.add(rows_of(units, first, tag), chosen)
            for place in chosen.tolist():
                model[units[place]].append((tag, first + place, units[place]))
            first += len(units)
            wanted = data.draw(st.lists(st.integers(0, 8), max_size=3, unique=True))
            taken = places(buffer.take(np.array(wanted, np.int64)))
            assert sorted(row for unit in wanted for row in model.pop(unit, [])) == sorted(taken)
            assert sorted(row[0] for row in taken) == [row[0] for row in taken]
            left = sorted((row for rows in model.values() for row in rows), key=lambda row: row[1])
            assert (len(left), left) == (len(buffer), places(buffer.all()))
            assert min((row[0] for row in left), default=None) == buffer.oldest_tag
            assert sorted(row[0] for row in left) == sorted(buffer.column("tags").tolist())


def test_memory_follows_what_waits() -> None:
    buffer = WaitBuffer()
    for tag in range(200):
        buffer.add(rows_of([1] * 1000 + [tag % 5 * 2], 2000 * tag, tag))
        buffer.take(np.array([1]))
    assert 200 == len(buffer)
    assert sum(buffer._sizes) < 20_000  # else it would be 200,200 rows
    buffer.take(np.arange(10))
    assert (0, 0, None) == (len(buffer), sum(buffer._sizes), buffer.oldest_tag)


def test_texts_that_do_not_fit_one_piece_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_long(*_: object, **__: object) -> None:
        raise pieces.TooLong

    buffer = WaitBuffer()
    for tag in range(30):
        buffer.add(rows_of([1] * 1000 + [0], 2000 * tag, tag))
        buffer.take(np.array([1]))
    with monkeypatch.context() as patch:
        patch.setattr(pieces.Pieces, "gather", too_long)
        buffer.add(rows_of([3], 100_000, 40))
    assert 31 == len(places(buffer.all()))
