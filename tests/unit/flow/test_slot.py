import pytest

from joinery.flow.slot import SlotSchedule
from joinery.model.errors import Bug, UserMustAct
from joinery.model.ids import WorkerId
from joinery.partition.map import PartitionMap

A, B, C, D = (WorkerId(name) for name in "abcd")


def schedule(*workers: WorkerId, subgroups: int = 2, epoch_ns: int = 10, start_ns: int = 0) -> SlotSchedule:
    pmap = PartitionMap.initial(60, workers)
    return SlotSchedule.of(pmap, subgroups=subgroups, epoch_ns=epoch_ns, start_ns=start_ns)


def test_workers_are_cut_into_sub_groups_in_their_fixed_order() -> None:
    assert ((A, B), (C, D)) == schedule(A, B, C, D).subgroups
    assert ((A,), (B, C)) == schedule(A, B, C).subgroups


def test_there_are_never_more_sub_groups_than_workers() -> None:
    assert ((A,), (B,)) == schedule(A, B, subgroups=8).subgroups


def test_membership_is_made_anew_with_the_map_version() -> None:
    old = PartitionMap.initial(60, [A, B])
    new = old.with_workers([A, B, C])
    laid = SlotSchedule.of(new, subgroups=3, epoch_ns=30, start_ns=0)
    assert (new.version, ((A,), (B,), (C,))) == (laid.version, laid.subgroups)


def test_a_time_lies_in_the_slot_of_its_part_of_the_epoch() -> None:
    #  100 [--- a ---) 105 [--- b ---) 110 [--- a ---) 115
    laid = schedule(A, B, start_ns=100)
    seen = [(slot.epoch, slot.index) for slot in map(laid.slot_at, (100, 104, 105, 109, 110))]
    assert [(0, 0), (0, 0), (0, 1), (0, 1), (1, 0)] == seen
    assert (105, 110, (B,)) == (laid.slot_at(107).start_ns, laid.slot_at(107).end_ns, laid.slot_at(107).workers)


def test_an_epoch_that_does_not_divide_evenly_has_no_gap() -> None:
    laid = schedule(A, B, C, subgroups=3, epoch_ns=10)
    assert [(0, 3), (3, 6), (6, 10)] == [(laid.slot(0, k).start_ns, laid.slot(0, k).end_ns) for k in range(3)]


def test_a_worker_delays_by_its_position_in_the_slot() -> None:
    laid = schedule(A, B, C)
    assert [(0, 0), (0, 5), (1, 7)] == [
        (laid.turn(worker, 0).position, laid.turn(worker, 0).start_ns) for worker in (A, B, C)
    ]


@pytest.mark.parametrize(("now_ns", "start_ns"), [(-50, 7), (0, 7), (7, 7), (8, 17), (17, 17), (18, 27)])
def test_the_next_turn_never_starts_before_now(now_ns: int, start_ns: int) -> None:
    assert start_ns == schedule(A, B, C).next_turn(C, now_ns).start_ns


@pytest.mark.parametrize(("now_ns", "boundary_ns"), [(0, 5), (5, 5), (6, 15), (15, 15), (16, 25)])
def test_schedules_change_where_an_epoch_starts(now_ns: int, boundary_ns: int) -> None:
    assert boundary_ns == schedule(A, start_ns=5).boundary_after(now_ns)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda laid: laid.slot(0, 2),
        lambda laid: laid.slot(-1, 0),
        lambda laid: laid.slot_at(-1),
        lambda laid: laid.turn(D, 0),
        lambda laid: SlotSchedule(version=laid.version, subgroups=((A,), ()), epoch_ns=10, start_ns=0),
        lambda laid: SlotSchedule(version=laid.version, subgroups=((A,), (A,)), epoch_ns=10, start_ns=0),
    ],
)
def test_what_a_schedule_does_not_have_is_a_bug(wrong) -> None:
    with pytest.raises(Bug):
        wrong(schedule(A, B))


def test_bad_epochs_are_refused_with_their_remedy() -> None:
    with pytest.raises(UserMustAct, match=r"spec.epochs.subgroups: found 0, wanted at least 1; leave it out for 2"):
        schedule(A, subgroups=0)
    with pytest.raises(UserMustAct, match=r"spec.epochs.distribution: found 1 ns, wanted .* 2 workers; use auto"):
        schedule(A, B, epoch_ns=1)
