"""Hash bits: frozen values, even spread, independent halves."""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from joinery.partition import hashing

FROZEN_WORDS = {
    0: 0xE220A8397B1DCDAF,
    1: 0x910A2DEC89025CC1,
    -1: 0xE4D971771B652C20,
    42: 0xBDD732262FEB6E95,
    2**63 - 1: 0x2A67D7552E039EA7,
    -(2**63): 0x481EC0A212A9F3DB,
}
"""splitmix64's outputs for these states: whoever changes them loses every checkpoint and every partition map."""
FROZEN_TEXTS = {
    "": 0xA53294E76398C149,
    "a": 0xECF6077C93FC5690,
    "ab": 0xBC95B9B321AB1BFE,
    "ä": 0xFF248555E7E85071,
    "exactly8": 0x89A37096DBCF63C5,
    "and nine.": 0x8BB23BD1F8964FB9,
    "x" * 100: 0x7C9B37EDB1BE9A98,
}


def hash_texts(*texts: str) -> list[int]:
    return hashing.hash_column(pa.array(texts)).tolist()


def test_hashes_of_integers_are_frozen() -> None:
    assert list(FROZEN_WORDS.values()) == hashing.hash_words(np.array(list(FROZEN_WORDS), np.int64)).tolist()


def test_hashes_of_texts_are_frozen() -> None:
    assert FROZEN_TEXTS == dict(zip(FROZEN_TEXTS, hash_texts(*FROZEN_TEXTS), strict=True))


def test_hashes_of_composite_keys_are_frozen() -> None:
    both = hashing.combine([hashing.hash_words(np.array([1, 2])), hashing.hash_column(pa.array(["a", "b"]))])
    assert [0x22D253CDF07D3648, 0xDC4FB7606BED09A3] == both.tolist()


def test_another_process_with_another_hash_seed_hashes_the_same() -> None:
    code = (
        "import json, numpy, pyarrow; from joinery.partition import hashing as h;"
        "words = h.hash_words(numpy.array([0, 1, -1])).tolist();"
        "print(json.dumps([words, h.hash_column(pyarrow.array(['', 'abc'])).tolist()]))"
    )
    answer = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONHASHSEED": "12345"},
    )  # fmt: skip
    assert [hashing.hash_words(np.array([0, 1, -1])).tolist(), hash_texts("", "abc")] == json.loads(answer.stdout)


def test_a_single_column_is_not_hashed_again() -> None:
    hashes = hashing.hash_words(np.arange(5))
    combined = hashing.combine([hashes])
    assert hashes.tolist() == combined.tolist()
    assert not np.shares_memory(hashes, combined)


def test_the_order_of_columns_counts() -> None:
    one, two = hashing.hash_words(np.array([1])), hashing.hash_words(np.array([2]))
    assert hashing.combine([one, two]).tolist() != hashing.combine([two, one]).tolist()
    assert hashing.combine([one, one]).tolist() != hashing.combine([one]).tolist()


def test_zero_bytes_at_the_end_make_another_value() -> None:
    values = [b"", b"\0", b"\0\0", b"\0" * 7, b"\0" * 8, b"\0" * 9, b"a", b"a\0", b"\0a"]
    assert len(values) == len(set(hashing.hash_column(pa.array(values)).tolist()))


def test_combining_leaves_its_arguments_alone() -> None:
    one, two = hashing.hash_words(np.array([1])), hashing.hash_words(np.array([2]))
    before = one.tolist(), two.tolist()
    hashing.combine([one, two])
    assert before == (one.tolist(), two.tolist())


def test_a_slice_hashes_as_its_values() -> None:
    texts = pa.array(["zero", "one", "two", "three"])
    assert hash_texts("one", "two") == hashing.hash_column(texts.slice(1, 2)).tolist()
    decimals = pa.array([1, 2, 3, 4], pa.decimal128(10, 0))
    assert (
        hashing.hash_column(pa.array([2, 3], pa.decimal128(10, 0))).tolist()
        == hashing.hash_column(decimals.slice(1, 2)).tolist()
    )


@pytest.mark.parametrize("partitions", [1, 2, 3, 59, 60, 61, 255, 256, 257, 1000, 4095, 4096])
def test_every_partition_is_used_and_none_beyond(partitions: int) -> None:
    edges = np.array([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 2**32, 2**64 - 1], np.uint64)
    assert hashing.groups_of(edges, partitions).max() == partitions - 1
    assert hashing.groups_of(edges, partitions).min() == 0
    groups = hashing.groups_of(hashing.hash_words(np.arange(50 * partitions)), partitions)
    assert list(range(partitions)) == np.unique(groups).tolist()


def test_a_group_is_below_the_number_of_partitions_whatever_it_is() -> None:
    hashes = np.concatenate((np.array([0, 2**64 - 1, 2**32], np.uint64), hashing.hash_words(np.arange(500))))
    tops = [int(hashing.groups_of(hashes, partitions).max()) for partitions in range(1, 4097)]
    assert [] == [partitions for partitions, top in enumerate(tops, start=1) if top >= partitions]
    assert [partitions - 1 for partitions in range(1, 4097)] == tops


KEYS = {
    "0, 1, 2": np.arange(60_000),
    "every thousandth": np.arange(60_000) * 1000,
    "high words": np.arange(60_000) << 40,
    "microseconds": 1_700_000_000_000_000 + np.arange(60_000) * 1_000_000,
    "negative": -np.arange(60_000),
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("partitions", [60, 64, 1000])
def test_keys_spread_evenly_over_partitions(keys: np.ndarray, partitions: int) -> None:
    groups = hashing.groups_of(hashing.hash_words(keys), partitions)
    assert stats.chisquare(np.bincount(groups, minlength=partitions)).pvalue > 1e-4


def test_texts_spread_evenly_over_partitions() -> None:
    hashes = hashing.hash_column(pa.array([f"customer-{number:08d}" for number in range(30_000)]))
    assert stats.chisquare(np.bincount(hashing.groups_of(hashes, 60), minlength=60)).pvalue > 1e-4


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_the_bits_of_the_directory_are_independent_of_the_partition(keys: np.ndarray) -> None:
    hashes = hashing.hash_words(keys)
    groups, low = hashing.groups_of(hashes, 60), (hashes & np.uint64(15)).astype(np.int64)
    table = np.zeros((60, 16), np.int64)
    np.add.at(table, (groups, low), 1)
    assert stats.chi2_contingency(table).pvalue > 1e-4


def test_each_bit_of_a_key_changes_half_of_the_bits_of_its_hash() -> None:
    keys = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 2000)
    base = hashing.hash_words(keys)
    for bit in range(64):
        changed = base ^ hashing.hash_words(keys ^ (np.int64(1) << np.int64(bit)))
        share = np.unpackbits(changed.view(np.uint8)).mean()
        assert 0.48 < share < 0.52
