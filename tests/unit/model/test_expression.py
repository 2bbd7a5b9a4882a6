import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.model.errors import BadExpression
from joinery.model.expression import MAX_HEIGHT, MAX_LENGTH, columns, parse
from joinery.model.expression_arrow import check, compile_predicate
from joinery.model.expression_functions import FUNCTIONS
from joinery.model.select import SelectItem, parse_select
from joinery.model.types import ColumnType, parse_type

NAMES = {
    "i": "int64", "j": "int32", "u": "uint64", "f": "float64", "g": "float32", "m": "decimal(10,2)",
    "n": "decimal(38,10)", "s": "string", "b": "binary", "x": "binary(2)", "o": "bool", "d": "date",
    "t": "timestamp(us)", "w": "timestamp(s)", "z": "timestamp(ns, Europe/Berlin)", "order no": "int64",
}  # fmt: skip
TYPES = {("a", name): parse_type(kind) for name, kind in NAMES.items()}
VALUES: dict[str, list[object]] = {
    "i": [1, None, 2**63 - 1, -(2**63)],
    "j": [1, 2, None, -(2**31)],
    "u": [2**64 - 1, None, 5, 0],
    "f": [float("nan"), None, 0.5, float("-inf")],
    "g": [0.1, None, float("nan"), 3e38],
    "m": [Decimal("1.50"), None, Decimal("-99999999.99"), Decimal(0)],
    "n": [Decimal("1.5"), None, Decimal(10**28 - 1), Decimal(1 - 10**28)],
    "s": ["abc", None, "a\nc", ""],
    "b": [b"a", None, b"\0", b""],
    "x": [b"ab", None, b"cd", b"\0\0"],
    "o": [True, None, False, True],
    "d": [dt.date(2024, 2, 29), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "t": [dt.datetime(2024, 2, 29, 13), None, dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)],
    "w": [2**62, None, -(2**62), 0],
    "z": [2**63 - 1, None, -(2**63) + 1, 0],
    "order no": [1, 2, 3, 4],
}


def arrow(name: str, values: list[object]) -> pa.Array:
    kind = TYPES["a", name].arrow
    return pa.array(values, pa.int64()).cast(kind) if name in ("w", "z") else pa.array(values, kind)


ROWS = {("a", name): arrow(name, values) for name, values in VALUES.items()}


def verdicts(text: str) -> list[bool | None]:
    """True, false or null for every row."""
    holds = compile_predicate(parse(text), TYPES).mask(ROWS, 4)
    fails = compile_predicate(parse(f"not ({text})"), TYPES).mask(ROWS, 4)
    return [True if yes else False if no else None for yes, no in zip(holds, fails, strict=True)]


def refused(text: str) -> BadExpression:
    with pytest.raises(BadExpression) as error:
        check(parse(text), TYPES)
    assert all([error.value.found, error.value.wanted, error.value.remedy])
    return error.value


# -- the language ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loose", "grouped"),
    [
        ("a.i = 1 or a.i = 2 and a.o", "(a.i = 1) or ((a.i = 2) and a.o)"),
        ("not a.i = 1 and a.o", "(not (a.i = 1)) and a.o"),
        ("a.i + 2 * 3 = 7", "(a.i + (2 * 3)) = 7"),
        ("a.i - 1 - 1 = 0", "((a.i - 1) - 1) = 0"),
        ("-a.i * 2 = -2", "((-a.i) * 2) = -2"),
        ("a.i = 1 is null", "(a.i = 1) is null"),
        ("a.i between 0 and 1 and a.o", "(a.i between 0 and 1) and a.o"),
        ("not a.i in (1, 2)", "not (a.i in (1, 2))"),
        ("a.i not in (1, 2)", "not (a.i in (1, 2))"),
        ("a.s not like 'a%' or a.o", "(not (a.s like 'a%')) or a.o"),
        ("a.i + 1 between 1 and 1 + 1", "(a.i + 1) between 1 and (1 + 1)"),
        ("a.i % 2 = 1 AND NOT a.o IS NULL", "((a.i % 2) = 1) and (not (a.o is null))"),
    ],
)
def test_operators_bind_as_in_sql(loose: str, grouped: str) -> None:
    assert verdicts(grouped) == verdicts(loose)


def test_names_are_exact_and_odd_ones_are_quoted() -> None:
    assert [True, False, False, False] == verdicts('a."order no" = 1')
    assert [True, False, False, False] == verdicts('"a"."order no" = 1')
    assert "did you mean a.i" in refused("A.i = 1").remedy


