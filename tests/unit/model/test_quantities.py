import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.model.complaints import BadValue
from joinery.model.quantities import (
    MAX_BYTES,
    MAX_COUNT,
    UNBOUNDED_WINDOW,
    CountWindow,
    Nanoseconds,
    TimeWindow,
    format_duration,
    format_size,
    format_window,
    parse_duration,
    parse_size,
    parse_window,
)
from joinery.model.time import UNBOUNDED


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0s", 0),
        ("1ns", 1),
        ("200ms", 200_000_000),
        ("10m", 600_000_000_000),
        ("1h30m", 5_400_000_000_000),
        ("1.5s", 1_500_000_000),
        ("2d", 172_800_000_000_000),
        ("1s500ms", 1_500_000_000),
        ("3us", 3_000),
        ("53375d", 53_375 * 86_400_000_000_000),
    ],
)
def test_a_duration_is_a_number_with_its_unit(text: str, nanoseconds: int) -> None:
    assert nanoseconds == parse_duration(text)


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        (10, "add the unit: 10s, 10ms"),
        ("10", "add the unit: 10s, 10ms"),
        (1.5, "add the unit: 1.5s, 1.5ms"),
        ("-5s", "a duration cannot be negative; 0s is the smallest"),
        ("unbounded", "only a window can be unbounded; write a duration here"),
        ("60000d", "write unbounded for a window that never ends"),
        ("5 s", "use the units d, h, m, s, ms, us, ns, without spaces"),
        ("30m1h", "write for example 1h30m"),
        ("1m1m", "write for example 1h30m"),
        ("0.1ns", "take off the digits that are smaller than 1ns"),
    ],
)
def test_a_duration_that_cannot_be_read_is_refused_with_its_remedy(value: object, remedy: str) -> None:
    with pytest.raises(BadValue) as refused:
        parse_duration(value)
    assert remedy == refused.value.remedy


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "",
        "s",
        "10x",
        "\u0661s",
        -5,
        float("nan"),
        float("inf"),
        [],
        {},
        10**400,
        "9" * 5000 + "s",
        "1" * 25 + "d",
    ],
)
def test_nonsense_is_no_duration_no_size_and_no_window(value: object) -> None:
    for parse in (parse_duration, parse_size, parse_window):
        with pytest.raises(BadValue) as refused:
            parse(value)
        assert all([refused.value.found, refused.value.wanted, refused.value.remedy])


def test_the_longest_duration_is_just_below_two_to_the_62_nanoseconds() -> None:
    assert UNBOUNDED - 1 == parse_duration(f"{UNBOUNDED - 1}ns")
    with pytest.raises(BadValue):
        parse_duration(f"{UNBOUNDED}ns")


@given(st.integers(0, UNBOUNDED - 1))
def test_a_duration_written_out_is_read_back(nanoseconds: int) -> None:
    assert nanoseconds == parse_duration(format_duration(nanoseconds))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64Mi", 67_108_864),
        ("1.5Mi", 1_572_864),
        ("4Ki", 4096),
        ("2Gi", 2**31),
        ("1M", 10**6),
        ("1k", 1000),
        ("0.3k", 300),
        ("0Ki", 0),
    ],
)
def test_a_size_is_a_number_of_bytes_with_its_unit(text: str, size: int) -> None:
    assert size == parse_size(text)


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        (5, "add the unit: 5Ki, 5Mi"),
        ("5", "add the unit: 5Ki, 5Mi"),
        ("-1Mi", "a size cannot be negative"),
        ("4KiB", "use the units Ki, Mi, Gi, Ti (or k, M, G, T for powers of 1000), without B and without spaces"),
        ("0.0001k", "use a smaller unit"),
        ("2000Ti", "use a smaller number"),
    ],
)
def test_a_size_that_cannot_be_read_is_refused_with_its_remedy(value: object, remedy: str) -> None:
    with pytest.raises(BadValue) as refused:
        parse_size(value)
    assert remedy == refused.value.remedy


@given(st.integers(0, MAX_BYTES))
def test_a_size_written_out_is_read_back(size: int) -> None:
    assert size == parse_size(format_size(size))


def test_a_window_is_a_time_a_count_or_unbounded() -> None:
    assert TimeWindow(Nanoseconds(600_000_000_000)) == parse_window("10m")
    assert TimeWindow(Nanoseconds(0)) == parse_window("0s")
    assert CountWindow(1000) == parse_window({"count": 1000})
    assert UNBOUNDED_WINDOW == parse_window("unbounded")
    assert UNBOUNDED == UNBOUNDED_WINDOW.length_ns
    assert [True, False] == [UNBOUNDED_WINDOW.is_unbounded, TimeWindow(Nanoseconds(5)).is_unbounded]


@pytest.mark.parametrize(
    "value",
    [{}, {"count": 0}, {"count": -1}, {"count": True}, {"count": 1.5}, {"count": "5"}, {"count": MAX_COUNT + 1},
     {"count": 5, "time": "5s"}, {"rows": 5}, "forever", {"count": None}, {1: 2}],
)  # fmt: skip
def test_a_window_that_cannot_be_read_is_refused(value: object) -> None:
    with pytest.raises(BadValue) as refused:
        parse_window(value)
    assert all([refused.value.found, refused.value.wanted, refused.value.remedy])


def test_a_window_that_wants_to_be_endless_is_told_how_to_write_that() -> None:
    with pytest.raises(BadValue, match="write unbounded"):
        parse_window("forever")


@given(
    st.one_of(
        st.integers(0, UNBOUNDED).map(lambda ns: TimeWindow(Nanoseconds(ns))),
        st.integers(1, MAX_COUNT).map(CountWindow),
    )
)
def test_a_window_written_out_is_read_back(window: TimeWindow | CountWindow) -> None:
    assert window == parse_window(format_window(window))
