"""Counter-based randomness: lanes never meet, and cutting loses nothing."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.generate.draws import Lane, hash_below, recut, rng_at


def test_every_seed_lane_chunk_and_sub_lane_has_its_own_numbers() -> None:
    places = [
        (seed, lane, number, sub)
        for seed in (0, 1, 2**64 - 1)
        for lane in Lane
        for number in range(3)
        for sub in (0, 1)
    ]
    firsts = {tuple(rng_at(*place).integers(0, 2**63, 2)) for place in places}
    assert len(places) == len(firsts)


def test_the_same_place_gives_the_same_numbers() -> None:
    np.testing.assert_array_equal(rng_at(7, Lane.KEYS, 3).random(10), rng_at(7, Lane.KEYS, 3).random(10))


def test_numbers_of_neighbouring_chunks_are_not_correlated() -> None:
    one, other = (rng_at(1, Lane.KEYS, number).random(50_000) for number in (0, 1))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.02


def test_hashes_fill_their_bound_evenly() -> None:
    counts = np.bincount(hash_below(5, Lane.LINEAR_ROAD, 0, np.arange(100_000), 10))
    assert 10 == counts.size
    assert abs(counts - 10_000).max() < 500


@settings(deadline=None)
@given(sizes=st.lists(st.integers(0, 20)), size=st.integers(1, 15), skip=st.integers(0, 60))
def test_recutting_keeps_every_column_in_order_and_makes_equal_pieces(sizes: list[int], size: int, skip: int) -> None:
    whole = np.arange(2 * sum(sizes)).reshape(2, -1)
    pieces = np.split(whole, np.cumsum(sizes)[:-1], axis=1) if sizes else []
    cut = list(recut(pieces, size, skip=skip))
    assert all(piece.shape[1] == size for piece in cut[:-1])
    assert all(0 < piece.shape[1] <= size for piece in cut[-1:])
    np.testing.assert_array_equal(whole[:, skip:], np.concatenate([whole[:, :0], *cut], axis=1))
