import pytest

from joinery.flow.minibuffer import CALM_EPOCHS, MAX_EPOCH_NS, MAX_FULL_BYTES, MIN_EPOCH_NS, AutoEpoch, Due, DueRule
from joinery.model.errors import Bug

MIB = 1 << 20


@pytest.mark.parametrize(
    ("waiting_bytes", "oldest_ns", "now_ns", "due"),
    [
        (0, None, 10**9, Due.NOT_YET),
        (1, 100, 104, Due.NOT_YET),
        (1, 100, 105, Due.OLD),
        (2 * MIB - 1, 100, 100, Due.NOT_YET),
        (2 * MIB, 100, 100, Due.FULL),
        (2 * MIB, 100, 105, Due.FULL),
    ],
)
def test_rows_are_due_when_enough_wait_or_the_oldest_is_old(
    waiting_bytes: int, oldest_ns: int | None, now_ns: int, due: Due
) -> None:
    rule = DueRule(max_age_ns=5, full_bytes=2 * MIB)
    assert due == rule.due(waiting_bytes=waiting_bytes, oldest_ns=oldest_ns, now_ns=now_ns)


@pytest.mark.parametrize("full_bytes", [MIB - 1, MAX_FULL_BYTES + 1])
def test_full_is_one_to_four_megabytes(full_bytes: int) -> None:
    with pytest.raises(Bug, match="full_bytes"):
        DueRule(max_age_ns=5, full_bytes=full_bytes)


def test_an_age_of_nothing_is_a_bug() -> None:
    with pytest.raises(Bug, match="max_age_ns"):
        DueRule(max_age_ns=0)


def test_an_overrun_is_counted_and_doubles_the_epoch_up_to_its_bound() -> None:
    epoch, lengths = AutoEpoch(), []
    for _ in range(7):
        epoch = epoch.after(slot_ns=10, used_ns=11)
        lengths.append(epoch.length_ns // 10**6)
    assert [10, 20, 40, 80, 160, 200, 200] == lengths
    assert 7 == epoch.overruns


def test_a_slot_that_is_just_used_up_is_no_overrun() -> None:
    assert AutoEpoch() == AutoEpoch().after(slot_ns=10, used_ns=10)


def test_a_long_calm_shortens_the_epoch_by_a_quarter() -> None:
    epoch = AutoEpoch(length_ns=MAX_EPOCH_NS)
    for _ in range(CALM_EPOCHS - 1):
        epoch = epoch.after(slot_ns=10, used_ns=5)
    assert MAX_EPOCH_NS == epoch.length_ns
    assert MAX_EPOCH_NS * 3 // 4 == epoch.after(slot_ns=10, used_ns=5).length_ns


def test_one_busy_slot_ends_a_calm() -> None:
    epoch = AutoEpoch(length_ns=MAX_EPOCH_NS, calm=CALM_EPOCHS - 1)
    assert AutoEpoch(length_ns=MAX_EPOCH_NS) == epoch.after(slot_ns=10, used_ns=6)


def test_the_epoch_never_falls_below_its_bound() -> None:
    epoch = AutoEpoch(calm=CALM_EPOCHS - 1)
    assert MIN_EPOCH_NS == epoch.after(slot_ns=10, used_ns=0).length_ns


@pytest.mark.parametrize(
    ("fixed_ns", "per_ms_ns"), [(3_000_000, 0), (8_000_000, 100_000), (500_000, 450_000), (0, 10**7)]
)
def test_a_steady_load_makes_the_epoch_settle(fixed_ns: int, per_ms_ns: int) -> None:
    #  A slot costs something fixed and something for the rows of its epoch; two slots in an epoch.
    epoch, lengths = AutoEpoch(), []
    for _ in range(20 * CALM_EPOCHS):
        used_ns = fixed_ns + per_ms_ns * epoch.length_ns // 10**6
        epoch = epoch.after(slot_ns=epoch.length_ns // 2, used_ns=used_ns)
        lengths.append(epoch.length_ns)
    assert {lengths[-1]} == set(lengths[10 * CALM_EPOCHS :])


def test_a_length_outside_its_bounds_is_a_bug() -> None:
    with pytest.raises(Bug, match="length_ns"):
        AutoEpoch(length_ns=MIN_EPOCH_NS - 1)
