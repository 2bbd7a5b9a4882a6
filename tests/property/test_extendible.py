"""Fine tuning over random histories: rows come (uniform, skewed, one hot key), rows go, the directory is tuned.

The machine keeps the rows of every mini-group in a list of its own and moves them only as the directory says, so a
wrong entry, bit or buddy leaves a row where its hash does not lead.
"""

from collections import Counter

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from joinery.partition.extendible import MAX_DEPTH, Directory, Merge, Split, out_of_bounds, separating_bit, tune

THETA = 10
ROW = 1
ALL_BITS = (1 << MAX_DEPTH) - 1

hashes = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(0, 15),
    st.integers(0, 7).map(lambda n: n << 13),
    st.sampled_from([0, 1 << 15, 1 << 16, ALL_BITS, 2**64 - 1]),
)


class FineTuning(RuleBasedStateMachine):
    @initialize(strict=st.booleans(), block=st.sampled_from([1, 4]))
    def start(self, strict: bool, block: int) -> None:
        self.strict, self.block = strict, block
        self.directory = Directory.single(0)
        self.rows: dict[int, list[int]] = {0: []}
        self.next_id = 1
        self.tuned = True

    def place(self, row: int) -> int:
        return int(self.directory.entries[row & (len(self.directory.entries) - 1)])

    def sizes(self) -> dict[int, int]:
        """Bytes in whole blocks."""
        return {bucket: -(-len(rows) * ROW // self.block) * self.block for bucket, rows in self.rows.items()}

    def separable(self, bucket: int) -> bool:
        depth = self.directory.local_depth[bucket]
        bit = separating_bit(np.array(self.rows[bucket], np.uint64), depth)
        return bit == depth if self.strict else bit is not None

    def insert(self, new: list[int]) -> None:
        for row in new:
            self.rows[self.place(row)].append(row)
        self.tuned = False

    @rule(new=st.lists(hashes, min_size=1, max_size=20))
    def insert_any(self, new: list[int]) -> None:
        self.insert(new)

    @rule(seed=st.integers(0, 2**32 - 1), count=st.integers(20, 400), bits=st.integers(1, 64), skew=st.integers(1, 4))
    def insert_many(self, seed: int, count: int, bits: int, skew: int) -> None:
        share = np.random.default_rng(seed).random(count) ** skew
        self.insert([int(part * 2**bits) for part in share])

    @rule(row=hashes, bit=st.integers(0, 63), times=st.integers(1, 60))
    def insert_two_hot_keys(self, row: int, bit: int, times: int) -> None:
        self.insert([row, row ^ 1 << bit] * times)

    @rule(keep_one_in=st.integers(2, 6), seed=st.integers(0, 2**32 - 1))
    def expire(self, keep_one_in: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        for bucket, rows in self.rows.items():
            self.rows[bucket] = [row for row in rows if rng.integers(keep_one_in) == 0]
        self.tuned = False

    @precondition(lambda self: not self.tuned)
    @rule(at_once=st.booleans())
    def tune_until_nothing_is_left_to_do(self, at_once: bool) -> None:
        changed: set[tuple[int, int]] = set()
        while actions := tune(self.directory, self.sizes(), THETA, self.separable):
            for action in actions if at_once else actions[:1]:
                depth, first = self.directory.local_depth[action.bucket], self.directory.first_entry(action.bucket)
                if isinstance(action, Split):
                    self.split(action)
                else:
                    self.merge(action)
                    depth, first = depth - 1, first & ~(1 << (depth - 1))
                assert (depth, first) not in changed, "these tuples were split or merged a second time"
                changed.add((depth, first))
        self.tuned = True

    def split(self, action: Split) -> None:
        bit = self.directory.split(action.bucket, self.next_id)
        rows = self.rows[action.bucket]
        self.rows[action.bucket] = [row for row in rows if not row >> bit & 1]
        self.rows[self.next_id] = [row for row in rows if row >> bit & 1]
        assert not self.strict or (self.rows[action.bucket] and self.rows[self.next_id])
        self.next_id += 1

    def merge(self, action: Merge) -> None:
        together = self.rows.pop(action.bucket) + self.rows.pop(action.buddy)
        self.rows[self.directory.merge(action.bucket, action.buddy)] = together

    @rule()
    def empty_and_tune(self) -> None:
        self.rows = {bucket: [] for bucket in self.rows}
        self.tune_until_nothing_is_left_to_do(at_once=True)
        assert 0 == self.directory.global_depth
        assert 1 == len(self.directory.entries)

    @rule()
    def checkpoint_and_restore(self) -> None:
        restored = Directory.from_list(self.directory.to_list())
        assert self.directory.entries.tolist() == restored.entries.tolist()
        self.directory = restored

    @invariant()
    def entries_share_the_low_bits_of_their_mini_group(self) -> None:
        directory = self.directory
        directory.check()
        entries = directory.entries.tolist()
        assert 2**directory.global_depth == len(entries)
        assert max(directory.local_depth.values()) == directory.global_depth <= MAX_DEPTH
        assert set(entries) == set(directory.local_depth) == set(self.rows)
        for bucket, count in Counter(entries).items():
            depth, first = directory.local_depth[bucket], directory.first_entry(bucket)
            assert 2 ** (directory.global_depth - depth) == count
            assert {bucket} == set(entries[first :: 1 << depth])

    @invariant()
    def every_row_is_where_its_hash_leads(self) -> None:
        for bucket, rows in self.rows.items():
            assert all(bucket == self.place(row) for row in rows)

    @invariant()
    def tuned_mini_groups_are_in_bounds_or_counted(self) -> None:
        if not self.tuned:
            return
        sizes, directory = self.sizes(), self.directory
        counted = out_of_bounds(directory, sizes, THETA, self.separable)
        for bucket, size in sizes.items():
            depth, first, rows = directory.local_depth[bucket], directory.first_entry(bucket), self.rows[bucket]
            if size > 2 * THETA and depth == MAX_DEPTH:
                assert bucket in counted.deepest
            elif size > 2 * THETA:
                mask = 1 << depth if self.strict else ALL_BITS
                assert 1 == len({row & mask for row in rows})
                assert bucket in counted.hot
            elif size < THETA:
                assert bucket in counted.small
                if depth > 0:
                    other = int(directory.entries[first ^ 1 << (depth - 1)])
                    assert directory.local_depth[other] > depth or size + sizes[other] >= 2 * THETA
            else:
                assert bucket not in counted.hot + counted.deepest + counted.small


TestFineTuning = FineTuning.TestCase
TestFineTuning.settings = settings(
    max_examples=100, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
