"""What a join method must do; `hash` and `nested-loop` do it, and the join above them (`logic`) knows no more."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from joinery.join.kernels.found import Found
from joinery.model.ids import GroupId
from joinery.model.tuples import I64Array, TupleBatch
from joinery.window.store import RowStore


class Probes(NamedTuple):
    """Who looks for partners: a column each of what must be equal, where to look, and between which times."""

    words: I64Array
    hashes: NDArray[np.uint64]
    groups: NDArray[np.uint16]
    low: I64Array
    high: I64Array


class Method(Protocol):
    """Where the rows of every stream are put, and how partners are found among them."""

    stores: tuple[RowStore, ...]

    def insert(self, batch: TupleBatch, groups: NDArray[np.uint16], flags: NDArray[np.uint8]) -> None:
        """Keep the rows of a batch; from now on they are found by `candidates`."""

    def candidates(self, stream: int, probes: Probes) -> Iterator[Found]:
        """All kept rows of `stream` with a probe's word and a time in its bounds, in bounded parts."""

    def expire(self, stream: int, before: int) -> None:
        """Give back blocks whose newest row is past: its clock is below `before`."""

    def directory(self, group: GroupId) -> tuple[int, ...]:
        """The fine-tuning directory of a group, to be kept with its state; empty if it is not split."""

    def shape(self, group: GroupId, directory: tuple[int, ...]) -> None:
        """Give a group that comes the directory that it had."""

    def drop(self, group: GroupId) -> None:
        """Forget a group whose rows are dead."""

    def retune(self, theta_bytes: int | None) -> None:
        """Other mini-groups from now on; None: none are made any more."""

    def bytes_held(self) -> int:
        """Memory of rows and index."""
