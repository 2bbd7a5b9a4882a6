"""Every expression means what it means in DuckDB: the same three-valued result for the same rows.

Expressions are drawn in pairs, our text and DuckDB's. They differ only where `joinery.model.expression_arrow` says so:
integers compute as BIGINT, arithmetic stands in try(...) because overflow is null for us, a divisor is nullif(x, 0),
and `between` is two comparisons (DuckDB brings all three to one type).
"""

import datetime as dt
import random
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from joinery.model.expression import parse
from joinery.model.expression_arrow import compile_predicate
from joinery.model.types import parse_type

NAMES = {
    "i": "int64", "j": "int8", "u": "uint64", "f": "float64", "g": "float32", "m": "decimal(9,2)", "s": "string",
    "x": "binary", "y": "binary(2)", "o": "bool", "d": "date", "t": "timestamp(us)", "v": "timestamp(ns)",
    "w": "timestamp(s)", "z": "timestamp(us, UTC)", "q": "timestamp(us, Asia/Tokyo)",
}  # fmt: skip
TYPES = {("a", name): parse_type(kind) for name, kind in NAMES.items()}


@dataclass(frozen=True)
class Pair:
    """One expression in our language and in DuckDB's."""

    ours: str
    ducks: str


@cache
def database() -> duckdb.DuckDBPyConnection:
    """Not a fixture: what hypothesis keeps of a test outlives the connection's library, which then complains."""
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'; set threads = 1")
    return connection


def both(template: str, *parts: Pair, duck: str | None = None) -> Pair:
    ours = template.format(*(part.ours for part in parts))
    return Pair(ours, (duck or template).format(*(part.ducks for part in parts)))


def column(name: str, cast: str = "") -> st.SearchStrategy[Pair]:
    return st.just(Pair(f"a.{name}", f"a.{name}{cast}"))


def same(text: str) -> Pair:
    return Pair(text, text)


def quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


# -- values of each family ------------------------------------------------------------------------------------------

ROWS = 64
INTEGERS = [-5, -1, 0, 1, 2, 3, 5, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
FLOATS = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 0.1, 0.5, 1.5, 2.5, -2.5, 3.0, 1e15 + 0.5]
CENTS = [-(10**9) + 1, -251, -250, -150, -100, -1, 0, 1, 50, 100, 149, 150, 250, 9999, 10**9 - 1]
TEXTS = ["", "a", "A", "ab", "aé", "a\nb", "ÉßΣσ", "a%!", "a%!b", "_b", " a ", "it's", "\\", "aaaa", "b"]
EPOCH = dt.datetime(1970, 1, 1)
MOMENTS = [EPOCH + dt.timedelta(seconds=second) for second in (-(2**33), -1, 0, 1, 86_399, 86_400, 10**9, 2**33)]
INSTANTS = [moment.replace(tzinfo=dt.UTC) for moment in MOMENTS]
POOLS: dict[str, list[object]] = {
    "i": [None, *INTEGERS],
    "j": [None, -128, -5, -1, 0, 1, 2, 3, 127],
    "u": [None, 0, 1, 5, 7, 2**63, 2**64 - 1],
    "f": [None, *FLOATS],
    "g": [None, *(float(np.float32(value)) for value in FLOATS)],
    "m": [None, *(Decimal(cents) / 100 for cents in CENTS)],
    "s": [None, *TEXTS],
    "x": [None, b"", b"a", b"ab", b"\xff", b"\0"],
    "y": [None, b"ab", b"\xff\0", b"\0\0"],
    "o": [None, True, False],
    "d": [
        None,
        dt.date(1700, 1, 1),
        dt.date(1969, 12, 31),
        dt.date(1970, 1, 1),
        dt.date(1970, 1, 2),
        dt.date(2200, 2, 28),
    ],
    **{name: [None, *MOMENTS] for name in "tvw"},
    **{name: [None, *INSTANTS] for name in "zq"},
}


def table_of(seed: int) -> pa.Table:
    """Many rows, thick with edges: drawn by a seed, because one draw per value would be slow and thin."""
    chance = random.Random(seed)
    rows = {name: [chance.choice(pool) for _ in range(ROWS)] for name, pool in POOLS.items()}
    return pa.table({name: pa.array(values, TYPES["a", name].arrow) for name, values in rows.items()})


# -- expressions of each family -------------------------------------------------------------------------------------


