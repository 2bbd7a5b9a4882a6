"""Numbers as people read them."""

import pytest

from joinery.cli.words import counted, duration, number, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0004, "0.4 ms"), (0.0521, "52 ms"), (0.9994, "999 ms"), (0.9999, "1.0 s"), (8.29, "8.3 s"),
        (59.94, "59.9 s"), (59.96, "1 min 0 s"), (125.4, "2 min 5 s"), (3599.4, "59 min 59 s"), (3780, "1 h 3 min"),
    ],
)  # fmt: skip
def test_durations_are_readable(seconds: float, text: str) -> None:
    assert text == duration(seconds)


@pytest.mark.parametrize(("value", "text"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1234567, "1,234,567 rows")])
def test_one_row_is_not_rows(value: int, text: str) -> None:
    assert text == counted(value, "row")


def test_odd_plurals_are_given() -> None:
    assert ("1 query", "2 queries") == (counted(1, "query", "queries"), counted(2, "query", "queries"))


@pytest.mark.parametrize(
    ("nbytes", "text"), [(0, "0 B"), (812, "812 B"), (1536, "1.5 KiB"), (5 << 20, "5.0 MiB"), (3 << 40, "3.0 TiB")]
)
def test_sizes_are_readable(nbytes: int, text: str) -> None:
    assert text == size(nbytes)


def test_numbers_have_commas() -> None:
    assert "2,198,132" == number(2198132)
