"""Numbers with their nouns."""

from joinery.model.words import counted


def test_one_is_singular_and_all_else_is_plural() -> None:
    assert ["0 rows", "1 row", "2 rows", "12,000 rows"] == [counted(n, "row") for n in (0, 1, 2, 12_000)]
    assert ["1 query", "2 queries"] == [counted(n, "query", "queries") for n in (1, 2)]
