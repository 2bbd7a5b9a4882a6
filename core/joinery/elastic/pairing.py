"""Pairs of a supplier and a consumer, found in one scan over the workers.

Source: seed 000, IV.C and algorithm 1, lines 11-14: each supplier gets a consumer of its own, so there are min(N_sup,
N_con) pairs. Ours: a supplier with a single group is not paired, because it would only change who is overloaded.
Pairs are made before the degree changes; new workers take part from the next reorganization on.

This is for `paper`, in the order of the workers; `guarded` keeps no pairs (`elastic.migration_plan`, rule 0).
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from joinery.elastic.load import ClusterLoad, Role
from joinery.model.ids import WorkerId


@dataclass(frozen=True, slots=True)
class Pair:
    """A supplier, and the consumer that takes from it."""

    supplier: WorkerId
    consumer: WorkerId


@dataclass(frozen=True, slots=True)
class Pairing:
    """The pairs, and why a supplier has none."""

    pairs: tuple[Pair, ...]
    notes: tuple[str, ...] = ()


def pair(load: ClusterLoad, *, group_counts: Mapping[WorkerId, int] | None = None) -> Pairing:
    """One scan: whoever comes first waits for the first of the other kind.

    `group_counts` overrides how many groups a supplier has, when some are already on their way.
    """
    suppliers: deque[WorkerId] = deque()
    consumers: deque[WorkerId] = deque()
    pairs: list[Pair] = []
    notes: list[str] = []
    for report, role in zip(load.reports, load.roles, strict=True):
        groups = len(report.groups) if group_counts is None else group_counts[report.worker]
        if role is Role.CONSUMER:
            consumers.append(report.worker)
        elif role is Role.SUPPLIER and groups > 1:
            suppliers.append(report.worker)
        elif role is Role.SUPPLIER:
            notes.append(f"{report.worker} is not paired: it has {groups} group")
        if suppliers and consumers:
            pairs.append(Pair(suppliers.popleft(), consumers.popleft()))
    notes += [f"{worker} is not paired: no consumer is left" for worker in suppliers]
    return Pairing(tuple(pairs), tuple(notes))
