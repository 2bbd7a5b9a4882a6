"""Slot schedules over random numbers of workers, sub-groups and epochs."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.flow.buffer_bound import peak_buffer
from joinery.flow.slot import SlotSchedule
from joinery.model.ids import WorkerId
from joinery.partition.map import PartitionMap

QUICK = settings(max_examples=200, deadline=None)


@st.composite
def schedules(draw: st.DrawFn) -> SlotSchedule:
    workers = [WorkerId(f"w{n}") for n in range(draw(st.integers(1, 20)))]
    return SlotSchedule.of(
        PartitionMap.initial(60, workers),
        subgroups=draw(st.integers(1, 25)),
        epoch_ns=draw(st.one_of(st.integers(20, 200), st.integers(5_000_000, 2_000_000_000))),
        start_ns=draw(st.integers(0, 2**61)),
    )


@QUICK
@given(schedules(), st.integers(0, 1000))
def test_slots_fill_the_epoch_without_overlap_and_serve_every_worker_once(laid: SlotSchedule, epoch: int) -> None:
    slots = [laid.slot(epoch, index) for index in range(laid.n_g)]
    begin = laid.start_ns + epoch * laid.epoch_ns
    assert (begin, begin + laid.epoch_ns) == (slots[0].start_ns, slots[-1].end_ns)
    assert all(one.end_ns == next_.start_ns for one, next_ in pairwise(slots))
    lengths = [slot.end_ns - slot.start_ns for slot in slots]
    assert max(lengths) - min(lengths) <= 1
    served = [worker for slot in slots for worker in slot.workers]
    assert len(set(served)) == len(served)
    assert {f"w{n}" for n in range(len(served))} == set(served)
    sizes = [len(slot.workers) for slot in slots]
    assert 1 <= min(sizes)
    assert max(sizes) - min(sizes) <= 1


@QUICK
@given(schedules(), st.integers(0, 10**12))
def test_a_time_lies_inside_its_slot(laid: SlotSchedule, later_ns: int) -> None:
    now_ns = laid.start_ns + later_ns
    slot = laid.slot_at(now_ns)
    assert slot.start_ns <= now_ns < slot.end_ns
    assert slot == laid.slot(slot.epoch, slot.index)
    assert slot == laid.slot_at(slot.end_ns - 1)


@QUICK
@given(st.data(), schedules(), st.integers(-(10**6), 10**12))
def test_a_worker_waits_at_most_an_epoch_for_its_turn_in_its_own_slot(data, laid: SlotSchedule, later_ns: int) -> None:
    now_ns = laid.start_ns + later_ns
    worker = data.draw(st.sampled_from([name for members in laid.subgroups for name in members]))
    turn = laid.next_turn(worker, now_ns)
    assert now_ns <= turn.start_ns < max(now_ns, laid.start_ns) + laid.epoch_ns
    assert turn.slot.start_ns <= turn.start_ns < turn.slot.end_ns
    assert worker == turn.slot.workers[turn.position]
    others = [laid.turn(name, turn.slot.epoch) for name in turn.slot.workers]
    assert sorted(other.start_ns for other in others) == [other.start_ns for other in others]


@QUICK
@given(schedules(), st.integers(-(10**6), 10**12))
def test_a_schedule_changes_at_the_next_start_of_an_epoch(laid: SlotSchedule, later_ns: int) -> None:
    now_ns = laid.start_ns + later_ns
    boundary_ns = laid.boundary_after(now_ns)
    assert 0 == (boundary_ns - laid.start_ns) % laid.epoch_ns
    assert max(now_ns, laid.start_ns) <= boundary_ns < max(now_ns, laid.start_ns) + laid.epoch_ns


@QUICK
@given(st.integers(0, 10**9), st.integers(1, 10**6), st.integers(1, 64))
def test_the_bound_is_the_papers_sum(rate: int, t_d: int, n_g: int) -> None:
    summed = sum(rate * (t_d * (n_g - k)) / n_g / n_g for k in range(n_g))
    assert abs(summed - peak_buffer(rate, t_d, n_g)) <= 1e-9 * max(1.0, summed)
