"""By how much a worker is over: the load that came in for its groups, which its busy share cannot show.

u is at most 1, however much waits. A plan that knows only u takes a worker with twice its work for one that is full,
brings it to a mean that is too low, and needs several epochs. Ours, for `guarded`, from what the gateway knows anyway:

    demand = (bytes that came in for its groups) x (its busy time per byte joined) / epoch

Rule 1: what came in is counted at the gateway, by group, over its own epoch; so it does not matter how much of it was
        sent, waits or was joined, and a group that has just moved counts for its new owner.
Rule 2: a worker that joined nothing yet (it is new, or has just got its first groups) costs what the others cost in
        the mean.
Rule 3: roles are not touched: f, u and memory decide them (`elastic.classify`). Demand says how much a supplier gives,
        and to whom.
Rule 4: inside a worker the demand is divided over its groups as u is, by the work that they made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from joinery.elastic.load import LoadReport
from joinery.model.ids import WorkerId


def with_demand(
    reports: Sequence[LoadReport], joined_bytes: Mapping[WorkerId, float], came_bytes: Sequence[float]
) -> list[LoadReport]:
    """The reports with everybody's demand; `came_bytes` by group, both over an epoch."""
    total = sum(joined_bytes.get(report.worker, 0.0) for report in reports)
    if total <= 0:
        return list(reports)
    usual = sum(report.busy for report in reports) / total
    found = []
    for report in reports:
        joined = joined_bytes.get(report.worker, 0.0)
        each = report.busy / joined if joined > 0 else usual
        came = sum(came_bytes[part.group] for part in report.groups)
        found.append(replace(report, demand=each * came))
    return found