DUCKS_UNARY = {"-": "0::bigint - ", "abs": "abs"}  # DuckDB folds -(-x) to x before it looks for overflow


def integers(depth: int) -> st.SearchStrategy[Pair]:
    literals = st.sampled_from(INTEGERS).map(lambda value: Pair(str(value), f"({value})::bigint"))
    leaves = st.one_of(column("i"), column("j", "::bigint"), literals)
    if depth == 0:
        return leaves
    below = integers(depth - 1)
    arithmetic = st.builds(
        lambda sign, x, y: both(f"({{}} {sign} {{}})", x, y, duck=f"try(({{}}) {sign} ({{}}))"),
        st.sampled_from("+-*"),
        below,
        below,
    )
    modulo = st.builds(
        lambda x, y: both("({0} % {1})", x, y, duck="try(({0}) % (case when ({1}) = -1 then 1 else ({1}) end))"),
        below,
        below,
    )
    unary = st.builds(
        lambda name, x: both(f"{name}({{}})", x, duck=f"try({DUCKS_UNARY[name]}({{}}))"),
        st.sampled_from(["-", "abs"]),
        below,
    )
    parts = st.builds(
        lambda name, x: both(f"{name}({{}})", x), st.sampled_from(["year", "month", "day"]), dates() | naive_times()
    )
    return st.one_of(
        leaves, arithmetic, modulo, unary, parts, picks(below), texts(depth - 1).map(lambda x: both("length({})", x))
    )


def decimals(depth: int) -> st.SearchStrategy[Pair]:
    literals = st.sampled_from(CENTS).map(lambda cents: same(f"{Decimal(cents) / 100:.2f}"))
    unsigned = column("u", "::decimal(20,0)")
    leaves = st.one_of(column("m"), literals)
    if depth == 0:
        return leaves | unsigned
    arithmetic = st.builds(lambda sign, x, y: both(f"({{}} {sign} {{}})", x, y), st.sampled_from("+-*"), leaves, leaves)
    names = st.sampled_from(["abs({})", "round({})", "round({}, 1)", "floor({})", "ceil({})", "-({})"])
    return st.one_of(leaves, arithmetic, st.builds(both, names, leaves | arithmetic), picks(leaves))


def floats(depth: int) -> st.SearchStrategy[Pair]:
    literals = st.sampled_from([0.0, 0.1, 0.5, 1.5, -2.5, 1e15]).map(lambda value: same(f"{value:.17e}"))
    leaves = st.one_of(column("f"), column("g"), literals)
    if depth == 0:
        return leaves
    below = st.one_of(floats(depth - 1), integers(depth - 1), decimals(0))
    arithmetic = st.builds(lambda sign, x, y: both(f"({{}} {sign} {{}})", x, y), st.sampled_from("+-*"), leaves, below)
    division = st.builds(lambda x, y: both("({} / {})", x, y, duck="(({}) / nullif({}, 0))"), below, below)
    names = st.sampled_from(["abs({})", "round({})", "floor({})", "ceil({})", "-({})"])
    return st.one_of(leaves, arithmetic, division, st.builds(both, names, floats(depth - 1)), picks(floats(depth - 1)))


