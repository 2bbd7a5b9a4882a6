"""Short ways to write a cluster's load."""

from joinery.elastic.load import ClusterLoad, GroupLoad, LoadReport, Role
from joinery.model.ids import GroupId, WorkerId

LIMIT = 1000
"""Bytes of memory of every worker here."""


def group(number: int, weight: float = 1.0, memory_bytes: int = 0) -> GroupLoad:
    return GroupLoad(group=GroupId(number), weight=weight, memory_bytes=memory_bytes)


def report(
    worker: str,
    *groups: GroupLoad,
    f: float = 0.1,
    u: float = 0.5,
    memory_bytes: int | None = None,
    back_pressure: bool = False,
) -> LoadReport:
    held = sum(part.memory_bytes for part in groups) if memory_bytes is None else memory_bytes
    return LoadReport(
        worker=WorkerId(worker),
        occupancy=f,
        busy=u,
        memory_bytes=held,
        memory_limit=LIMIT,
        groups=groups,
        back_pressure=back_pressure,
    )


def cluster(*rows: tuple[LoadReport, Role], degree: int | None = None) -> ClusterLoad:
    reports, roles = tuple(row[0] for row in rows), tuple(row[1] for row in rows)
    return ClusterLoad(reports=reports, roles=roles, degree=len(rows) if degree is None else degree)


def counts(n_sup: int, n_con: int, neutral: int = 0, *, u: float = 0.5, degree: int | None = None) -> ClusterLoad:
    """So many of each kind, all with the same busy share."""
    roles = [Role.SUPPLIER] * n_sup + [Role.CONSUMER] * n_con + [Role.NEUTRAL] * neutral
    return cluster(*((report(f"w{place}", u=u), role) for place, role in enumerate(roles)), degree=degree)
