"""The load report of an epoch: what a worker did, waited and was sent, in one clock."""

import pytest

from joinery.machine.facts import BatchJoined, StateMeasured
from joinery.machine.reporting import Meter
from joinery.model.ids import GroupId, WorkerId
from tests.unit.machine.building import SECOND, exchange, spec_of

MS = SECOND // 1000


@pytest.fixture
def meter() -> Meter:
    made = Meter(spec_of(worker={"buffer": "1Ki"}), WorkerId("worker-0"))
    made.begin(0)
    return made


def test_occupancy_is_the_mean_of_what_waited_before_each_message(meter: Meter) -> None:
    meter.arrived(0)
    meter.arrived(512)
    assert 0.25 == meter.report(StateMeasured(7, ((GroupId(2), 5),)), SECOND).occupancy


def test_work_is_counted_until_the_report_and_then_anew(meter: Meter) -> None:
    batch = exchange([0], -1, 0)
    meter.joined(batch, BatchJoined(batch, (), True, comparisons=11, busy_ns=SECOND // 2))
    first = meter.report(StateMeasured(7, (), cpu_ns=3 * MS), SECOND)
    second = meter.report(StateMeasured(7, (), cpu_ns=10 * MS), 3 * SECOND)
    assert (11, 0.5, 0.003, 1.0, 7) == (first.comparisons, first.busy, first.cpu_s, first.elapsed_s, first.window_bytes)
    assert (0, 0.0, 0.007, 2.0) == (second.comparisons, second.busy, second.cpu_s, second.elapsed_s)


def test_the_oldest_row_is_that_of_the_last_report(meter: Meter) -> None:
    for oldest in (None, 5, None):
        meter.report(StateMeasured(0, (), oldest_ns=oldest), SECOND)
        assert oldest == meter.oldest_ns


def test_idle_is_the_time_without_anything_to_join_also_across_reports(meter: Meter) -> None:
    meter.has_work(True, 100 * MS)
    meter.has_work(True, 200 * MS)
    meter.has_work(False, 400 * MS)
    assert 0.7 == meter.report(StateMeasured(0, ()), SECOND).idle_s
    meter.has_work(True, SECOND + 50 * MS)
    assert 0.05 == meter.report(StateMeasured(0, ()), 2 * SECOND).idle_s


def test_communication_counts_from_the_slot_to_the_last_message_and_overlaps_once(meter: Meter) -> None:
    meter.arrived(0, slot_ns=10 * MS, here_ns=15 * MS)
    meter.arrived(0, slot_ns=10 * MS, here_ns=18 * MS)  # a second message in the same slot
    meter.arrived(0, slot_ns=17 * MS, here_ns=20 * MS)  # the next slot began before the last message was here
    meter.arrived(0, slot_ns=30 * MS, here_ns=29 * MS)  # a clock that is wrong
    meter.arrived(0)  # not told
    assert 0.010 == meter.report(StateMeasured(0, ()), SECOND).comm_s
