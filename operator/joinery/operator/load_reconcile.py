"""What is to be done about one LoadTest, and its status: pure functions of what is wanted and what was seen.

Rule 1: a LoadTest runs once. Its spec does not change (the API server refuses it); what has ended stays as it was told.
Rule 2: it waits until its query is Ready; then its objects are applied, the Job last. From then on only the Job counts:
        a query that is away for a while is the producers' matter, who wait for it.
Rule 3: what the driver says at its end is exact. While it runs, rows, rate and delays are those of the query, whoever
        sends.
Rule 4: what cannot be run says so in `Stalled`, and is looked at again: the query may come, or Spark be switched on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from joinery.model.errors import BadSpec, Complaint
from joinery.model.spec import JoinQuery
from joinery.model.spec_load import LoadTestSpec
from joinery.model.words import counted
from joinery.operator.events import Reason
from joinery.operator.load_children import LoadParent, load_children_of
from joinery.operator.reconcile import Apply, Say, Wanted, mark_of
from joinery.operator.settings import OperatorSettings
from joinery.operator.spark_jobs import Driver
from joinery.operator.spark_pods import NO_SPARK
from joinery.operator.status import conditions_of, stamp

ENDED: Final = ("Succeeded", "Failed")
Status: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSeen:
    """What there is."""

    query: JoinQuery | None = None
    """The query in force; None: there is none."""
    query_status: Mapping[str, Any] = field(default_factory=dict)
    driver: Driver | None = None
    """None: no Job was made yet."""
    executors: int = 0
    """Pods of executors that run."""
    status: Mapping[str, Any] = field(default_factory=dict)
    """As it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOutcome:
    """What is to be done, and the status from now on."""

    status: Status
    applies: tuple[Apply, ...] = ()
    said: tuple[Say, ...] = ()

    @property
    def has_ended(self) -> bool:
        return self.status["phase"] in ENDED


def reconcile_load(wanted: Wanted, seen: LoadSeen, settings: OperatorSettings, now_ns: int) -> LoadOutcome:
    """What is to be done now."""
    if seen.status.get("phase") in ENDED:
        return LoadOutcome(status=dict(seen.status))
    try:
        load = LoadTestSpec.parse(wanted.spec)
        complaint = None if seen.driver is not None else _complaint(load, seen, settings)
    except BadSpec as bad:
        return stalled(wanted, seen, str(bad), now_ns)
    if complaint is not None:
        return stalled(wanted, seen, complaint, now_ns)
    if seen.driver is not None:
        return _followed(wanted, load, seen, seen.driver, now_ns)
    if seen.query is None or not _holds(seen.query_status, "Ready"):
        text = f"the query {load.query} is {'not there' if seen.query is None else 'not ready'}"
        said = () if seen.status.get("phase") == "Pending" else (Say(Reason.LOAD_WAITING, text),)
        made = _status(wanted, seen, "Pending", now_ns, Running=(False, "WaitingForQuery", text))
        return LoadOutcome(status=made, said=said)
    return _started(wanted, load, seen.query, seen, settings, now_ns)


def _complaint(load: LoadTestSpec, seen: LoadSeen, settings: OperatorSettings) -> str | None:
    """Why it cannot be run as things are."""
    if not settings.spark_image:
        return NO_SPARK
    if seen.query is None:
        return None
    names = [stream.name for stream in seen.query.spec.streams if stream.table is None]
    unknown = [
        str(Complaint(f"spec.streams[{place}]", name, f"one of {', '.join(names)}", "correct it"))
        for place, name in enumerate(load.streams)
        if name not in names
    ]
    if seen.query.spec.engine == "spark":
        unknown.append(
            str(Complaint("spec.query", f"{load.query}, which Spark runs", "one that takes rows", "name another"))
        )
    if seen.query_status.get("phase") == "Finished":
        unknown.append(str(Complaint("spec.query", f"{load.query}, which has ended", "one that runs", "name another")))
    return "\n".join(unknown) or None


def stalled(wanted: Wanted, seen: LoadSeen, text: str, now_ns: int) -> LoadOutcome:
    """It cannot be run as things are; told once."""
    made = _status(wanted, seen, "Stalled", now_ns, Stalled=(True, "InvalidSpec", text))
    told = {one["type"]: one.get("message") for one in seen.status.get("conditions", ())}
    said = () if told.get("Stalled") == text else (Say(Reason.VALIDATION_ERROR, text, is_warning=True),)
    return LoadOutcome(status=made, said=said)


