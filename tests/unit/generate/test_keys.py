"""Uniform keys, and the shuffle that spreads hot ones."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from joinery.generate.keys import ShuffledKeys, UniformKeys, keys_between
from joinery.generate.zipf import ZipfKeys

RARE = 1e-4  # some 40 such checks stand in this folder: together a false alarm is still below 1 %


def test_uniform_keys_are_uniform() -> None:
    assert stats.chisquare(np.bincount(keys_between(UniformKeys(1000), 1, 0, 200_000), minlength=1000)).pvalue > RARE


@settings(deadline=None)
@given(domain=st.integers(1, 3000), seed=st.integers(0, 2**64 - 1))
def test_a_shuffle_is_a_permutation(domain: int, seed: int) -> None:
    renamed = ShuffledKeys(UniformKeys(domain), seed).rename(np.arange(domain))
    assert list(range(domain)) == sorted(renamed.tolist())


def test_a_shuffle_spreads_the_hot_keys_over_the_domain() -> None:
    domain = 10**6
    hottest = ShuffledKeys(ZipfKeys(domain, 1.0), 5).rename(np.arange(1000))
    assert stats.kstest(hottest / domain, "uniform").pvalue > RARE
    assert abs(stats.spearmanr(np.arange(1000), hottest).statistic) < 0.1


def test_a_shuffle_keeps_the_frequencies() -> None:
    plain, shuffled = (
        keys_between(keys, 3, 0, 50_000) for keys in (ZipfKeys(100, 1.0), ShuffledKeys(ZipfKeys(100, 1.0), 9))
    )
    assert sorted(np.bincount(plain)) == sorted(np.bincount(shuffled))
    assert np.bincount(plain).tolist() != np.bincount(shuffled).tolist()


def test_two_streams_share_their_hot_keys_but_not_their_rows() -> None:
    keys = ShuffledKeys(ZipfKeys(1000, 1.5), 7)
    one, other = (keys_between(keys, seed, 0, 20_000) for seed in (1, 2))
    assert np.bincount(one).argmax() == np.bincount(other).argmax()
    assert np.any(one != other)


def test_different_shuffles_differ() -> None:
    one, other = (ShuffledKeys(UniformKeys(1000), seed).rename(np.arange(1000)) for seed in (1, 2))
    assert np.count_nonzero(one == other) < 20
