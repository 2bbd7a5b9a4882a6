"""Zipf keys: exact frequencies for any exponent, head and tail."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from joinery.generate.keys import keys_between
from joinery.generate.zipf import HEAD, ZipfKeys

RARE = 1e-4  # some 40 such checks stand in this folder: together a false alarm is still below 1 %


@pytest.mark.parametrize("exponent", [0.0, 0.5, 0.99, 1.0, 1.2, 2.0])
def test_frequencies_are_powers_of_the_rank(exponent: float) -> None:
    counts = np.bincount(keys_between(ZipfKeys(100, exponent), 1, 0, 200_000), minlength=100)
    weights = np.arange(1, 101.0) ** -exponent
    assert stats.chisquare(counts, 200_000 * weights / weights.sum()).pvalue > RARE


@pytest.mark.parametrize("exponent", [0.0, 0.7, 1.0, 1.1])
def test_the_tail_beyond_the_table_has_its_share(exponent: float) -> None:
    domain = 10**6
    edges = np.array([0, 10, HEAD - 100, HEAD + 100, 20_000, 200_000, domain])
    counts, _ = np.histogram(keys_between(ZipfKeys(domain, exponent), 2, 0, 300_000), edges)
    shares = np.add.reduceat(np.arange(1, domain + 1.0) ** -exponent, edges[:-1])
    assert stats.chisquare(counts, counts.sum() * shares / shares.sum()).pvalue > RARE


@settings(deadline=None)
@given(
    domain=st.integers(HEAD + 1, 50_000),
    exponent=st.one_of(st.sampled_from([0.0, 1.0, 1 - 1e-12, 1 + 1e-12]), st.floats(0, 2.5)),
    shares=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=50),
)
def test_quantiles_are_those_of_a_full_table(domain: int, exponent: float, shares: list[float]) -> None:
    table = np.cumsum(np.arange(1, domain + 1.0) ** -exponent)
    weight = np.array(shares) * table[-1]
    keys = ZipfKeys(domain, exponent).quantile(np.array(shares))
    slack = 1e-12 * table[-1]  # sums of either kind round
    assert np.all(table[keys] >= weight - slack)
    assert np.all(np.where(keys > 0, table[keys - 1], 0) <= weight + slack)


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, 1.5])
def test_the_tail_changes_keys_where_the_exact_sum_does(exponent: float) -> None:
    weights = np.arange(1, 100_001.0) ** -exponent
    table, keys = np.cumsum(weights), np.arange(HEAD - 5, 100_000, 7)
    for just_inside in (table[keys - 1] + 1e-6 * weights[keys], table[keys] - 1e-6 * weights[keys]):
        np.testing.assert_array_equal(keys, ZipfKeys(100_000, exponent).quantile(just_inside / table[-1]))


@settings(deadline=None)
@given(domain=st.integers(1, 2**40), exponent=st.floats(0, 64), seed=st.integers(0, 2**32))
def test_keys_stay_in_the_domain(domain: int, exponent: float, seed: int) -> None:
    keys = ZipfKeys(domain, exponent).draw(np.random.default_rng(seed), 100)
    assert keys.min() >= 0
    assert keys.max() < domain


def test_a_huge_exponent_leaves_one_key() -> None:
    assert {0} == set(keys_between(ZipfKeys(10**6, 64.0), 1, 0, 1000).tolist())
