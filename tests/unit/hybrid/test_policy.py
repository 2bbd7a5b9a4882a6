import numpy as np

from joinery.hybrid import policy
from joinery.hybrid.config import HybridConfig
from joinery.hybrid.policy import KEPT, NOT_KEPT, Units

RULES = HybridConfig(
    wait_bytes=640, block_bytes=64, invoke_rows=3, alpha=0.5, epoch_rows=4, rho=0.25, free_share=0.4,
    high_mark_blocks=4, low_mark_blocks=1,
).rules()  # fmt: skip


def units_of(*sizes: int, memory: int = 100) -> Units:
    units = policy.no_units(len(sizes), memory)
    units.size[:] = sizes
    return units


def test_a_frequency_grows_with_each_row_and_decays_after_an_epoch() -> None:
    units = units_of(1, 1)
    for unit in (0, 0, 1, 0):
        policy.note_arrival(units, RULES, unit)
    #  C <- alpha (C + c): 0.5 (0 + 3), 0.5 (0 + 1)
    assert [1.5, 0.5] == units.frequency.tolist()
    for unit in (1, 1, 1, 1):
        policy.note_arrival(units, RULES, unit)
    assert [0.75, 0.5 * (0.5 + 4)] == units.frequency.tolist()


def test_waiting_rows_take_whole_blocks_of_the_pool() -> None:
    units = units_of(1, 1)
    filled = [policy.put(units, RULES, 0, 32, 7) for _ in range(3)] + [policy.put(units, RULES, 1, 1, 8)]
    assert [False, True, False, False] == filled
    assert [2, 1] == units.blocks.tolist()
    assert 3 == units.totals[policy.USED]
    assert [7, 8] == units.oldest.tolist()


def test_what_is_being_read_counts_as_free_and_is_not_asked_for_again() -> None:
    units = units_of(1, 1)
    for unit in (0, 0, 1):
        policy.put(units, RULES, unit, 64, 0)
    assert 0 == policy.largest(units)
    policy.ask(units, RULES, 0)
    assert 1 == policy.largest(units)
    assert 1 == units.totals[policy.USED]
    policy.put(units, RULES, 0, 64, 0)
    assert 1 == units.totals[policy.USED]
    policy.empty(units, RULES, 0)
    assert [0, 1] == units.rows.tolist()
    assert 1 == units.totals[policy.USED]


def test_few_rows_that_have_waited_for_long_come_before_many_that_have_just_come() -> None:
    units = units_of(1, 1, 1)
    for unit, now in ((0, 10), (1, 90), (1, 90), (1, 90)):
        policy.put(units, RULES, unit, 1, now)
    assert [1, 0, 1] == [policy.largest(units), policy.most_delayed(units, 110), policy.most_delayed(units, 200)]
    policy.ask(units, RULES, 0)
    assert 1 == policy.most_delayed(units, 110)
    policy.ask(units, RULES, 1)
    assert -1 == policy.most_delayed(units, 110)


def test_a_unit_is_due_from_n_invoke_waiting_rows_until_it_is_asked_for() -> None:
    units = units_of(1)
    due = []
    for _ in range(4):
        policy.put(units, RULES, 0, 1, 0)
        due.append(int(units.totals[policy.DUE]))
    policy.ask(units, RULES, 0)
    assert ([0, 0, 1, 1], 0) == (due, int(units.totals[policy.DUE]))


def test_a_segment_that_fits_is_kept_without_a_victim() -> None:
    units = units_of(60, 40)
    assert [KEPT, KEPT] == [policy.keep(units, RULES, unit) for unit in (0, 1)]
    assert 0 == units.totals[policy.FREE]


def test_a_victim_must_be_asked_for_less_per_byte_by_rho() -> None:
    units = units_of(80, 40)
    policy.keep(units, RULES, 0)
    #  6.1: C_1 >= 40 / 80 (1 + 0.25) C_0 = 6.25
    units.frequency[:] = 10.0, 6.24
    assert NOT_KEPT == policy.keep(units, RULES, 1)
    units.frequency[1] = 6.25
    assert 0 == policy.keep(units, RULES, 1)
    assert [False, True] == units.held.tolist()
    assert 60 == units.totals[policy.FREE]


def test_a_victim_must_make_enough_room_alone() -> None:
    units = units_of(40, 40, 70)
    policy.keep(units, RULES, 0)
    policy.keep(units, RULES, 1)
    units.frequency[:] = 0.0, 0.0, 100.0
    #  6.2: 20 free + 40 < 70
    assert NOT_KEPT == policy.keep(units, RULES, 2)


def test_of_several_victims_the_one_asked_for_least_per_byte_goes() -> None:
    units = units_of(40, 60, 40)
    policy.keep(units, RULES, 0)
    policy.keep(units, RULES, 1)
    units.frequency[:] = 3.0, 4.0, 100.0
    assert 1 == policy.keep(units, RULES, 2)


def test_block_mode_begins_above_the_high_mark_and_ends_below_the_low_mark() -> None:
    units = units_of(1)
    modes = []
    for backlog in (256, 257, 64, 63):
        goes_back = policy.switch(units, RULES, backlog)
        modes.append((int(units.totals[policy.MODE]), bool(goes_back)))
    assert [(policy.TUPLE, False), (policy.BLOCK, False), (policy.BLOCK, False), (policy.TUPLE, True)] == modes


def test_rows_of_a_segment_in_memory_are_joined_at_once_in_tuple_mode_and_by_blocks_in_block_mode() -> None:
    units = units_of(1, 1)
    policy.keep(units, RULES, 0)
    of, sizes = np.zeros(5, np.int32), np.full(5, 32, np.int64)
    joined = np.full(2, -1, np.int64)
    assert (5, 0) == policy.admit(units, RULES, of, sizes, 0, 160, 0, joined)
    assert ([4, -1], 0) == (joined.tolist(), int(units.rows[0]))
    units.totals[policy.MODE] = policy.BLOCK
    joined[:] = -1
    policy.admit(units, RULES, of, sizes, 0, 1000, 0, joined)
    assert ([3, -1], 1) == (joined.tolist(), int(units.rows[0]))


def test_rows_are_admitted_until_the_pool_is_full() -> None:
    units = units_of(1, 1)
    of, sizes = np.zeros(30, np.int32), np.full(30, 64, np.int64)
    end, _ = policy.admit(units, RULES, of, sizes, 0, 30 * 64, 0, np.full(2, -1, np.int64))
    assert 10 == end
    assert policy.is_full(units, RULES)
