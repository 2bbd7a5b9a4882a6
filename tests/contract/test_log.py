"""What every log keeps (`ports.Log`): order, fencing, repetition, trims, the map, and the spec in force."""

from collections.abc import Callable

import pytest

from joinery.machine.ports import Log, Stale
from joinery.model.errors import Bug
from joinery.model.ids import RecordNo, Term
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import KeptSpec
from tests.contract.samples import head, record, record_seen, stored_map

Connect = Callable[[], Log]
STREAMS = [{"name": name, "schema": {"k": "int64"}, "window": window} for name, window in (("a", "9s"), ("b", "1m"))]
SPEC = JoinQuerySpec.parse({"streams": STREAMS, "join": {"on": ["k"]}, "replicas": 3})


def numbers(log: Log) -> list[int]:
    return [number for number, _ in log.read()[1]]


def filled(connect: Connect, count: int) -> tuple[Log, Term]:
    """A log that one gateway wrote some records to."""
    log = connect()
    term = log.open(head(0), "g/1")
    for number in range(count):
        log.append(term, RecordNo(number), record(term, number))
    return log, term


def test_a_new_log_starts_with_the_head_it_is_given(connect_log: Connect) -> None:
    log = connect_log()
    log.open(head(0, stamp=3), "g/1")
    assert (head(0, stamp=3), []) == log.read()


def test_a_second_opening_keeps_the_head_that_is_there(connect_log: Connect) -> None:
    connect_log().open(head(0, stamp=3), "g/1")
    log = connect_log()
    log.open(head(0, stamp=8), "g/2")
    assert head(0, stamp=3) == log.read()[0]


def test_every_instance_gets_a_greater_term(connect_log: Connect) -> None:
    terms = [connect_log().open(head(0), f"g/{number}") for number in range(4)]
    assert sorted(set(terms)) == terms
    assert terms[0] > 0


def test_an_instance_that_opens_again_keeps_its_term(connect_log: Connect) -> None:
    log = connect_log()
    assert log.open(head(0), "g/1") == log.open(head(0), "g/1")


def test_a_late_repetition_of_an_opening_takes_nothing_back(connect_log: Connect) -> None:
    log, old = filled(connect_log, 1)
    newer = connect_log().open(head(0), "g/2")
    assert old == log.open(head(0), "g/1")
    connect_log().append(newer, RecordNo(1), record(newer, 1))
    with pytest.raises(Stale):
        log.append(old, RecordNo(2), record(old, 2))


def test_records_come_back_as_they_were_in_order(connect_log: Connect) -> None:
    log, term = filled(connect_log, 0)
    wanted = [record(term, 1, 2), record(term), record(term, 3)]
    for number, one in enumerate(wanted):
        log.append(term, RecordNo(number), one)
    found = connect_log().read()[1]
    assert [0, 1, 2] == [number for number, _ in found]
    assert list(map(record_seen, wanted)) == [record_seen(one) for _, one in found]


def test_a_repeated_append_has_no_effect(connect_log: Connect) -> None:
    log, term = filled(connect_log, 2)
    log.append(term, RecordNo(1), record(term, 1))
    assert [0, 1] == numbers(log)


def test_a_repeated_append_of_a_record_that_is_trimmed_has_no_effect(connect_log: Connect) -> None:
    log, term = filled(connect_log, 2)
    log.trim(term, head(2), RecordNo(2))
    log.append(term, RecordNo(1), record(term, 1))
    assert [] == numbers(log)


def test_a_gap_is_refused_loudly(connect_log: Connect) -> None:
    log, term = filled(connect_log, 1)
    with pytest.raises(Bug, match="2"):
        log.append(term, RecordNo(2), record(term, 2))
    assert [0] == numbers(log)


def test_a_record_of_a_former_term_is_not_overwritten(connect_log: Connect) -> None:
    _, old = filled(connect_log, 1)
    log = connect_log()
    term = log.open(head(0), "g/2")
    with pytest.raises(Bug):
        log.append(term, RecordNo(0), record(term, 9))
    assert [record_seen(record(old, 0))] == [record_seen(one) for _, one in log.read()[1]]


