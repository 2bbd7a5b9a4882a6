"""What waits in a worker's buffer (station 4)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joinery.machine.messages import Exchange
from joinery.model.tuples import I64Array


@dataclass(slots=True, eq=False)
class Waiting:
    """A message in the buffer, and the versions under which its groups were here when it came."""

    exchange: Exchange
    versions: I64Array
    nbytes: int
    loud: NDArray[np.bool_] | None = None
    """Which groups are past their silence; known when the join begins."""
    part: int = 0
