"""What every clock keeps (`ports.Clock`): whole nanoseconds since 1970."""

from joinery.machine.memory import MemoryClock
from joinery.machine.ports import Clock

YEAR_NS = 365 * 86_400_000_000_000


def test_time_is_whole_nanoseconds_of_this_age(clock: Clock) -> None:
    now = clock.now_ns()
    assert int is type(now)
    assert 50 * YEAR_NS < now < 146 * YEAR_NS


def test_a_memory_clock_stands_still_until_it_is_moved() -> None:
    clock = MemoryClock(5)
    assert [5, 5] == [clock.now_ns(), clock.now_ns()]
    clock.move(10)
    clock.move(-2)
    assert 13 == clock.now_ns()
