"""Looks after one JoinQuery: sees what there is, asks `reconcile` what to do, does it, writes the status.

`step` is called by one thread at a time, again and again: when the object, a child or a pod changes, when the machine
wants another number of workers, and now and then. It starts from what there is, so an operator that was killed goes on.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kubernetes.client.exceptions import ApiException

from joinery.adapters.settings import CANNOT_RUN
from joinery.machine.messages import EventKind
from joinery.model.spec import JoinQuery
from joinery.model.words import counted
from joinery.operator.attendance import Attendance
from joinery.operator.authority import Signer
from joinery.operator.children import GATEWAY_PORT, accepted_of, is_owned
from joinery.operator.events import Reason
from joinery.operator.kube import REFUSALS, Kube, reason_of
from joinery.operator.reconcile import (
    Action,
    Apply,
    Key,
    Outcome,
    Say,
    Seen,
    TellChange,
    Wanted,
    WantReplicas,
    clamped,
    reconcile,
)
from joinery.operator.settings import OperatorSettings
from joinery.operator.status import Picture, held_text, held_until_ns, status_of

log = logging.getLogger(__name__)

ENDED: Final = "every stream has ended; all of it is joined and committed"
BY_HAND: Final = "a person asked for it"
STATUS_S: Final = 2.0
"""A status that changes all the time is written that often."""
SIGN_S: Final = 3600.0
"""How often certificates are looked at."""
_REASONS: Final = {
    EventKind.WORKER_LOST: Reason.WORKER_LOST,
    EventKind.STATE_LOST: Reason.STATE_LOST,
    EventKind.DATA_LOST: Reason.STATE_LOST,
    EventKind.CHECKPOINT_DAMAGED: Reason.CHECKPOINT_FAILED,
}


@dataclass(frozen=True, slots=True)
class LastWords:
    """How a gateway's container ended, and what it left to say."""

    code: int
    text: str

    @property
    def results(self) -> int | None:
        """What the query came to."""
        try:
            return int(json.loads(self.text)["results"])
        except (ValueError, KeyError, TypeError):
            return None


class Watched:
    """What kopf saw of one query's children and pods; written by its loop, read by `step`."""

    def __init__(self) -> None:
        self.pods: dict[str, tuple[str, bool]] = {}
        """Role and readiness by name."""
        self.last_words: LastWords | None = None
        """Of the newest gateway that ended."""
        self.lookup_words: LastWords | None = None
        """Of the newest lookup application that ended."""
        self.versions: dict[Key, str | None] = {}
        """The version of each child; None: it is gone."""

    def cannot_run(self) -> str | None:
        """What a process said that will not run as things are."""
        said = (self.last_words, self.lookup_words)
        return next((words.text for words in said if words is not None and words.code == CANNOT_RUN), None)

    def count(self, role: str) -> int:
        """Pods of a role."""
        return sum(one == role for one, _ in list(self.pods.values()))

    def ready(self) -> dict[str, int]:
        """Pods that are ready, by role."""
        made: dict[str, int] = {}
        for role, is_ready in list(self.pods.values()):
            made[role] = made.get(role, 0) + is_ready
        return made


