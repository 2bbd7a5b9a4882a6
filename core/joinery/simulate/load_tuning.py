"""Fine tuning without tuples: the real directory and the real rule, on sizes that follow from the key distribution.

A mini-group's size is its group's window times the share of its hash class. A tuple that arrives in a group falls into
mini-group m with probability q_m and is compared with the share q_m of the other window, so the comparisons of a group
are those of an unsplit one times its *spread*, the sum of q_m squared: 1 unsplit, 1/k for k even parts.

`partition.extendible.tune` decides. It is asked only when a size has crossed the next bound of its group, which is
known from the last time (`_bounds`), so a tick over groups that are in order costs two comparisons of vectors.
"""

import numpy as np

from joinery.generate.draws import FloatArray, IntArray
from joinery.partition.extendible import Directory, Split, tune
from joinery.simulate.load_input import CLASS_BITS, KeyShares


class FineTuning:
    """The directories of all groups; they change in place, as their windows grow and shrink."""

    def __init__(self, shares: KeyShares, theta_bytes: int | None) -> None:
        groups = len(shares.group)
        self.spread: FloatArray = np.ones(groups)
        """[G]: what is left of an unsplit group's comparisons."""
        self._inside = shares.inside
        self._theta = theta_bytes
        self._directories = [Directory.single(0) for _ in range(groups)]
        self._next = [1] * groups
        self._split_above: FloatArray = np.full(groups, np.inf if theta_bytes is None else 2.0 * theta_bytes)
        self._merge_below: FloatArray = np.zeros(groups)

    def tune(self, window_bytes: FloatArray) -> FloatArray:
        """[G]: bytes that splits had to move, when the groups' windows have these sizes."""
        moved = np.zeros(len(window_bytes))
        for group in np.flatnonzero((window_bytes > self._split_above) | (window_bytes < self._merge_below)).tolist():
            moved[group] = self._settle(group, float(window_bytes[group]))
        return moved

    def mini_groups(self, groups: IntArray | slice) -> int:
        """How many mini-groups these groups have."""
        picked = range(len(self._directories))[groups] if isinstance(groups, slice) else groups.tolist()
        return sum(len(self._directories[group].local_depth) for group in picked)

    def _settle(self, group: int, size: float) -> float:
        directory, theta = self._directories[group], self._theta or 1
        moved = 0.0

        def separable(bucket: int) -> bool:
            return directory.local_depth[bucket] < CLASS_BITS

        while actions := tune(directory, self._sizes(group, size), theta, separable):
            for action in actions:
                if isinstance(action, Split):
                    moved += self._share(group, action.bucket) * size
                    directory.split(action.bucket, self._next[group])
                    self._next[group] += 1
                else:
                    directory.merge(action.bucket, action.buddy)
        self._bounds(group)
        return moved

    def _share(self, group: int, bucket: int) -> float:
        directory = self._directories[group]
        return float(self._inside[group, directory.first_entry(bucket) :: 1 << directory.local_depth[bucket]].sum())

    def _sizes(self, group: int, size: float) -> dict[int, int]:
        return {bucket: int(self._share(group, bucket) * size) for bucket in self._directories[group].buckets()}

    def _bounds(self, group: int) -> None:
        """The spread, and between which sizes of the window `tune` would have nothing to do."""
        directory, theta = self._directories[group], float(self._theta or 1)
        shares = {bucket: self._share(group, bucket) for bucket in directory.buckets()}
        self.spread[group] = sum(share * share for share in shares.values())
        largest = max([share for bucket, share in shares.items() if directory.local_depth[bucket] < CLASS_BITS] or [0])
        self._split_above[group] = 2 * theta / largest if largest > 0 else np.inf
        below = 0.0
        for bucket, share in shares.items():
            if (buddy := directory.buddy(bucket)) is not None and share <= shares[buddy]:
                both = share + shares[buddy]
                below = max(below, min(theta / share if share > 0 else np.inf, 2 * theta / both if both > 0 else 0.0))
        self._merge_below[group] = below
