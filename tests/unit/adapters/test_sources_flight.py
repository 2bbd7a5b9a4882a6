"""What a source has under way, and rows in time: both without threads and clocks."""

import numpy as np
import pyarrow as pa
import pytest

from joinery.adapters.sources.flight import IN_FLIGHT, Flight
from joinery.adapters.sources.pacing import TICK_S, PacedReader, paced
from joinery.adapters.sources.pieces import Pause, Piece
from joinery.adapters.sources.redis_stream import id_before, place_of
from joinery.machine.messages import Acknowledge, Opened, Refuse
from joinery.model.errors import Bug, UserMustAct
from joinery.model.ids import ProducerId, RecordNo, Term
from tests.unit.machine.building import plan_of

SECOND = 1_000_000_000


def opened(expected: int | None = None, *, ended: bool = False) -> Flight:
    flight = Flight()
    flight.hear(Opened(Term(1), ProducerId("source"), 3, expected, ended))
    return flight


def test_a_session_says_where_to_begin() -> None:
    flight = opened(500)
    assert (3, 500, False, True) == (flight.session, flight.position, flight.ended, flight.room)
    assert opened(500, ended=True).ended
    assert opened().position is None


def test_no_more_is_under_way_than_fits() -> None:
    flight = opened()
    for number in range(IN_FLIGHT):
        assert flight.room
        flight.depart(10 * number, 10 * number + 10)
    assert not flight.room
    with pytest.raises(Bug):
        flight.depart(80, 90)
    flight.hear(Acknowledge(10, RecordNo(0)))
    assert IN_FLIGHT - 2 == flight.under_way


def test_the_end_is_there_when_everything_before_it_is_recorded() -> None:
    flight = opened()
    flight.depart(0, 10)
    flight.depart(10, 10, end=True)
    flight.hear(Acknowledge(0, RecordNo(0)))
    assert not flight.ended
    flight.hear(Acknowledge(10, RecordNo(1)))
    assert flight.ended


def test_a_refusal_with_a_sequence_goes_back_there_once() -> None:
    flight = opened(0)
    for at in (0, 10, 20, 30):
        flight.depart(at, at + 10)
    flight.hear(Refuse(20, "a gap", 10))
    assert (10, 1, 1) == (flight.position, flight.turns, flight.under_way)
    flight.hear(Refuse(30, "a gap", 10))
    assert 1 == flight.turns
    flight.depart(10, 40)
    flight.hear(Acknowledge(10, RecordNo(0)))
    assert 0 == flight.under_way


def test_a_refusal_without_a_sequence_is_the_end() -> None:
    with pytest.raises(UserMustAct, match="too bad"):
        opened(0).hear(Refuse(0, "too bad"))


def test_a_gateway_that_is_ahead_of_the_source_means_somebody_else_sends() -> None:
    with pytest.raises(UserMustAct, match="another producer"):
        opened(0).hear(Refuse(0, "", 99))


# --- rows in time


class Fixed:
    """A reader of given times (seconds)."""

    title = "fixed"

    def __init__(self, *times: list[float]) -> None:
        self._times = times

    def check(self) -> None: ...

    def read(self, start: int | None) -> "list[Piece]":  # an iterable is enough here
        at, found = start or 0, []
        for times in self._times:
            stamps = np.array([int(time * SECOND) for time in times])
            found.append(Piece(at, at + len(times), pa.RecordBatch.from_pydict({"ts": stamps}), stamps))
            at += len(times)
        return found


def play(*times: list[float], slow_s: float = 0.0) -> tuple[list[tuple[float, int, int]], int]:
    """When (in virtual time) which rows were sent; and how many pauses were made."""
    now, sent, pauses = 100.0, [], 0
    reader = PacedReader(Fixed(*times), plan_of().formats[0], now_s=lambda: now)  # type: ignore[arg-type]
    for one in reader.read(None):
        if isinstance(one, Pause):
            now, pauses = now + one.seconds, pauses + 1
        else:
            assert one.next_sequence - one.sequence == one.rows.num_rows
            sent.append((round(now - 100, 6), one.sequence, one.next_sequence))
            now += slow_s
    return sent, pauses


def test_rows_are_as_far_apart_as_their_times() -> None:
    assert [(0, 0, 1), (1, 1, 2), (1.5, 2, 3)] == play([5, 6, 6.5])[0]


def test_with_a_start_time_zero_is_due_then_and_rows_that_are_behind_go_at_once() -> None:
    clock, sent = [100.0], []
    pieces = Fixed([0.5, 1, 3]).read(None)
    for one in paced(pieces, plan_of().formats[0], (0, 99.0), now_s=lambda: clock[0]):
        if isinstance(one, Pause):
            clock[0] += one.seconds
        else:
            sent.append((round(clock[0] - 99, 6), one.next_sequence))
    assert [(1, 2), (3, 3)] == sent


def test_rows_of_a_moment_go_together_and_the_count_of_pushes_is_bounded() -> None:
    sent, pauses = play(list(np.linspace(0, 1, 10_001)))
    assert 10_001 == sent[-1][2]
    assert len(sent) <= 1 / TICK_S + 2
    assert pauses <= 1 / TICK_S + 2


def test_no_row_is_early_and_none_waits_longer_than_a_tick() -> None:
    times = np.sort(np.random.default_rng(1).random(500)) * 3
    times -= times[0]
    for at, first, after in play(times[:200].tolist(), times[200:].tolist())[0]:
        assert times[after - 1] <= at + 1e-6
        assert at <= times[first] + TICK_S + 1e-6


def test_an_older_row_is_due_at_once() -> None:
    assert [(0, 0, 1), (2, 1, 3), (3, 3, 4)] == play([5, 7, 6], [8])[0]


def test_a_query_that_cannot_follow_gets_everything_that_is_due() -> None:
    sent, _ = play([0, 1, 2, 3, 4, 5], slow_s=3)
    assert [(0, 0, 1), (3.01, 1, 4), (6.02, 4, 6)] == sent


# --- ids of a Redis Stream


@pytest.mark.parametrize("entry", [b"0-1", b"5-0", b"1700000000000-0", b"1700000000000-1048575"])
def test_an_id_is_a_place_and_what_lies_before_it_is_read_already(entry: bytes) -> None:
    place = place_of(entry)
    assert place < 2**63
    assert entry.decode() == id_before(place + 1)
    ms, number = (int(part) for part in entry.decode().split("-"))
    before = tuple(int(part) for part in id_before(place).split("-"))
    assert before < (ms, number)


def test_places_are_in_the_order_of_ids() -> None:
    ids = [b"0-1", b"0-2", b"1-0", b"1-9", b"20-3"]
    assert sorted(map(place_of, ids)) == [place_of(entry) for entry in ids]
    assert "0-0" == id_before(0)


@pytest.mark.parametrize("entry", [b"5-1048576", b"9000000000000000-0"])
def test_an_id_that_does_not_fit_is_refused(entry: bytes) -> None:
    with pytest.raises(UserMustAct, match="XADD key"):
        place_of(entry)
