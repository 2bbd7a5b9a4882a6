"""What a soak calls growth."""

import numpy as np

from tests.chaos.soak import FREE_BYTES, growth, slope


def test_a_few_odd_samples_change_no_slope() -> None:
    levels = [5.0 + 2 * at for at in range(40)]
    levels[7], levels[20] = 900.0, -900.0
    assert 2.0 == slope(range(40), levels)


def test_memory_that_fills_at_first_and_then_breathes_is_steady() -> None:
    rng = np.random.default_rng(1)
    levels = [min(at, 50) * 2**20 + int(rng.integers(0, 2**21)) for at in range(300)]
    assert not growth("worker-0", list(range(300)), levels).is_wrong


def test_memory_that_leaks_in_the_second_half_is_found() -> None:
    leak = 2 * FREE_BYTES / 150
    levels = [100 * 2**20 + int(leak * at) for at in range(300)]
    assert growth("worker-0", list(range(300)), levels).is_wrong