def _started(
    wanted: Wanted, load: LoadTestSpec, query: JoinQuery, seen: LoadSeen, settings: OperatorSettings, now_ns: int
) -> LoadOutcome:
    parent = LoadParent(namespace=wanted.namespace, name=wanted.name, uid=wanted.uid, load=load, query=query)
    applies = tuple(
        Apply((one["kind"], one["metadata"]["name"]), one, mark_of(one)) for one in load_children_of(parent, settings)
    )
    text = f"{counted(parent.executors, 'executor')} for {counted(parent.tasks, 'producer')}"
    made = _status(wanted, seen, "Starting", now_ns, Running=(False, "Starting", text))
    made |= {"startedAt": stamp(now_ns), "producers": parent.tasks, "rowsBefore": _rows(load, seen)}
    return LoadOutcome(status=made, applies=applies, said=(Say(Reason.LOAD_STARTED, text),))


def _followed(wanted: Wanted, load: LoadTestSpec, seen: LoadSeen, driver: Driver, now_ns: int) -> LoadOutcome:
    """The Job is there: tell how far it is."""
    if driver.has_failed or (driver.has_succeeded and driver.words is None):
        text = (driver.text or "the driver's pod is gone").strip()[-1000:]
        made = _status(wanted, seen, "Failed", now_ns, Failed=(True, "DriverFailed", text))
        made |= {"finishedAt": stamp(now_ns), "executors": 0}
        return LoadOutcome(status=made, said=(Say(Reason.LOAD_FAILED, text, is_warning=True),))
    if driver.has_succeeded and driver.words is not None:
        return _finished(wanted, load, seen, driver.words, now_ns)
    runs = driver.is_running and seen.executors > 0
    text = f"{seen.executors} executors run" if runs else "driver and executors are being started"
    phase, reason = ("Running", "Sending") if runs else ("Starting", "Starting")
    made = _status(wanted, seen, phase, now_ns, Running=(runs, reason, text))
    made |= _of_query(load, seen) if runs else {}
    return LoadOutcome(status={**made, "executors": seen.executors})


def _finished(wanted: Wanted, load: LoadTestSpec, seen: LoadSeen, words: Mapping[str, Any], now_ns: int) -> LoadOutcome:
    sent, taken, rate = int(words["sent"]), int(words["acknowledged"]), float(words["rate"])
    text = f"sent {sent} rows, {taken} are recorded: {rate:.0f} rows/s in {float(words['seconds']):.1f} s"
    made = _status(wanted, seen, "Succeeded", now_ns, Complete=(True, "AllRecorded", text))
    made |= _of_query(load, seen) | {
        "sent": sent, "acknowledged": taken, "rate": round(rate, 1), "seconds": round(float(words["seconds"]), 3),
        "behindSeconds": round(float(words["behind"]), 3), "finishedAt": stamp(now_ns), "executors": 0,
    }  # fmt: skip
    return LoadOutcome(status=made, said=(Say(Reason.LOAD_FINISHED, text),))


# --- the status


def _of_query(load: LoadTestSpec, seen: LoadSeen) -> Status:
    """What the query tells (rule 3)."""
    told = seen.query_status
    workers = int(told.get("readyReplicas", 0))
    made: Status = {
        "recorded": max(0, _rows(load, seen) - int(seen.status.get("rowsBefore", 0))),
        "rate": round(sum(float(one.get("rowsPerSecond", 0)) for one in _streams(load, seen)), 1),
        "workers": workers,
        "peakWorkers": max(workers, int(seen.status.get("peakWorkers", 0))),
    }
    return made | {name: told[name] for name in ("delayP50", "delayP99") if name in told}


def _streams(load: LoadTestSpec, seen: LoadSeen) -> list[Mapping[str, Any]]:
    """Those that the load sends to, as the query tells of them."""
    told = seen.query_status.get("streams", ())
    return [one for one in told if not load.streams or one["name"] in load.streams]


def _rows(load: LoadTestSpec, seen: LoadSeen) -> int:
    return sum(int(one.get("rows", 0)) for one in _streams(load, seen))


_CONDITIONS: Final = {
    "Running": (False, "NotRunning", ""),
    "Complete": (False, "NotComplete", ""),
    "Failed": (False, "NotFailed", ""),
    "Stalled": (False, "AsWanted", ""),
}


def _status(wanted: Wanted, seen: LoadSeen, phase: str, now_ns: int, **truths: tuple[bool, str, str]) -> Status:
    """The status that stands, with another phase and other conditions."""
    before = seen.status.get("conditions", ())
    conditions = conditions_of({**_CONDITIONS, **truths}, before, wanted.generation, now_ns)
    return {**seen.status, "observedGeneration": wanted.generation, "phase": phase, "conditions": conditions}


def _holds(status: Mapping[str, Any], kind: str) -> bool:
    return any(one["type"] == kind and one["status"] == "True" for one in status.get("conditions", ()))
