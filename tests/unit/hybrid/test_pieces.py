from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from joinery.hybrid import pieces
from joinery.hybrid.pieces import Pieces, TooLong

SCHEMA = pa.schema(
    {
        "word": pa.int64(), "small": pa.int16(), "real": pa.float32(), "text": pa.string(), "bytes": pa.binary(),
        "fixed": pa.binary(3), "flag": pa.bool_(), "money": pa.decimal128(10, 2), "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
    }
)  # fmt: skip


def row(number: int) -> dict[str, object]:
    if number % 7 == 3:
        return {"word": number}
    return {
        "word": number, "small": number % 100, "real": number / 2, "text": "é" * (number % 5), "bytes": b"x" * number,
        "fixed": b"%03d" % (number % 1000), "flag": number % 2 == 0, "money": Decimal(number) / 4,
        "day": date(2026, 1, 1 + number % 28), "at": number,
    }  # fmt: skip


def batch(first: int, count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([row(number) for number in range(first, first + count)], SCHEMA)


def filled() -> tuple[Pieces, list[pa.RecordBatch]]:
    """Three pieces, the second a slice of a larger batch, at odd places of its bits."""
    whole = [batch(0, 9), batch(50, 30).slice(5, 20), batch(100, 1)]
    made = Pieces(SCHEMA)
    for number, rows in enumerate(whole):
        made.put(number, rows)
    return made, whole


def test_rows_of_every_type_come_together_as_they_are() -> None:
    made, whole = filled()
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 3, 200).astype(np.int32)
    rows = np.array([rng.integers(0, whole[number].num_rows) for number in numbers])
    found = made.gather(numbers, rows)
    found.validate(full=True)
    expected = [whole[number].slice(at, 1).to_pylist()[0] for number, at in zip(numbers, rows, strict=True)]
    assert expected == found.to_pylist()


def test_a_row_that_nobody_has_is_null_in_every_column() -> None:
    made, whole = filled()
    found = made.gather(np.array([1, 0, 1], np.int32), np.array([-1, 4, -1]), has_missing=True)
    found.validate(full=True)
    nothing = dict.fromkeys(SCHEMA.names)
    assert [nothing, whole[0].to_pylist()[4], nothing] == found.to_pylist()


def test_a_number_is_used_again_and_nulls_of_the_piece_before_are_forgotten() -> None:
    made, _ = filled()
    made.put(0, batch(4, 3))
    made.drop(1)
    made.drop(1)
    assert [0, 2] == made.numbers
    assert 1 not in made
    found = made.gather(np.zeros(2, np.int32), np.array([2, 0]))
    assert [row(6)["text"], row(4)["text"]] == found.column("text").to_pylist()


def test_no_rows_and_pieces_without_rows() -> None:
    made = Pieces(SCHEMA)
    made.put(0, batch(0, 0))
    found = made.gather(np.empty(0, np.int32), np.empty(0, np.int64))
    found.validate(full=True)
    assert 0 == found.num_rows


def test_more_text_than_an_arrow_batch_can_hold_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = filled()
    monkeypatch.setattr(pieces, "MOST_TEXT", 10)
    with pytest.raises(TooLong):
        made.gather(np.zeros(3, np.int32), np.array([5, 6, 8]))
