"""What the operator of a run was told and what it decided, as lines of JSON: `scaling.jsonl` in the folder of --record.

The first line of a run holds its spec; a run that goes on later adds lines, and begins with such a line again. Then a
line for each fact by which the operator decides: load reports with the decision made from each, drains that ended,
changes of the spec, wishes of people, connections. Numbers are written so that they come back as they were: `joinery
simulate recorded` makes every decision again from it.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from joinery.elastic.guarded import Wish
from joinery.elastic.load import ClusterLoad, LoadReport, Role
from joinery.machine.facts import Connected, Fact, Received, ReplicasWanted
from joinery.machine.messages import ClusterReport, Decided, Empty, SpecNow
from joinery.machine.operator import OperatorMachine
from joinery.machine.orders import Order
from joinery.model.errors import BadSpec, Bug, UserMustAct
from joinery.model.ids import GATEWAY, Term, WorkerId
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import read_spec, write_spec
from joinery.simulate.recorded import RecordedRun, Step

NAME: Final = "scaling.jsonl"


class DecisionTeller:
    """Sees what an operator's machine is told (`shell.Recorder`): tells its decisions, and writes all of it down."""

    def __init__(self, machine: OperatorMachine, tell: Callable[[Decided], None], folder: Path | None = None) -> None:
        self._machine, self._tell = machine, tell
        self._before = machine.last_decision
        self._file = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / NAME).open("a")
            self._write({"spec": json.loads(write_spec(machine.spec))})

    def saw(self, now_ns: int, fact: Fact, made: list[Order]) -> None:
        """One fact, after it was handled."""
        del made
        decision, decided = self._machine.last_decision, None
        is_report = isinstance(fact, Received) and isinstance(fact.message, ClusterReport)
        if is_report and decision is not None and decision is not self._before:
            decided = Decided.of(now_ns, fact.message.load, decision)  # type: ignore[union-attr]
            self._tell(decided)
        self._before = decision
        if self._file is not None and (line := line_of(fact, decided)) is not None:
            self._write({"at_ns": now_ns, **line})

    def _write(self, line: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(line, allow_nan=False) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Nothing more will be told."""
        if self._file is not None:
            self._file.close()


def forget_scaling(folder: Path) -> None:
    """What an earlier run has left in a folder."""
    (folder / NAME).unlink(missing_ok=True)


def line_of(fact: Fact, decided: Decided | None) -> dict[str, Any] | None:
    """A fact as a line holds it; None: nothing is decided by it."""
    if isinstance(fact, ReplicasWanted):
        wanted = {"replicas": fact.replicas, "until_ns": fact.until_ns, "because": fact.because}
        return {"wanted": wanted}
    if isinstance(fact, Connected) and fact.peer == GATEWAY:
        return {"connected": True}
    if not isinstance(fact, Received) or fact.peer != GATEWAY:
        return None
    match fact.message:
        case ClusterReport():
            told = {"report": load_story(fact.message.load)}
            return told if decided is None else told | {"decision": decision_story(decided)}
        case Empty():
            return {"empty": list(fact.message.workers)}
        case SpecNow():
            return {"term": fact.message.term, "changed": json.loads(write_spec(fact.message.spec))}
    return None


def load_story(load: ClusterLoad) -> dict[str, Any]:
    """The load of a cluster, without its groups."""
    workers = [
        {
            "worker": one.worker,
            "role": role.value,
            "occupancy": one.occupancy,
            "busy": one.busy,
            "demand": one.demand,
            "memory_bytes": one.memory_bytes,
            "memory_limit": one.memory_limit,
            "back_pressure": one.back_pressure,
        }
        for one, role in zip(load.reports, load.roles, strict=True)
    ]
    return {"degree": load.degree, "workers": workers}


def decision_story(decided: Decided) -> dict[str, Any]:
    """A decision, without its load."""
    return {
        "degree": decided.load.degree,
        "wish": decided.wish.value,
        "by": decided.by,
        "because": decided.because,
        "blocked_by": list(decided.blocked_by),
        "blocked_until_ns": decided.blocked_until_ns,
    }


def read_scaling(place: Path) -> list[RecordedRun]:
    """The runs in a file of that kind, or in the folder that it is in; refused if there are none."""
    path = place / NAME if place.is_dir() else place
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text"
        raise UserMustAct(
            f"{path}: found {reason}, wanted the load of a recorded run; record one: joinery run --record DIR"
        ) from error
    runs: list[tuple[JoinQuerySpec, list[Step]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            _add(runs, json.loads(line))
        except (ValueError, KeyError, TypeError, IndexError, BadSpec, Bug) as error:
            if number == text.count("\n") + 1:  # without its end: the run was killed while it wrote
                break
            raise UserMustAct(
                f"{path}, line {number}: found what cannot be read ({error!r}), wanted a line of joinery run --record"
            ) from error
    if not runs:
        raise UserMustAct(f"{path}: found no run, wanted one that began; record one: joinery run --record DIR")
    return [RecordedRun(spec, tuple(steps)) for spec, steps in runs]


def _add(runs: list[tuple[JoinQuerySpec, list[Step]]], line: dict[str, Any]) -> None:
    if "spec" in line:
        runs.append((read_spec(json.dumps(line["spec"])), []))
        return
    at_ns, steps = int(line["at_ns"]), runs[-1][1]
    fact, decided = _fact(at_ns, line)
    steps.append(Step(at_ns, fact, decided))


def _fact(at_ns: int, line: dict[str, Any]) -> tuple[Fact, Decided | None]:
    if "report" in line:
        load = _load(line["report"])
        decided = _decision(at_ns, load, line["decision"]) if "decision" in line else None
        return Received(GATEWAY, ClusterReport(load)), decided
    if "empty" in line:
        return Received(GATEWAY, Empty(tuple(WorkerId(one) for one in line["empty"]))), None
    if "changed" in line:
        return Received(GATEWAY, SpecNow(Term(line["term"]), read_spec(json.dumps(line["changed"])))), None
    if "wanted" in line:
        return ReplicasWanted(**line["wanted"]), None
    if "connected" in line:
        return Connected(GATEWAY), None
    raise KeyError("report, empty, changed, wanted or connected")


def _load(told: dict[str, Any]) -> ClusterLoad:
    reports, roles = [], []
    for one in told["workers"]:
        inside = dict(one)
        roles.append(Role(inside.pop("role")))
        reports.append(LoadReport(**inside))
    return ClusterLoad(reports=tuple(reports), roles=tuple(roles), degree=told["degree"])


def _decision(at_ns: int, load: ClusterLoad, told: dict[str, Any]) -> Decided:
    return Decided(
        at_ns=at_ns,
        load=replace(load, degree=told["degree"]),
        wish=Wish(told["wish"]),
        by=told["by"],
        because=told["because"],
        blocked_by=tuple(told["blocked_by"]),
        blocked_until_ns=told["blocked_until_ns"],
    )