class Attendant:
    """One JoinQuery's; `wake` is called by threads."""

    def __init__(
        self, kube: Kube, settings: OperatorSettings, signer: Signer, watched: Watched, wake: Callable[[], None]
    ) -> None:
        self._kube, self._settings, self._signer = kube, settings, signer
        self._watched, self._wake = watched, wake
        self._seen: Seen | None = None
        self._applied: dict[Key, tuple[str, str]] = {}
        """Mark and version of each child as it was applied."""
        self._attendance: Attendance | None = None
        self._pending: JoinQuery | None = None
        """Told to the gateway, which has not answered yet."""
        self._pending_since = 0
        """Which connection it was told on: if that broke, so did the question."""
        self._refused: tuple[JoinQuery, str] | None = None
        """What the gateway refused, and why: it is not told again."""
        self._troubles: list[str] = []
        """Children that the API server did not take."""
        self._wish: tuple[int, int] | None = None
        """Workers that a person wants, and until when, which nobody could be told yet."""
        self._held_until_ns = 0
        """Until when the rule decides nothing, because a person scaled the query."""
        self._moves_told = self._events_told = 0
        self._stalled: str | None = None
        self._status: dict[str, Any] = {}
        self._written_s = 0.0
        self._sign_s = 0.0

    def step(self, wanted: Wanted, status: Mapping[str, Any]) -> list[Say]:
        """Look once, do what is to be done; what people should be told."""
        if self._seen is None:
            self._seen = self._recover(wanted, status)
        self._sign(wanted)
        if wanted.is_paused:
            self._leave()
        said = self._hear()
        outcome = reconcile(wanted, self._now(), self._settings)
        self._seen = replace(self._seen, accepted=outcome.query)
        self._troubles = []
        if not any(isinstance(action, TellChange) for action in outcome.actions):
            self._refused = None
        for action in outcome.actions:
            said += self._do(wanted, action)
        if not wanted.is_paused:
            self._attend(wanted, outcome)
        said += self._complain(outcome)
        self._write_status(wanted, outcome, status)
        return said

    @property
    def is_attending(self) -> bool:
        """Whether there may be news at any moment."""
        return self._attendance is not None and self._attendance.is_connected

    def close(self) -> None:
        """The object is gone, or the operator ends."""
        self._leave()

    def _leave(self) -> None:
        """Decide nothing any more."""
        if self._attendance is not None:
            self._attendance.close()
            self._attendance = None

    # --- seeing

    def _recover(self, wanted: Wanted, status: Mapping[str, Any]) -> Seen:
        """What an operator before us has done."""
        held = self._kube.read("v1", "ConfigMap", wanted.namespace, f"{wanted.name}-query")
        workers = self._kube.read("apps/v1", "StatefulSet", wanted.namespace, f"{wanted.name}-worker")
        is_ours, accepted = is_owned(held, wanted.uid), accepted_of(held, wanted.uid)
        has_ended = status.get("phase") == "Finished" and accepted is not None
        replicas = workers["spec"]["replicas"] if workers is not None and is_ours and not has_ended else None
        self._held_until_ns = held_until_ns(status)
        self._wish = _wish_of(accepted, replicas, self._held_until_ns)
        return Seen(accepted=accepted, replicas=replicas or None, has_ended=has_ended)

    def _sign(self, wanted: Wanted) -> None:
        """Look now and then whether its certificate is good for a while; else it gets a new one, and its pods roll."""
        if self._seen is not None and time.monotonic() >= self._sign_s:
            certificates = self._signer.certificates(wanted.namespace, wanted.name)
            if self._attendance is not None and certificates != self._seen.certificates:
                self._leave()  # our own for this query is as old: we come back with a new one
                self._wish = _wish_of(self._seen.accepted, self._seen.replicas, self._held_until_ns)
            self._seen = replace(self._seen, certificates=certificates)
            self._sign_s = time.monotonic() + SIGN_S

    def _now(self) -> Seen:
        """What is known, with the children that are still as they were applied."""
        assert self._seen is not None  # noqa: S101 - step has seen to it
        for key in list(self._watched.versions):
            version = self._watched.versions.pop(key)
            if key in self._applied and self._applied[key][1] != version:
                del self._applied[key]
        return replace(self._seen, applied={key: mark for key, (mark, _) in self._applied.items()})

    def _hear(self) -> list[Say]:
        """What the gateway and the machine have said."""
        attended, said = self._attendance, list[Say]()
        if self._seen is None:
            return said
        words = self._watched.last_words
        if words is not None and words.code == 0 and not self._seen.has_ended:  # it ended before we could attend it
            self._seen = replace(self._seen, has_ended=True)
            said.append(Say(Reason.FINISHED, ENDED))
        if attended is None:
            return said
        if attended.connections != self._pending_since:
            self._pending = None
        while attended.answers:
            answer, pending = attended.answers.popleft(), self._pending
            self._pending = None
            if answer.changes.refused and pending is not None:
                self._refused = (pending, "\n".join(str(one) for one in answer.changes.refused))
            elif pending is not None:
                self._seen = replace(self._seen, accepted=pending)
                said.append(Say(Reason.SPEC_CHANGED, _changes_text(answer.changes, answer.record)))
        if attended.scaled and self._watched.count("worker") <= (self._seen.replicas or 0):  # else some still leave
            replicas, because = attended.scaled.popleft()
            grows = replicas >= (self._seen.replicas or 0)
            self._seen = replace(self._seen, replicas=replicas)
            reason = Reason.SCALED_UP if grows else Reason.SCALED_DOWN
            said.append(Say(reason, f"{counted(replicas, 'worker')}, because {because}"))
        if attended.has_ended and not self._seen.has_ended:
            self._seen = replace(self._seen, has_ended=True)
            said.append(Say(Reason.FINISHED, ENDED))
        return said + self._news()

    def _news(self) -> list[Say]:
        """Moves and events that were not told yet."""
        view = self._attendance.view if self._attendance is not None else None
        if view is None:
            return []
        moves, events = view.moves_done - self._moves_told, view.events_seen - self._events_told
        self._moves_told, self._events_told = view.moves_done, view.events_seen
        said = [
            Say(
                Reason.PARTITION_GROUP_MIGRATED,
                f"pg={move.group} {move.source}->{move.target} bytes={move.nbytes} "
                f"pause={round((move.pause_ns or 0) / 1e6)}ms{f' ({move.why})' if move.why else ''}",
            )
            for move in view.moves[-moves:]
            if moves > 0
        ]
        happened = view.events[-events:] if events > 0 else ()
        return said + [Say(_REASONS[one.kind], one.text, is_warning=True) for one in happened if one.kind in _REASONS]

    # --- doing

    def _do(self, wanted: Wanted, action: Action) -> list[Say]:
        match action:
            case Apply():
                return self._apply(action)
            case TellChange():
                self._tell(action)
            case WantReplicas():
                return self._want(wanted, action.replicas)
            case Say():
                return [action]
        return []

    def _apply(self, action: Apply) -> list[Say]:
        is_new = action.key[0] == "ConfigMap" and action.key[1].endswith("-query") and action.key not in self._applied
        try:
            made = self._kube.apply(action.manifest)
        except ApiException as error:
            if error.status not in REFUSALS:
                raise
            self._troubles.append(f"{action.key[0]} {action.key[1]}: {reason_of(error)}")
            return []
        self._applied[action.key] = (action.mark, version_of(made))
        if is_new and self._is_first(made):
            return [Say(Reason.CREATED, "gateway, collector and workers are being started")]
        return []

    @staticmethod
    def _is_first(made: Mapping[str, Any]) -> bool:
        """Whether the object was made by this very call."""
        managed = made["metadata"].get("managedFields", ())
        return all(entry.get("time") == made["metadata"]["creationTimestamp"] for entry in managed)

    def _tell(self, change: TellChange) -> None:
        attended = self._attendance
        is_refused = self._refused is not None and self._refused[0].spec == change.query.spec
        if attended is not None and attended.is_connected and self._pending is None and not is_refused:
            self._pending, self._pending_since, self._refused = change.query, attended.connections, None
            attended.change(change.live)

    def _want(self, wanted: Wanted, replicas: int) -> list[Say]:
        """Write it down first: an operator that takes over from here must know of it."""
        seen = self._seen
        if seen is None or seen.accepted is None:
            return []
        is_auto = seen.accepted.spec.scaling.mode == "Auto"
        until_ns = time.time_ns() + int(self._settings.hold_s * 1e9) if is_auto else 0
        self._kube.patch_status(wanted.namespace, wanted.name, {"scaling": {"heldUntil": held_text(until_ns)}})
        self._held_until_ns = until_ns
        if self._attendance is not None:
            self._attendance.want(replicas, until_ns, BY_HAND)
        elif seen.replicas is None or replicas >= seen.replicas:
            self._seen = replace(seen, replicas=replicas)
        else:  # workers leave drained, and only their gateway can see to that
            self._wish = (replicas, until_ns)
        text = f"{counted(replicas, 'worker')}, as a person asked"
        held = f"; the β-rule decides nothing for {self._settings.hold_s:g} s" if is_auto else ""
        return [Say(Reason.MANUAL_SCALE_HELD, text + held)]

    def _attend(self, wanted: Wanted, outcome: Outcome) -> None:
        """Keep a connection to the gateway while there is something to attend."""
        if outcome.query is None or self._seen is None or self._seen.has_ended:
            return
        if self._seen.replicas is None:
            self._seen = replace(self._seen, replicas=clamped(outcome.query))
        if self._attendance is None and self._watched.count("gateway"):
            address = f"{wanted.name}-gateway.{wanted.namespace}.svc:{GATEWAY_PORT}"
            security = self._signer.security(wanted.namespace, wanted.name)
            self._attendance = Attendance(address, outcome.query.spec, self._seen.replicas or 1, security, self._wake)
            if self._wish is not None:
                self._attendance.want(*self._wish, BY_HAND)
                self._wish = None

    def _complain(self, outcome: Outcome) -> list[Say]:
        """A complaint is told once."""
        refused = None if self._refused is None else self._refused[1]
        stalled = outcome.stalled or refused or self._watched.cannot_run() or "\n".join(self._troubles) or None
        is_new, self._stalled = stalled is not None and stalled != self._stalled, stalled
        return [Say(Reason.VALIDATION_ERROR, stalled or "", is_warning=True)] if is_new else []

    # --- telling

    def _write_status(self, wanted: Wanted, outcome: Outcome, status: Mapping[str, Any]) -> None:
        made = status_of(self._picture(wanted, outcome), self._status or status)
        now_s = time.monotonic()
        if made == self._status or (_gist(made) == _gist(self._status) and now_s < self._written_s + STATUS_S):
            return
        self._kube.patch_status(wanted.namespace, wanted.name, made)
        self._status, self._written_s = made, now_s

    def _picture(self, wanted: Wanted, outcome: Outcome) -> Picture:
        attended, seen, ready = self._attendance, self._seen, self._watched.ready()
        has_ended = seen is not None and seen.has_ended
        desired = 0 if has_ended or outcome.query is None else (seen.replicas if seen else None) or 0
        return Picture(
            name=wanted.name,
            generation=wanted.generation,
            now_ns=time.time_ns(),
            query=outcome.query,
            stalled=self._stalled,
            is_paused=wanted.is_paused,
            has_ended=has_ended,
            desired=desired,
            replicas=self._watched.count("worker"),
            ready=ready,
            is_attended=attended is not None and attended.is_connected,
            view=attended.view if attended is not None else None,
            results=words.results if (words := self._watched.last_words) is not None else None,
            decision=attended.last_decision if attended is not None else None,
            decisions=len(attended.machine.history) if attended is not None else 0,
            held_until_ns=self._held_until_ns,
            is_draining=attended is not None and bool(attended.machine.leaving),
        )