def test_a_keyword_before_a_point_is_a_stream() -> None:
    types = {("date", "in"): parse_type("int64"), ("not", "and"): parse_type("int64")}
    assert {("date", "in"), ("not", "and")} == columns(parse("date.in = not.and"))
    assert "bool" == check(parse("date.in = not.and"), types).name


def test_columns_are_found_wherever_they_stand() -> None:
    text = "coalesce(a.x, b.y) = 1 and not (c.z in (d.q, 5)) or e.r like 'a' or -f.s between g.t and h.u or i.v is true"
    assert {"a", "b", "c", "d", "e", "f", "g", "h", "i"} == {stream for stream, _ in columns(parse(text))}


def test_a_predicate_says_which_columns_it_needs_in_a_fixed_order() -> None:
    assert (("a", "f"), ("a", "i")) == compile_predicate(parse("a.i > 1 or a.f < a.i"), TYPES).columns


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("", 0),
        ("   ", 3),
        ("a", 0),
        ("a.", 2),
        ("a.i =", 5),
        ("a.i = 1 a.j", 8),
        ("1 < a.i < 3", 8),
        ("(a.i = 1", 8),
        ("a.i = 1)", 7),
        ("a.i in ()", 8),
        ("a.i in 1", 7),
        ("a.i between 1 or 2", 14),
        ("a.i is 5", 7),
        ("a.s like a.s", 9),
        ("a.s like 'a' escape '!!'", 24),
        ("a.s = 'open", 6),
        ("a.i && a.j", 4),
        ("a.i = 1; drop table x", 7),
        ("a.i = 12abc", 6),
        ("a.d = date '2024-02-30'", 11),
        ("a.t = timestamp '2024-01-01 25:00'", 16),
        ("a.i = 1e999", 6),
        ("a.i = " + "9" * 39, 6),
        ("a.i = not a.o", 6),
        ("__import__('os').system('x')", 16),
        ("a.i = 1 -- comment", 11),
        ("a.i[0] = 1", 3),
        ("lambda: 0", 6),
    ],
)
def test_a_text_that_makes_no_sense_is_refused_at_its_place(text: str, at: int) -> None:
    with pytest.raises(BadExpression) as error:
        parse(text)
    assert at == error.value.at
    assert all([error.value.found, error.value.wanted, error.value.remedy])


@pytest.mark.parametrize(
    "text",
    [
        "a.i = 1 or " * MAX_LENGTH,
        "(" * 2000,
        "(" * MAX_HEIGHT + "a.o" + ")" * MAX_HEIGHT,
        "not " * 1000 + "a.o",
        "- " * 1000 + "1",
        " + ".join(["a.i"] * 500),
        "a.o and (" * 400,
        "'" + "\ud800" + "'",
    ],
)
def test_what_is_too_long_or_too_deep_is_refused_and_never_crashes(text: str) -> None:
    with pytest.raises(BadExpression):
        parse(text)


def test_long_chains_of_and_and_or_are_not_deep() -> None:
    chain = " or ".join(f"a.i = {number}" for number in range(300))
    assert [True, None, False, False] == verdicts(chain)


@settings(max_examples=200)
@given(st.text(max_size=60) | st.text("ai.=<>()'\" %-+*/andortlikebw0123456789,", max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        kind = check(parse(text), TYPES)
    except BadExpression as error:
        kind, at, shown = None, error.at, error.text
    if kind is None:
        assert 0 <= at <= max(len(text), len(shown))
    else:
        assert isinstance(kind, ColumnType)


# -- meaning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.o and null", [None, None, False, None]),
        ("a.o or null", [True, None, None, True]),
        ("not a.o", [False, None, True, False]),
        ("a.o is not true", [False, True, True, False]),
        ("a.o is null", [False, True, False, False]),
        ("a.i in (1, 5)", [True, None, False, False]),
        ("a.i in (1, null)", [True, None, None, None]),
        ("a.i not in (1, null)", [False, None, None, None]),
        ("a.i in (a.j, 7)", [True, None, None, False]),
        ("a.i = null", [None, None, None, None]),
        ("null is null", [True, True, True, True]),
        ("a.i between 0 and null", [None, None, None, False]),
    ],
)
def test_nulls_follow_three_valued_logic(text: str, expected: list[bool | None]) -> None:
    assert expected == verdicts(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.i + 1 is null", [False, True, True, False]),
        ("a.i - 1 is null", [False, True, False, True]),
        ("a.i * 2 is null", [False, True, True, True]),
        ("-a.i is null", [False, True, False, True]),
        ("abs(a.i) is null", [False, True, False, True]),
        ("a.i / 0 is null", [True, True, True, True]),
        ("a.i % 0 is null", [True, True, True, True]),
        ("a.i % -1 = 0", [True, None, True, True]),
        ("a.j * 3 = -6442450944", [False, False, None, True]),
        ("9223372036854775807 + 1 is null", [True, True, True, True]),
        ("1e308 * 10 > 1e308", [True, True, True, True]),
    ],
)
def test_arithmetic_overflows_to_null_and_never_stops(text: str, expected: list[bool | None]) -> None:
    assert expected == verdicts(text)


