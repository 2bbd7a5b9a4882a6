import pytest

from joinery.flow.buffer_bound import peak_buffer
from joinery.flow.slot import SlotSchedule
from joinery.model.errors import UserMustAct
from joinery.model.ids import WorkerId
from joinery.partition.map import PartitionMap

WORKERS = 8
TICKS = 64
"""Ticks of an epoch; every slot of 1, 2, 4 or 8 sub-groups starts on one."""


def simulated_peak(*, rate: int, subgroups: int, epochs: int = 4) -> int:
    """A fluid: every tick `rate` bytes come for each worker; they leave at the start of its sub-group's slot."""
    pmap = PartitionMap.initial(WORKERS, [WorkerId(f"w{n}") for n in range(WORKERS)])
    schedule = SlotSchedule.of(pmap, subgroups=subgroups, epoch_ns=TICKS, start_ns=0)
    waiting = dict.fromkeys(pmap.workers, 0)
    peak = 0
    for tick in range(epochs * TICKS):
        peak = max(peak, sum(waiting.values()))
        slot = schedule.slot_at(tick)
        if slot.start_ns == tick:
            waiting |= dict.fromkeys(slot.workers, 0)
        waiting = {worker: held + rate for worker, held in waiting.items()}
    return peak


@pytest.mark.parametrize("n_g", [1, 2, 4, 8])
def test_the_bound_is_the_peak_of_a_simulated_gateway(n_g: int) -> None:
    assert peak_buffer(WORKERS * 100, TICKS, n_g) == simulated_peak(rate=100, subgroups=n_g)


def test_one_sub_group_holds_an_epoch_of_rows_and_many_hold_half_of_it() -> None:
    assert [3000.0, 2250.0, 1875.0] == [peak_buffer(1500, 2.0, n_g) for n_g in (1, 2, 4)]
    assert pytest.approx(1500, rel=1e-3) == peak_buffer(1500, 2.0, 10_000)


def test_every_bad_argument_is_named() -> None:
    with pytest.raises(
        UserMustAct, match=r"(?s)rate: found -1.*spec.epochs.distribution: found 0.*spec.epochs.subgroups"
    ):
        peak_buffer(-1, 0, 0)