def _wish_of(accepted: JoinQuery | None, replicas: int | None, until_ns: int) -> tuple[int, int] | None:
    """What a person had asked for when an operator before us died; None: nothing, or it is over."""
    if accepted is None or replicas is None:
        return None
    scaling, wanted = accepted.spec.scaling, clamped(accepted)
    if scaling.mode == "Auto" and until_ns <= time.time_ns():
        return None
    return (wanted, until_ns) if until_ns or wanted != replicas else None


def _gist(status: Mapping[str, Any]) -> tuple[Any, ...]:
    """What people and tools wait for: told at once."""
    truths = tuple((one["type"], one["status"], one["reason"]) for one in status.get("conditions", ()))
    return status.get("observedGeneration"), status.get("phase"), status.get("desiredReplicas"), truths


def version_of(made: Mapping[str, Any]) -> str:
    """What changes when somebody changes an object: its generation, if it has one, else its version."""
    metadata = made["metadata"]
    return str(metadata.get("generation") or metadata.get("resourceVersion"))


def _changes_text(changes: Any, record: int | None) -> str:
    parts = [f"{one.field} {one.found} -> {one.wanted}" for one in (*changes.logged, *changes.at_once)]
    after = f", from record {record} on" if record is not None else ""
    return f"{', '.join(parts) or 'nothing'}{after}"
