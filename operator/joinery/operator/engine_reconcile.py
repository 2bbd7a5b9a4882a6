"""What is to be done about a JoinQuery with `engine: spark`, and its status: pure functions of what was seen.

Rule 1: Spark runs it once, from its sources to its sinks. What has ended stays as it was told.
Rule 2: what Spark would not do exactly is refused by name before anything is started.
Rule 3: from then on only the Job counts. The query cannot be changed; an object that asks for it is `Stalled`, and what
        runs goes on.
Rule 4: what the driver says at its end is exact; while it runs nothing is counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from joinery.join.fitness import check
from joinery.model.errors import BadSpec
from joinery.model.spec import JoinQuery
from joinery.model.words import counted
from joinery.operator.children import Parent
from joinery.operator.engine_children import engine_children_of
from joinery.operator.events import Reason
from joinery.operator.reconcile import Apply, Say, Wanted, mark_of
from joinery.operator.settings import OperatorSettings
from joinery.operator.spark_jobs import Driver
from joinery.operator.spark_pods import NO_SPARK
from joinery.operator.status import Status, conditions_of

ENDED: Final = ("Finished", "Failed")
CHANGED: Final = "found another spec than the one that Spark runs, wanted the same; make a new query"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSeen:
    """What there is."""

    accepted: JoinQuery | None = None
    """The query that was begun; None: none was."""
    driver: Driver | None = None
    """None: no Job was made yet."""
    executors: int = 0
    """Pods of executors that run."""
    status: Mapping[str, Any] = field(default_factory=dict)
    """As it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOutcome:
    """What is to be done, and the status from now on."""

    status: Status
    applies: tuple[Apply, ...] = ()
    said: tuple[Say, ...] = ()


def reconcile_engine(wanted: Wanted, seen: EngineSeen, settings: OperatorSettings, now_ns: int) -> EngineOutcome:
    """What is to be done now."""
    if seen.status.get("phase") in ENDED:
        return EngineOutcome(status=dict(seen.status))
    complaint = _complaint(wanted, seen, settings)
    if seen.driver is not None:
        return _followed(wanted, seen, seen.driver, complaint, now_ns)
    if wanted.is_paused:
        return EngineOutcome(status=_status(wanted, seen, "Paused", now_ns, Paused=(True, "Annotation", "")))
    if complaint is not None:
        return stalled(wanted, seen, complaint, now_ns)
    parent = Parent(query=wanted.query(), namespace=wanted.namespace, uid=wanted.uid, replicas=0)
    applies = tuple(
        Apply((one["kind"], one["metadata"]["name"]), one, mark_of(one)) for one in engine_children_of(parent, settings)
    )
    text = "Spark's driver is being started"
    made = _status(wanted, seen, "Pending", now_ns, Reconciling=(True, "Starting", text))
    return EngineOutcome(status=made, applies=applies, said=(Say(Reason.CREATED, text),))


def _complaint(wanted: Wanted, seen: EngineSeen, settings: OperatorSettings) -> str | None:
    """Why it cannot be run as it stands."""
    if not settings.spark_image:
        return NO_SPARK
    try:
        query = wanted.query()
        check(query.spec)
    except BadSpec as bad:
        return str(bad)
    if seen.driver is None or seen.accepted is None:
        return None
    same = {"replicas": query.spec.replicas}  # Spark has no workers: kubectl scale changes nothing
    return None if seen.accepted.spec.model_copy(update=same) == query.spec else CHANGED


def stalled(wanted: Wanted, seen: EngineSeen, text: str, now_ns: int) -> EngineOutcome:
    """It cannot be run as things are; told once."""
    made = _status(wanted, seen, "Stalled", now_ns, Stalled=(True, "InvalidSpec", text))
    return EngineOutcome(status=made, said=_told(seen, text))


def _told(seen: EngineSeen, text: str | None) -> tuple[Say, ...]:
    """A complaint as an event, unless it stands already."""
    before = {one["type"]: one.get("message") for one in seen.status.get("conditions", ())}
    return () if not text or before.get("Stalled") == text else (Say(Reason.VALIDATION_ERROR, text, is_warning=True),)


def _followed(wanted: Wanted, seen: EngineSeen, driver: Driver, complaint: str | None, now_ns: int) -> EngineOutcome:
    """The Job is there: tell how far it is."""
    if driver.has_failed or (driver.has_succeeded and driver.words is None):
        text = (driver.text or "the driver's pod is gone").strip()[-1000:]
        made = _status(wanted, seen, "Failed", now_ns, Stalled=(True, "DriverFailed", text))
        return EngineOutcome(status=made, said=(Say(Reason.FAILED, text, is_warning=True),))
    if driver.has_succeeded and driver.words is not None:
        return _finished(wanted, seen, driver.words, now_ns)
    runs = driver.is_running and seen.executors > 0
    text = f"{seen.executors} executors run" if runs else "driver and executors are being started"
    truths = {"Ready": (runs, "Joining" if runs else "Starting", text), "Reconciling": (not runs, "Pods", text)}
    if complaint is not None:
        truths["Stalled"] = (True, "InvalidSpec", complaint)
    made = _status(wanted, seen, "Running" if runs else "Pending", now_ns, **truths)
    return EngineOutcome(status=made, said=_told(seen, complaint))


def _finished(wanted: Wanted, seen: EngineSeen, words: Mapping[str, Any], now_ns: int) -> EngineOutcome:
    rows, late, results = words["rows"], words["late"], int(words["results"])
    joined = counted(sum(rows.values()), "row was joined", "rows were joined")
    text = f"{joined}: {counted(results, 'result')} in {float(words['seconds']):.1f} s"
    made = _status(wanted, seen, "Finished", now_ns, Ready=(False, "Ended", text))
    streams = [{"name": name, "rows": int(rows[name]), "late": int(late[name])} for name in rows]
    made |= {"results": results, "late": sum(int(one["late"]) for one in streams), "streams": streams}
    return EngineOutcome(status=made, said=(Say(Reason.FINISHED, text),))


_USUAL: Final = {
    "Ready": (False, "NotServing", ""),
    "Reconciling": (False, "AsWanted", ""),
    "Stalled": (False, "AsWanted", ""),
    "Paused": (False, "NotPaused", ""),
}


def _status(wanted: Wanted, seen: EngineSeen, phase: str, now_ns: int, **truths: tuple[bool, str, str]) -> Status:
    """The status that stands, with another phase and other conditions."""
    before = seen.status.get("conditions", ())
    conditions = conditions_of({**_USUAL, **truths}, before, wanted.generation, now_ns)
    return {**seen.status, "observedGeneration": wanted.generation, "phase": phase, "conditions": conditions}
