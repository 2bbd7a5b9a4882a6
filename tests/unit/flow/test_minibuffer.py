from typing import Any

import pytest

from joinery.flow.minibuffer import (
    CALM_EPOCHS,
    FORGET_EPOCHS,
    MAX_EPOCH_NS,
    MAX_FULL_BYTES,
    MIN_EPOCH_NS,
    AutoEpoch,
    Due,
    DueRule,
)
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


def lengths_ms(epoch: AutoEpoch, epochs: int, **how: Any) -> list[float]:
    """Every length in turn."""
    found = [epoch.length_ns / 1e6]
    for _ in range(epochs):
        epoch = epoch.after(**{"slot_ns": 10, "used_ns": 0, **how})
        if epoch.length_ns / 1e6 != found[-1]:
            found.append(epoch.length_ns / 1e6)
    return found


@pytest.mark.parametrize("how", [{"used_ns": 11}, {"piles_up": True}], ids=["late turns", "small messages pile up"])
def test_epochs_that_are_too_short_one_after_the_other_become_longer_up_to_their_bound(how: dict[str, Any]) -> None:
    assert [5, 7.5, 11.25, 16.875] == lengths_ms(AutoEpoch(), 3 * 5, **how)
    assert MAX_EPOCH_NS / 1e6 == lengths_ms(AutoEpoch(), 200, **how)[-1]


def test_one_epoch_that_was_too_short_now_and_then_changes_nothing_but_is_counted() -> None:
    epoch = AutoEpoch()
    for number in range(64):
        epoch = epoch.after(slot_ns=10, used_ns=11 if number % 8 == 0 else 0)
    assert (MIN_EPOCH_NS, 8) == (epoch.length_ns, epoch.overruns)


def test_a_length_that_was_too_short_is_not_tried_again_for_a_while() -> None:
    epoch = AutoEpoch(length_ns=20 * 10**6, too_short_ns=14 * 10**6)
    assert [20, 15] == lengths_ms(epoch, FORGET_EPOCHS)
    assert [20, 15, 11.25] == lengths_ms(epoch, FORGET_EPOCHS + CALM_EPOCHS)


def test_a_slot_that_is_just_used_up_is_no_overrun() -> None:
    assert 0 == AutoEpoch().after(slot_ns=10, used_ns=10).overruns


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