def test_nan_equals_itself_and_is_the_greatest() -> None:
    assert [True, None, True, True] == verdicts("a.f = a.f")
    assert [True, None, False, False] == verdicts("a.f > 1e300")
    assert [True, False, False, False] == verdicts("greatest(a.f, 1e0) > 1e300")
    assert [False, True, True, True] == verdicts("least(a.f, 1e0) <= 1e0 and (a.f is null or a.f <= 1e0)")
    assert [False, None, True, True] == verdicts("a.f < 1e0")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.u = 18446744073709551615", [True, None, False, False]),
        ("a.u + 1 = 18446744073709551616", [True, None, False, False]),
        ("-a.u = -5", [False, None, True, False]),
        ("a.u % 10 = 5", [True, None, True, False]),
        ("a.u > a.i", [True, None, False, True]),
        ("a.g = 0.1", [True, None, False, False]),
        ("a.m = 1.5", [True, None, False, False]),
        ("a.m * a.n = 2.25", [True, None, False, False]),
        ("a.m < 1e0", [False, None, True, True]),
        ("a.i / 2 = 0.5", [True, None, False, False]),
        ("round(a.m) = -100000000", [False, None, True, False]),
        ("floor(a.m) = 1", [True, None, False, False]),
        ("ceil(a.f) = 1", [False, None, True, False]),
        ("round(2.5) = 3 and round(-2.5e0) = -3", [True, True, True, True]),
        ("round(a.f, 15) = a.f", [True, None, True, True]),
        ("round(2.675e0, 2) = 2.68e0 and round(-1.25e0, 1) = -1.3e0", [True, True, True, True]),
    ],
)
def test_numbers_of_all_kinds_meet_without_loss(text: str, expected: list[bool | None]) -> None:
    assert expected == verdicts(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.s like 'a_c'", [True, None, True, False]),
        ("a.s like '%'", [True, None, True, True]),
        ("a.s like 'A%'", [False, None, False, False]),
        ("a.s like 'a.c'", [False, None, False, False]),
        ("'50%' like '50!%' escape '!'", [True, True, True, True]),
        ("'it''s' = 'it''s'", [True, True, True, True]),
        ("length(a.s) = 3", [True, None, True, False]),
        ("length(a.x) = 2", [True, None, True, True]),
        ("substr(a.s, 2, 1) = 'b'", [True, None, False, False]),
        ("upper(a.s) = 'ABC'", [True, None, False, False]),
        ("coalesce(a.s, 'none') = 'none'", [False, True, False, False]),
        ("least(a.s, 'abb') = 'abb'", [True, True, False, False]),
        ("a.b < a.x", [True, None, True, True]),
    ],
)
def test_texts_and_bytes_compare_by_code_point(text: str, expected: list[bool | None]) -> None:
    assert expected == verdicts(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.d = date '2024-02-29'", [True, None, False, False]),
        ("a.d < a.t", [True, None, False, False]),
        ("a.t > timestamp '2024-02-29 12:59:59.999'", [True, None, False, True]),
        ("a.t >= timestamp '2024-02-29T13:00'", [True, None, False, True]),
        ("a.z = timestamp '1970-01-01 01:00+01:00'", [False, None, False, True]),
        ("year(a.d) = 2024 and month(a.d) = 2 and day(a.d) = 29", [True, None, False, False]),
        ("hour(a.t) = 13", [True, None, False, False]),
        ("hour(a.z) = 0", [False, None, True, True]),
        ("a.w < a.t", [None, None, None, True]),
    ],
)
def test_times_meet_in_the_finer_unit_and_instants_in_utc(text: str, expected: list[bool | None]) -> None:
    assert expected == verdicts(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a.j + a.i", "int64"),
        ("a.i / a.i", "float64"),
        ("a.g / 2", "float32"),
        ("a.g + a.f", "float64"),
        ("a.u + a.i", "decimal(21,0)"),
        ("a.m + 1.5", "decimal(11,2)"),
        ("coalesce(a.i, 1.5)", "decimal(20,1)"),
        ("null", "null"),
        ("a.o", "bool"),
    ],
)
def test_the_type_of_an_expression_is_known_before_any_row(text: str, kind: str) -> None:
    assert kind == check(parse(text), TYPES).name


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("a.q = 1", 0),
        ("a.s = 1", 4),
        ("a.i = 'x'", 4),
        ("a.d = '2024-01-01'", 4),
        ("a.z < a.t", 4),
        ("a.z < a.d", 4),
        ("a.o = 1", 4),
        ("a.b = 'a'", 4),
        ("a.i and a.o", 0),
        ("not a.i", 4),
        ("a.i is true", 0),
        ("a.s + 1", 0),
        ("a.t - a.t", 0),
        ("-a.s", 1),
        ("a.i % 1.5", 4),
        ("a.u % a.i", 4),
        ("a.i in (1, 'x')", 4),
        ("a.i like '1'", 4),
        ("a.s like 'a!' escape '!'", 4),
        ("foo(a.i)", 0),
        ("abs(a.s)", 0),
        ("abs(1, 2)", 0),
        ("round(a.f, a.i)", 0),
        ("round(a.f, -1)", 0),
        ("substr(a.s, 0)", 0),
        ("substr(a.s, a.i)", 0),
        ("length(a.i)", 0),
        ("year(a.i)", 0),
        ("hour(a.d)", 0),
        ("coalesce(a.i, a.s)", 0),
        ("a.n * a.n * a.n", 4),
        ("a.z < timestamp '3000-01-01 00:00Z'", 4),
        ("a.t < timestamp '9999-01-01 00:00:00.000000001'", 6),
    ],
)
def test_types_that_do_not_fit_are_refused_at_their_place(text: str, at: int) -> None:
    assert at == refused(text).at


