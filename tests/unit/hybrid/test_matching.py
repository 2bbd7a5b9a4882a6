import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.hybrid import matching, pieces
from joinery.hybrid.matching import Pairs, Shelf
from joinery.hybrid.segments import Segment, row_bytes
from tests.unit.hybrid.relations import SCHEMA, batch_of, table

LEAST, GREATEST = -(2**63), 2**63 - 1
WORDS = st.one_of(st.integers(-20, 20), st.sampled_from([LEAST, GREATEST, 0, 0]), st.integers(LEAST, GREATEST))


def segment(words: list[int]) -> Segment:
    words = sorted(words)
    rows = table(words, "r")
    return Segment(0, 1, np.array(words, np.int64), rows, int(row_bytes(rows).sum()))


def found_in(shelf: Shelf, words: list[int], units: list[int], *, keeps_all: bool = False) -> list[tuple[int, int]]:
    pairs = shelf.pairs_of(
        batch_of(words), np.array(units, np.int32), np.arange(len(words)), None, keeps_all=keeps_all
    )  # fmt: skip
    return list(zip(pairs.stream.tolist(), pairs.rows.tolist(), strict=True))


@given(st.lists(st.lists(WORDS, max_size=40), min_size=1, max_size=4), st.data())
def test_every_word_meets_its_equals_in_its_own_segment_and_no_others(
    stored: list[list[int]], data: st.DataObject
) -> None:
    shelf = Shelf(SCHEMA)
    for unit, words in enumerate(stored):
        shelf.put(unit, segment(words))
    units = data.draw(st.lists(st.integers(-1, len(stored) - 1), max_size=20))
    words = [data.draw(st.one_of(WORDS, st.sampled_from(stored[unit] or [1]))) for unit in units]
    expected = [
        (place, row)
        for place, (unit, word) in enumerate(zip(units, words, strict=True))
        for row, one in enumerate(sorted(stored[unit]) if unit >= 0 else [])
        if one == word
    ]
    assert expected == found_in(shelf, words, units)
    alone = {place for place, _ in expected}
    left = [*expected, *((place, -1) for place in range(len(units)) if place not in alone)]
    assert sorted(left) == found_in(shelf, words, units, keeps_all=True)


def test_a_segment_that_went_matches_nothing() -> None:
    shelf = Shelf(SCHEMA)
    shelf.put(3, segment([1, 2, 2]))
    assert [(0, 1), (0, 2)] == found_in(shelf, [2], [3])
    shelf.drop(3)
    shelf.drop(3)
    assert [] == found_in(shelf, [2], [3])
    assert (False, [], 0) == (3 in shelf, shelf.units, shelf.nbytes)


def test_many_partners_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MOST_PAIRS", 4)
    monkeypatch.setattr(pieces, "MOST_TEXT", 8)
    shelf, batch = Shelf(SCHEMA), batch_of([7, 7])
    shelf.put(0, segment([7] * 9))
    units, chosen, ones = np.zeros(2, np.int32), np.arange(2), np.ones(2, np.int64)

    def odd(stream: pa.RecordBatch, relation: pa.RecordBatch) -> np.ndarray:
        assert stream.num_rows == relation.num_rows
        return np.array([int(name[1:]) % 2 == 1 for name in relation.column("name").to_pylist()])

    for condition, names in ((None, range(9)), (odd, range(1, 9, 2))):
        pairs = shelf.pairs_of(batch, units, chosen, condition, keeps_all=True)
        parts = list(shelf.results_of(batch, ones, ones, pairs))
        assert len(parts) > 1
        assert [f"r{n}" for n in names] * 2 == [n for part in parts for n in part.relation.column("name").to_pylist()]
        assert [0] * len(names) + [1] * len(names) == [p for part in parts for p in part.stream.places.tolist()]


def test_a_batch_of_which_every_row_has_one_partner_is_not_copied() -> None:
    shelf, batch = Shelf(SCHEMA), batch_of([3, 1, 2])
    shelf.put(0, segment([1, 2, 3]))
    pairs = shelf.pairs_of(batch, np.zeros(3, np.int32), np.arange(3), None, keeps_all=False)
    (made,) = shelf.results_of(batch, np.ones(3, np.int64), np.ones(3, np.int64), pairs)
    assert made.stream is batch
    (part,) = shelf.results_of(batch, np.ones(3, np.int64), np.ones(3, np.int64), pairs.take(slice(1, 3)))
    assert ([1, 2], [1, 2]) == (part.stream.places.tolist(), part.relation.column("key").to_pylist())
    assert [] == list(shelf.results_of(batch, np.ones(3), np.ones(3), Pairs(*(lane[:0] for lane in _lanes(pairs)))))


def _lanes(pairs: Pairs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return pairs.stream, pairs.units, pairs.rows