@pytest.mark.parametrize("call", ["append", "repeated append", "trim", "map", "spec"])
def test_a_gateway_that_was_replaced_writes_nothing(connect_log: Connect, call: str) -> None:
    log, old = filled(connect_log, 2)
    log.write_map(old, stored_map(1, "a", "a"))
    newer = connect_log().open(head(0), "g/2")
    calls = {
        "append": lambda: log.append(old, RecordNo(2), record(old, 2)),
        "repeated append": lambda: log.append(old, RecordNo(1), record(old, 1)),
        "trim": lambda: log.trim(old, head(1), RecordNo(1)),
        "map": lambda: log.write_map(old, stored_map(2, "a", "b")),
        "spec": lambda: log.write_spec(old, KeptSpec(1, SPEC)),
    }
    with pytest.raises(Stale) as refused:
        calls[call]()
    assert (newer, old) == (refused.value.held, refused.value.own)
    assert [0, 1] == numbers(log)
    assert head(0) == log.read()[0]
    assert stored_map(1, "a", "a") == log.read_map()
    assert log.read_spec() is None


def test_the_spec_in_force_is_kept_with_its_version_and_replaced(connect_log: Connect) -> None:
    log, term = filled(connect_log, 1)
    assert log.read_spec() is None
    for version in (1, 1, 2):
        log.write_spec(term, KeptSpec(version, SPEC))
    connect_log().open(head(0), "g/2", SPEC.model_copy(update={"replicas": 7}))
    assert KeptSpec(2, SPEC) == connect_log().read_spec()


def test_what_was_appended_before_the_takeover_is_read_after_it(connect_log: Connect) -> None:
    filled(connect_log, 3)
    log = connect_log()
    term = log.open(head(0), "g/2")
    log.append(term, RecordNo(3), record(term, 3))
    assert [0, 1, 2, 3] == numbers(log)


def test_a_trim_changes_the_head_and_drops_records_before_its_mark(connect_log: Connect) -> None:
    log, term = filled(connect_log, 5)
    log.trim(term, head(3), RecordNo(3))
    assert head(3) == log.read()[0]
    assert [3, 4] == numbers(log)


def test_a_trim_can_keep_records_from_before_the_head(connect_log: Connect) -> None:
    log, term = filled(connect_log, 5)
    log.trim(term, head(4), RecordNo(2))
    assert head(4) == log.read()[0]
    assert [2, 3, 4] == numbers(log)


def test_a_trim_never_goes_back(connect_log: Connect) -> None:
    log, term = filled(connect_log, 5)
    log.trim(term, head(4), RecordNo(4))
    log.trim(term, head(2), RecordNo(1))
    assert head(4) == log.read()[0]
    assert [4] == numbers(log)


def test_a_repeated_trim_has_no_effect(connect_log: Connect) -> None:
    log, term = filled(connect_log, 5)
    for _ in range(2):
        log.trim(term, head(3), RecordNo(2))
    assert (head(3), [2, 3, 4]) == (log.read()[0], numbers(log))


def test_a_trim_that_would_lose_records_is_refused_loudly(connect_log: Connect) -> None:
    log, term = filled(connect_log, 5)
    with pytest.raises(Bug):
        log.trim(term, head(2), RecordNo(3))
    assert (head(0), [0, 1, 2, 3, 4]) == (log.read()[0], numbers(log))


def test_numbers_go_on_after_everything_was_trimmed(connect_log: Connect) -> None:
    log, term = filled(connect_log, 2)
    log.trim(term, head(2), RecordNo(2))
    newer = connect_log().open(head(0), "g/2")
    with pytest.raises(Bug):
        log.append(newer, RecordNo(0), record(newer, 0))
    log.append(newer, RecordNo(2), record(newer, 2))
    assert (head(2), [2]) == (log.read()[0], numbers(log))


def test_there_is_no_map_at_first(connect_log: Connect) -> None:
    log, _ = filled(connect_log, 0)
    assert None is log.read_map()


def test_the_last_map_is_read(connect_log: Connect) -> None:
    log, term = filled(connect_log, 0)
    log.write_map(term, stored_map(1, "a", "a", "a"))
    log.write_map(term, stored_map(2, "a", "b", "a"))
    log.write_map(term, stored_map(2, "a", "b", "a"))
    assert stored_map(2, "a", "b", "a") == connect_log().read_map()


def test_a_map_that_was_written_does_not_change_with_the_writer_s_copy(connect_log: Connect) -> None:
    log, term = filled(connect_log, 0)
    mine = stored_map(1, "a", "b")
    log.write_map(term, mine)
    mine["owners"][0] = 1
    assert stored_map(1, "a", "b") == log.read_map()
