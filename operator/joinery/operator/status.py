"""The status of a JoinQuery: a pure function of what was seen. `crd_status` is its schema.

Conditions follow kstatus, so that other tools understand them: `Ready`, `Reconciling`, `Stalled`. A condition keeps the
time of its last transition for as long as its status stays the same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from joinery.elastic.beta import Decision, Grow, Keep, Shrink
from joinery.machine.messages import MoveView, Overview, StreamView, WorkerView
from joinery.model.quantities import format_duration
from joinery.model.spec import JoinQuery
from joinery.model.time import DEAD, FOREVER
from joinery.model.words import counted
from joinery.operator.children import selector_of

MOVES_SHOWN: Final = 10
MILLISECOND: Final = 1_000_000
Status = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """All that a status is made from."""

    name: str
    generation: int
    now_ns: int
    query: JoinQuery | None
    """The query in force."""
    stalled: str | None = None
    is_paused: bool = False
    has_ended: bool = False
    desired: int = 0
    replicas: int = 0
    ready: Mapping[str, int] = field(default_factory=dict)
    """Pods that are ready, by role."""
    is_attended: bool = False
    """Whether the operator and the gateway are connected."""
    view: Overview | None = None
    results: int | None = None
    """What the query came to, if the gateway has said so at its end."""
    decision: Decision | None = None
    decisions: int = 0
    held_until_ns: int = 0
    is_draining: bool = False


def status_of(picture: Picture, before: Mapping[str, Any]) -> Status:
    """The whole status; `before` is the one that stands."""
    made: Status = {
        "observedGeneration": picture.generation,
        "phase": phase_of(picture),
        "selector": ",".join(f"{key}={value}" for key, value in sorted(selector_of(picture.name, "worker").items())),
        "replicas": picture.replicas,
        "readyReplicas": picture.ready.get("worker", 0),
        "desiredReplicas": picture.desired,
        "conditions": conditions_of(_truths(picture), before.get("conditions", ()), picture.generation, picture.now_ns),
        "scaling": _scaling(picture),
    }
    if picture.view is not None and picture.query is not None:
        made |= _of_view(picture.view, picture.query)
    if picture.results is not None:
        made["results"] = picture.results
    return made


def phase_of(picture: Picture) -> str:
    """One word for people."""
    if picture.has_ended:
        return "Finished"
    if picture.is_paused:
        return "Paused"
    if picture.stalled is not None and picture.query is None:
        return "Stalled"
    if not _is_ready(picture):
        return "Pending"
    return "Scaling" if picture.is_draining or picture.desired != picture.ready.get("worker", 0) else "Running"


def _is_ready(picture: Picture) -> bool:
    """It takes rows and gives results: gateway, collector and at least one worker; and whoever has the table."""
    return picture.is_attended and all(picture.ready.get(role, 0) for role in _roles(picture))


def _roles(picture: Picture) -> tuple[str, ...]:
    """Of whom there must be a ready pod."""
    return ("gateway", "collector", "worker", *(("lookup",) if _has_table(picture) else ()))


def _has_table(picture: Picture) -> bool:
    return picture.query is not None and picture.query.spec.table is not None


# --- conditions


Truth = tuple[bool | None, str, str]
"""Whether a condition holds (None: nobody knows), its reason and its message."""


def conditions_of(
    truths: Mapping[str, Truth], before: Iterable[Mapping[str, Any]], generation: int, now_ns: int
) -> list[Status]:
    """Conditions as an object shows them; one whose status is that of `before` keeps its time."""
    old = {one["type"]: one for one in before}
    made = []
    for kind, (holds, reason, message) in truths.items():
        status = "Unknown" if holds is None else str(bool(holds))
        same = old.get(kind, {}).get("status") == status
        made.append({
            "type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": generation,
            "lastTransitionTime": old[kind]["lastTransitionTime"] if same else stamp(now_ns),
        })  # fmt: skip
    return made


def _truths(picture: Picture) -> dict[str, Truth]:
    ready, wanted = picture.ready.get("worker", 0), picture.desired
    is_ready = _is_ready(picture)
    workers = f"{ready} of {counted(wanted, 'worker is ready', 'workers are ready')}"
    made: dict[str, Truth] = {
        "Ready": (is_ready, "Serving", "rows are taken and joined")
        if is_ready
        else (False, "Ended", "the query has ended: all of it is joined and committed")
        if picture.has_ended
        else (False, "NotServing", _missing(picture)),
        "Reconciling": (not picture.has_ended and (not is_ready or ready != wanted), "Pods", workers),
        "Stalled": (
            picture.stalled is not None,
            "InvalidSpec" if picture.stalled else "AsWanted",
            picture.stalled or "",
        ),
        "WorkersAvailable": (ready >= wanted, "AllWorkersReady" if ready >= wanted else "InsufficientWorkers", workers),
        "Paused": (picture.is_paused, "Annotation" if picture.is_paused else "NotPaused", ""),
    }
    if _has_table(picture):
        there = bool(picture.ready.get("lookup", 0))
        text = "its segments are served" if there else "no version of the table is served: rows wait for it"
        made["TableAvailable"] = (there, "Served" if there else "NoLookup", text)
    if picture.view is not None:
        moving = len(picture.view.under_way)
        made["Balanced"] = (
            moving == 0 and picture.view.n_sup == 0,
            "MigrationInProgress" if moving else "Overloaded" if picture.view.n_sup else "NoSuppliers",
            f"{counted(picture.view.n_sup, 'supplier')}, {counted(picture.view.n_con, 'consumer')}, "
            + counted(moving, "group on its way", "groups on their way"),
        )
    if isinstance(picture.decision, Keep):
        limits = [one for one in picture.decision.blocked_by if one in ("max", "min")]
        reason = f"At{limits[0].title()}Replicas" if limits else "WithinBounds"
        made["ScalingLimited"] = (bool(limits), reason, picture.decision.because.partition(";")[0])
    return made


def _missing(picture: Picture) -> str:
    lacks = [role for role in _roles(picture) if not picture.ready.get(role, 0)]
    if lacks:
        return f"no ready pod: {', '.join(lacks)}"
    return "the operator has no connection to the gateway"


# --- the β-rule


def _scaling(picture: Picture) -> Status:
    made: Status = {"decisions": picture.decisions}
    if picture.view is not None:
        made |= {"nSup": picture.view.n_sup, "nCon": picture.view.n_con}
    made["heldUntil"] = held_text(picture.held_until_ns) if picture.held_until_ns > picture.now_ns else None
    if picture.decision is not None:
        made["lastDecision"] = decision_status(picture.decision)
    return made


def held_text(until_ns: int) -> str | None:
    """Until when a person's wish holds, as the status shows it."""
    return stamp(until_ns) if until_ns else None


