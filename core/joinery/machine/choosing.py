"""Messages and results without the groups that have left, or are not past their silence."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from joinery.join.results import ResultPart
from joinery.machine.arrivals import arrivals_of
from joinery.machine.buffering import Waiting
from joinery.machine.facts import BatchJoined
from joinery.machine.messages import Exchange, Results, mask_of
from joinery.partition.hashing import groups_of


def only_groups(exchange: Exchange, keep: NDArray[np.bool_], partitions: int) -> Exchange:
    """A message without the rows of the other groups."""
    groups = exchange.groups[keep]
    mask = mask_of(groups, partitions)
    batches = tuple(batch.take(mask[groups_of(batch.hashes, partitions)]) for batch in exchange.batches)
    return replace(exchange, groups=groups, after=exchange.after[keep], batches=batches)


def loud_results(waiting: Waiting, fact: BatchJoined, partitions: int, told_ns: int) -> Results | None:
    """What the collector gets of a joined message: the results of groups that are past their silence; None: of none."""
    exchange, loud = waiting.exchange, waiting.loud
    if loud is None or not loud.any():
        return None
    groups = exchange.groups[loud]
    parts = fact.parts if loud.all() else choose(fact.parts, mask_of(groups, partitions))
    return Results(
        groups, exchange.after[loud], waiting.versions[loud], exchange.upto, exchange.marks, waiting.part, fact.last,
        parts, told_ns, fact.arrivals if loud.all() else arrivals_of(parts, exchange),
    )  # fmt: skip


def choose(parts: tuple[ResultPart, ...], mask: NDArray[np.bool_]) -> tuple[ResultPart, ...]:
    """The rows of these groups."""
    chosen = tuple(part.take(mask[part.groups]) for part in parts)
    return tuple(part for part in chosen if part.rows.num_rows)
