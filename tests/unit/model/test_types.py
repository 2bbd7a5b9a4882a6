import pyarrow as pa
import pytest

from joinery.model.complaints import BadValue
from joinery.model.types import PLAIN, Family, check_keys, parse_type


@pytest.mark.parametrize(
    ("name", "arrow", "family"),
    [
        ("int8", pa.int8(), Family.INTEGER),
        ("uint64", pa.uint64(), Family.INTEGER),
        ("float32", pa.float32(), Family.FLOAT),
        ("string", pa.string(), Family.TEXT),
        ("binary", pa.binary(), Family.BYTES),
        ("binary(16)", pa.binary(16), Family.BYTES),
        ("bool", pa.bool_(), Family.BOOLEAN),
        ("date", pa.date32(), Family.DATE),
        ("timestamp(ms)", pa.timestamp("ms"), Family.TIMESTAMP),
        ("timestamp(us, UTC)", pa.timestamp("us", "UTC"), Family.TIMESTAMP),
        ("timestamp(ns, +02:00)", pa.timestamp("ns", "+02:00"), Family.TIMESTAMP),
        ("timestamp(s, America/Port-au-Prince)", pa.timestamp("s", "America/Port-au-Prince"), Family.TIMESTAMP),
        ("decimal(38,38)", pa.decimal128(38, 38), Family.DECIMAL),
    ],
)
def test_a_name_means_one_arrow_type_and_one_family(name: str, arrow: pa.DataType, family: Family) -> None:
    parsed = parse_type(name)
    assert (name, arrow, family) == (parsed.name, parsed.arrow, parsed.family)


def test_spaces_inside_the_parentheses_do_not_matter() -> None:
    assert parse_type("decimal(10,2)") == parse_type("decimal( 10 , 2 )")
    assert parse_type("timestamp(us, UTC)") == parse_type("timestamp(us,UTC)")


def test_the_name_of_a_type_parses_to_the_same_type() -> None:
    names = [*PLAIN, "binary(7)", "timestamp(s)", "timestamp(ns, Asia/Tokyo)", "decimal(5,0)"]
    assert [parse_type(name) for name in names] == [parse_type(str(parse_type(name))) for name in names]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("boolean", "write bool"),
        ("double", "write float64"),
        ("Float", "write float32"),
        ("varchar", "write string"),
        ("timestamp", "write timestamp(us)"),
        ("decimal", "write decimal(18,2)"),
        ("int46", "write int64"),
    ],
)
def test_a_synonym_or_slip_is_refused_with_the_right_name(name: str, remedy: str) -> None:
    with pytest.raises(BadValue) as refused:
        parse_type(name)
    assert remedy == refused.value.remedy


@pytest.mark.parametrize(
    "name",
    [
        "", "int", "list<int64>", "int128", "binary(0)", "binary(99999999)", "binary(-1)", "binary(1,2)", "binary(x)",
        "timestamp(h)", "timestamp(us, )", "timestamp(us, U C)", "timestamp(us, UTC, x)", "timestamp()",
        "decimal(0,0)", "decimal(39,2)", "decimal(5,6)", "decimal(5)", "decimal(5,-1)", "decimal(٣,1)",
        "INT64", 7, None, True, ["int64"], {"type": "int64"}, float("nan"), "x" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_type_is_refused_with_found_wanted_and_remedy(name: object) -> None:
    with pytest.raises(BadValue) as refused:
        parse_type(name)
    assert all([refused.value.found, refused.value.wanted, refused.value.remedy])
    assert len(refused.value.found) < 200


@pytest.mark.parametrize(
    "names",
    [
        ["int8", "uint64"],
        ["int64", "decimal(20,2)"],
        ["decimal(10,2)", "decimal(38,10)"],
        ["string", "string", "string"],
        ["binary", "binary(4)"],
        ["timestamp(s)", "timestamp(ns)"],
        ["timestamp(us, UTC)", "timestamp(ms, Asia/Tokyo)"],
        ["date", "date"],
        ["bool", "bool"],
    ],
)
def test_keys_of_one_family_can_be_joined(names: list[str]) -> None:
    check_keys([parse_type(name) for name in names])


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["float64", "float64"], "not floats"),
        (["int64", "float32"], "not floats"),
        (["int64", "string"], "one family"),
        (["date", "timestamp(s)"], "one family"),
        (["binary", "string"], "one family"),
        (["bool", "int8"], "one family"),
        (["string", "decimal(5,2)"], "one family"),
        (["timestamp(us)", "timestamp(us, UTC)"], "timezone"),
        (["int64", "decimal(38,30)"], "38 digits"),
        (["decimal(38,0)", "decimal(38,38)"], "38 digits"),
    ],
)
def test_keys_that_have_no_common_form_are_refused(names: list[str], wanted: str) -> None:
    with pytest.raises(BadValue) as refused:
        check_keys([parse_type(name) for name in names])
    assert wanted in refused.value.wanted