def held_until_ns(status: Mapping[str, Any]) -> int:
    """The same, read again; 0: no such wish."""
    text = status.get("scaling", {}).get("heldUntil")
    return int(datetime.fromisoformat(text).timestamp() * 1e9) if text else 0


def decision_status(decision: Decision) -> Status:
    """A decision as the status shows it."""
    inputs = decision.inputs
    blocked = ", ".join(decision.blocked_by) if isinstance(decision, Keep) else ""
    return {
        "nSup": inputs.n_sup, "nCon": inputs.n_con, "beta": inputs.rule.beta, "busy": round(inputs.busy, 3),
        "action": {Grow: "Grow", Shrink: "Shrink", Keep: "Keep"}[type(decision)], "because": decision.because,
        "blockedBy": blocked,
    }  # fmt: skip


# --- what the gateway tells


def _of_view(view: Overview, query: JoinQuery) -> Status:
    pauses = sorted(move.pause_ns for move in view.moves if move.pause_ns is not None)
    made: Status = {
        "lag": _lag(view),
        "records": int(view.records),
        "oldestUncommitted": view.uncommitted if view.uncommitted < view.records else None,
        "rejected": view.rejected,
        "lastCheckpoint": stamp(view.checkpointed_ns) if view.checkpointed_ns else None,
        "results": view.results,
        "late": sum(stream.late for stream in view.streams),
        "stateBytes": sum(worker.report.memory_bytes for worker in view.workers if worker.report is not None),
        "redisBytes": view.stored_bytes or None,
        "delayP50": _shown(view.delivered.percentile_ns(0.5)),
        "delayP99": _shown(view.delivered.percentile_ns(0.99)),
        "slots": {
            "epoch": _shown(view.epoch_ns), "subgroups": len({one.slot for one in view.workers} - {None}),
            "bufferBytes": view.unsent_bytes, "bufferPeakBytes": view.unsent_peak_bytes,
        },
        "streams": [_stream(one, spec.name) for one, spec in zip(view.streams, query.spec.streams, strict=True)],
        "workers": [_worker(one) for one in view.workers],
        "migrations": [_move(one) for one in view.moves[-MOVES_SHOWN:]],
        "migrationsTotal": view.moves_done,
    }  # fmt: skip
    if pauses:
        made |= {"pauseP50": _shown(pauses[len(pauses) // 2]), "pauseP99": _shown(pauses[int(len(pauses) * 0.99)])}
    return made


def _lag(view: Overview) -> str | None:
    marks = [stream.watermark_ns for stream in view.streams if DEAD < stream.watermark_ns < FOREVER]
    return _shown(max(0, view.at_ns - min(marks))) if marks else None


def _stream(view: StreamView, name: str) -> Status:
    is_known = DEAD < view.watermark_ns < FOREVER
    return {
        "name": name, "rows": view.rows, "late": view.late, "rowsPerSecond": round(view.rows_per_s, 1),
        "watermark": stamp(view.watermark_ns) if is_known else None,
    }  # fmt: skip


def _worker(view: WorkerView) -> Status:
    made: Status = {"name": view.worker, "ready": view.is_up, "groups": view.groups}
    if view.slot is not None:
        made["slot"] = view.slot
    if view.role is not None:
        made["role"] = view.role.value
    if view.report is not None:
        made |= {
            "occupancy": round(view.report.occupancy, 3), "busy": round(view.report.busy, 3),
            "stateBytes": view.report.memory_bytes,
        }  # fmt: skip
    return made


def _move(view: MoveView) -> Status:
    return {
        "group": int(view.group), "source": view.source, "target": view.target, "bytes": view.nbytes,
        "pause": _shown(view.pause_ns or 0), "planned": view.is_planned, "at": stamp(view.begun_ns),
    }  # fmt: skip


def _shown(duration_ns: int) -> str:
    """To a millisecond: 84ms, 2s100ms."""
    return format_duration(round(duration_ns / MILLISECOND) * MILLISECOND)


def stamp(at_ns: int) -> str:
    """As Kubernetes writes times."""
    return datetime.fromtimestamp(at_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
