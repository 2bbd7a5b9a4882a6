"""What a probe finds, as columns; both methods fill it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from joinery.window.arrays import empty

I64Array = NDArray[np.int64]


class Found(NamedTuple):
    """Room for pairs: the probing row, the stored row, and the stored row's time and place."""

    probe: NDArray[np.int32]
    row: I64Array
    time: I64Array
    place: I64Array

    @staticmethod
    def room(size: int) -> "Found":
        """For that many pairs."""
        return Found(empty(size, np.int32), empty(size, np.int64), empty(size, np.int64), empty(size, np.int64))

    def first(self, count: int) -> "Found":
        """The pairs that were found."""
        return Found(self.probe[:count], self.row[:count], self.time[:count], self.place[:count])
