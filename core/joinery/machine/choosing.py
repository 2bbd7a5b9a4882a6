"""Messages and results without the groups that have left, or are not past their silence."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from joinery.join.results import ResultPart
from joinery.machine.messages import Exchange, mask_of
from joinery.partition.hashing import groups_of


def only_groups(exchange: Exchange, keep: NDArray[np.bool_], partitions: int) -> Exchange:
    """A message without the rows of the other groups."""
    groups = exchange.groups[keep]
    mask = mask_of(groups, partitions)
    batches = tuple(batch.take(mask[groups_of(batch.hashes, partitions)]) for batch in exchange.batches)
    return replace(exchange, groups=groups, after=exchange.after[keep], batches=batches)


def choose(parts: tuple[ResultPart, ...], mask: NDArray[np.bool_]) -> tuple[ResultPart, ...]:
    """The rows of these groups."""
    chosen = tuple(part.take(mask[part.groups]) for part in parts)
    return tuple(part for part in chosen if part.rows.num_rows)
