"""Runs the oracle properties with blocks of four rows and parts of three pairs: small histories meet every boundary.

The compiler freezes these sizes into the kernels, so this is a program of its own, to be run with NUMBA_DISABLE_JIT=1.
"""

import sys

from hypothesis import settings

from joinery.join import hash as hash_join
from joinery.join import logic
from joinery.join.kernels import chains
from joinery.window import packing
from tests.property import test_join_agrees_with_the_oracle as oracle
from tests.property import test_state_moves as moves


def shrink() -> None:
    """Four rows a block, three pairs a part, a sweep and a new index every few rows, no prefetch."""
    chains.SHIFT, chains.BLOCK, chains._LOW = 2, 4, 3
    chains.prefetch = packing.prefetch = lambda *_: None
    hash_join.SHIFT, hash_join.BLOCK, logic.BLOCK = 2, 4, 4
    hash_join.PART_PAIRS, hash_join._LEAST_BITS, hash_join._RENEW_ROWS = 3, 2, 30
    hash_join._LEAST_ROWS, hash_join._SWEEP_BLOCKS, hash_join._FIRST_SLOTS = 8, 2, 2


def main(examples: int) -> None:
    """Both properties with as many examples; a failure raises."""
    shrink()
    few = settings(oracle.QUICK, max_examples=examples, database=None)
    for test in (
        oracle.test_the_results_of_any_history_are_the_oracles,
        moves.test_moving_groups_between_workers_changes_no_result,
    ):
        test._hypothesis_internal_use_settings = few
        test("hash")


if __name__ == "__main__":
    main(int(sys.argv[1]))