def picks(below: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    """Functions of several arguments of one family, nulls among them."""
    names = st.sampled_from(["coalesce", "greatest", "least"])
    nulls = st.just(Pair("null", "null"))
    return st.builds(
        lambda name, x, y, z: both(f"{name}({{}}, {{}}, {{}})", x, y, z), names, below, below | nulls, below
    )


def texts(depth: int) -> st.SearchStrategy[Pair]:
    literals = st.sampled_from(TEXTS).map(lambda value: same(quoted(value)))
    leaves = column("s") | literals
    if depth == 0:
        return leaves
    below = texts(depth - 1)
    names = st.sampled_from(["lower({})", "upper({})", "substr({}, 2)", "substr({}, 1, 2)", "substr({}, 3, 0)"])
    return st.one_of(leaves, st.builds(both, names, below), picks(below))


def dates() -> st.SearchStrategy[Pair]:
    return column("d") | st.sampled_from(["1969-12-31", "2200-02-28"]).map(lambda day: same(f"date '{day}'"))


def naive_times() -> st.SearchStrategy[Pair]:
    literals = st.sampled_from(MOMENTS).map(lambda moment: same(f"timestamp '{moment}'"))
    return st.one_of(column("t"), column("v"), column("w"), literals)


def instants() -> st.SearchStrategy[Pair]:
    literals = st.sampled_from(MOMENTS).map(lambda moment: Pair(f"timestamp '{moment}Z'", f"timestamptz '{moment}+00'"))
    return st.one_of(column("z"), column("q"), literals)


SIGNS = st.sampled_from(["=", "==", "!=", "<>", "<", "<=", ">", ">="])
NOT = st.sampled_from(["", "not"])
PATTERNS = st.text("aAbé%_!\n'\\", max_size=4)


def checks_of(family: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    """Comparisons, ranges, lists and null tests over values that meet."""
    three = (family, family, family)
    compare = st.builds(lambda sign, x, y: both(f"({{}} {sign} {{}})", x, y), SIGNS, family, family)
    pairwise = "({no} ({{0}} >= {{1}} and {{0}} <= {{2}}))"
    between = st.builds(
        lambda no, *xyz: both(f"({{}} {no} between {{}} and {{}})", *xyz, duck=pairwise.format(no=no)), NOT, *three
    )
    nulls = st.sampled_from(["", ", null"])
    member = st.builds(lambda no, null, *xyz: both(f"({{}} {no} in ({{}}, {{}}{null}))", *xyz), NOT, nulls, *three)
    null_test = st.builds(lambda no, x: both(f"({{}} is {no} null)", x), NOT, family)
    return st.one_of(compare, compare, between, member, null_test)


def likes(family: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    plain = st.builds(lambda x, no, pattern: both(f"({{}} {no} like {quoted(pattern)})", x), family, NOT, PATTERNS)
    tails = st.sampled_from(["", "%", "_"])
    escaped = st.builds(lambda x, tail: both(f"({{}} like 'a!%!!{tail}' escape '!')", x), family, tails)
    return plain | escaped


BOOLEANS = st.sampled_from(["true", "false", "null"]).map(lambda word: Pair(word, f"{word}::boolean"))
FAMILIES = {
    "integers": integers(1),
    "decimals": decimals(1),
    "floats": floats(1),
    "numbers": integers(0) | decimals(0) | floats(0),
    "texts": texts(1),
    "times": dates() | naive_times(),
    "instants": instants(),
    "bytes": column("x") | column("y"),
    "booleans": column("o") | BOOLEANS,
}


def conditions(depth: int) -> st.SearchStrategy[Pair]:
    leaves = st.sampled_from(list(FAMILIES.values())).flatmap(checks_of) | FAMILIES["booleans"] | likes(texts(0))
    if depth == 0:
        return leaves
    below = conditions(depth - 1)
    word = st.sampled_from(["and", "or"])
    logic = st.builds(lambda word, *xyz: both(f"({{}} {word} {{}} {word} {{}})", *xyz), word, below, below, below)
    truths = st.sampled_from(["(not {})", "({} is true)", "({} is not true)", "({} is false)", "({} is not false)"])
    return st.one_of(leaves, logic, st.builds(both, truths, below))


def verdicts(text: str, table: pa.Table) -> list[bool | None]:
    """The three-valued result, by the public face alone: true, else false if its negation is true, else null."""
    rows = {("a", name): table.column(name).combine_chunks() for name in table.column_names}
    holds = compile_predicate(parse(text), TYPES).mask(rows, len(table))
    fails = compile_predicate(parse(f"not ({text})"), TYPES).mask(rows, len(table))
    return [True if yes else False if no else None for yes, no in zip(holds, fails, strict=True)]


def agree(pair: Pair, seed: int) -> None:
    table = table_of(seed)
    database().register("a", table)
    expected = [verdict for (verdict,) in database().execute(f"select {pair.ducks} from a").fetchall()]
    assert expected == verdicts(pair.ours, table), pair


SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=70, deadline=None)
@given(data=st.data(), seed=SEEDS)
def test_values_of_one_family_compare_as_in_duckdb(family: str, data: st.DataObject, seed: int) -> None:
    agree(data.draw(checks_of(FAMILIES[family])), seed)


@settings(max_examples=100, deadline=None)
@given(pair=likes(texts(1)), seed=SEEDS)
def test_like_matches_what_it_matches_in_duckdb(pair: Pair, seed: int) -> None:
    agree(pair, seed)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pair=conditions(2), seed=SEEDS)
def test_conditions_of_all_kinds_have_the_three_valued_result_of_duckdb(pair: Pair, seed: int) -> None:
    agree(pair, seed)