def test_a_predicate_of_constants_alone_stands_for_every_row() -> None:
    assert [True] * 3 == compile_predicate(parse("1 < 2"), {}).mask({}, 3).tolist()
    assert [False] * 3 == compile_predicate(parse("null"), {}).mask({}, 3).tolist()


def test_a_mask_of_no_rows_is_empty() -> None:
    nothing = {key: column.slice(0, 0) for key, column in ROWS.items()}
    mask = compile_predicate(parse("a.i > 1 and a.s like 'a%' or a.f / a.i > 2"), TYPES).mask(nothing, 0)
    assert (0, np.dtype(np.bool_)) == (len(mask), mask.dtype)


def test_slices_and_chunks_give_the_rows_that_they_hold() -> None:
    predicate = compile_predicate(parse("a.i = 1 or a.s = ''"), TYPES)
    sliced = {key: column.slice(2) for key, column in ROWS.items()}
    chunked = {key: pa.chunked_array([column.slice(0, 1), column.slice(1)]) for key, column in ROWS.items()}
    assert [False, True] == predicate.mask(sliced, 2).tolist()
    assert [True, False, False, True] == predicate.mask(chunked, 4).tolist()


def test_no_function_stops_at_extreme_values() -> None:
    numbers = [f"{name}(a.{column})" for name in ("abs", "round", "floor", "ceil") for column in "ijufgmn"]
    times = [f"{name}(a.{column})" for name in ("year", "month", "day") for column in "dtwz"] + [
        "hour(a.w)",
        "hour(a.z)",
    ]
    picks = [
        f"{name}(a.{column}, a.{column})" for name in ("coalesce", "greatest", "least") for column in "ijufgmnsbxodtwz"
    ]
    texts = [
        "lower(a.s)",
        "upper(a.s)",
        "length(a.s)",
        "length(a.b)",
        "substr(a.s, 2147483647)",
        "round(a.f, 15)",
        "round(a.g, 15)",
    ]
    called = {text.split("(")[0] for text in [*numbers, *times, *picks, *texts]}
    assert set(FUNCTIONS) == called
    for text in [*numbers, *times, *picks, *texts]:
        assert 4 == len(verdicts(f"{text} is null"))


# -- select ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("orders.id", SelectItem("orders", "id", "orders_id")),
        ("orders.id as key", SelectItem("orders", "id", "key")),
        ("  orders . id AS key ", SelectItem("orders", "id", "key")),
        ('orders."order no" as "the ""no"""', SelectItem("orders", "order no", 'the "no"')),
        ("as.as as as", SelectItem("as", "as", "as")),
    ],
)
def test_an_entry_of_select_names_a_column_and_what_it_becomes(text: str, item: SelectItem) -> None:
    assert item == parse_select(text)
    assert item == parse_select(str(item))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "id",
        "orders.",
        "orders.*",
        "orders.id key",
        "orders.id as",
        "orders.id as a b",
        "orders.id + 1",
        "1",
        "a.b.c",
        'a.b as "\n"',
    ],
)
def test_an_entry_of_select_that_is_no_column_is_refused(text: str) -> None:
    with pytest.raises(BadExpression) as error:
        parse_select(text)
    assert all([error.value.found, error.value.wanted, error.value.remedy])
