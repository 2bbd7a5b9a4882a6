"""What is to be done about one JoinQuery: a pure function of what is wanted and what was seen (level-based).

Rule 1: the query in force is the last one that was accepted; its ConfigMap holds it. An object that cannot be read, or
        asks for what a running query cannot change, changes nothing: the query in force goes on, and the object is
        `Stalled` with every complaint.
Rule 2: what a running query can change is told to its gateway first. Only when that has answered is it accepted; so an
        operator that dies in between tells it again, which does no harm.
        What is read at the start of a process only is rolled: the pods carry a mark of it.
Rule 3: a number of workers that a person wrote (`spec.replicas`, `kubectl scale`) is wanted for a while: until then the
        β-rule decides nothing. It is clamped to scaling.min and max, since /scale passes no check of ours.
Rule 4: every child is applied whole whenever what it should be, or what it is, has changed.
Rule 5: a query that has ended has no pods. A paused one is left as it is.
Rule 6: a query with a stored table needs Spark. Where the release has none it is not begun, or left as it is, and says
        so.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from joinery.model.errors import BadSpec
from joinery.model.spec import JoinQuery, JoinQuerySpec
from joinery.model.spec_change import changes, restarted
from joinery.operator.children import Manifest, Parent, children_of
from joinery.operator.events import Reason
from joinery.operator.lookup_children import lookup_children_of
from joinery.operator.settings import OperatorSettings
from joinery.operator.spark_pods import NO_SPARK

PAUSED: Final = "joinery.dev/paused"
Key: TypeAlias = tuple[str, str]
"""Kind and name of a child."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The object, as the API server has it."""

    namespace: str
    name: str
    uid: str
    generation: int
    spec: Mapping[str, Any]
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_paused(self) -> bool:
        return self.annotations.get(PAUSED, "").lower() == "true"

    def query(self) -> JoinQuery:
        """Checked by the same parser as a file; `BadSpec` with every complaint."""
        metadata = {"name": self.name, "namespace": self.namespace}
        raw = {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": metadata, "spec": self.spec}
        return JoinQuery.parse(raw)


def wanted_of(body: Mapping[str, Any]) -> Wanted:
    """The object as it is now."""
    metadata = body["metadata"]
    return Wanted(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 0),
        spec=_plain(body.get("spec") or {}),
        annotations=dict(metadata.get("annotations") or {}),
    )


def _plain(value: Any) -> Any:
    """A watcher's views as plain dicts and lists."""
    if hasattr(value, "items"):
        return {key: _plain(held) for key, held in value.items()}
    return [_plain(held) for held in value] if isinstance(value, (list, tuple)) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What there is."""

    accepted: JoinQuery | None = None
    """The query in force; None: there is none yet."""
    replicas: int | None = None
    """Workers that the β-rule or a person asked for last; None: nobody has."""
    applied: Mapping[Key, str] = field(default_factory=dict)
    """Marks of the children as they were applied, of those that are still so."""
    certificates: Mapping[str, str] = field(default_factory=dict)
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply of a child."""

    key: Key
    manifest: Manifest
    mark: str


@dataclass(frozen=True, slots=True)
class TellChange:
    """Tell the gateway of a changed query; once it has answered, the query is accepted."""

    query: JoinQuery
    live: JoinQuerySpec
    """What the gateway is told."""


@dataclass(frozen=True, slots=True)
class WantReplicas:
    """A person wants so many workers."""

    replicas: int


@dataclass(frozen=True, slots=True)
class Say:
    """An event of the object."""

    reason: Reason
    text: str
    is_warning: bool = False


Action: TypeAlias = Apply | TellChange | WantReplicas | Say


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is to be done, and what is wrong with the object."""

    query: JoinQuery | None
    """The query in force."""
    actions: tuple[Action, ...] = ()
    stalled: str | None = None


def reconcile(wanted: Wanted, seen: Seen, settings: OperatorSettings) -> Outcome:
    """What is to be done now."""
    if wanted.is_paused:
        return Outcome(query=seen.accepted)
    try:
        query = wanted.query()
    except BadSpec as bad:
        return _with_children(wanted, seen, settings, Outcome(query=seen.accepted, stalled=str(bad)))
    if _lacks_spark(query, settings):
        return Outcome(query=seen.accepted, stalled=NO_SPARK)
    if seen.accepted is None or seen.has_ended:
        return _with_children(wanted, seen, settings, Outcome(query=seen.accepted or query))
    return _with_children(wanted, seen, settings, _changed(seen.accepted, query))


def _changed(old: JoinQuery, new: JoinQuery) -> Outcome:
    """Rules 1 to 3."""
    if old.spec == new.spec:
        return Outcome(query=old)
    if complaints := refusals(old, new):
        return Outcome(query=old, stalled="\n".join(complaints))
    scaled = new.spec.replicas != old.spec.replicas
    actions: tuple[Action, ...] = (WantReplicas(clamped(new)),) if scaled else ()
    live = _live(old, new)
    if live == old.spec:
        return Outcome(query=new, actions=actions)
    resized = old.spec.model_copy(update={"replicas": new.spec.replicas})
    return Outcome(query=old.model_copy(update={"spec": resized}), actions=(*actions, TellChange(new, live)))


def clamped(query: JoinQuery) -> int:
    """The number of workers that a person asked for, within the bounds."""
    return query.spec.asked_workers


def _live(old: JoinQuery, new: JoinQuery) -> JoinQuerySpec:
    """What the gateway is told: without what is read at a start (the pods are rolled), and the number of workers."""
    return restarted(new.spec, old.spec).model_copy(update={"replicas": old.spec.replicas})


def refusals(old: JoinQuery, new: JoinQuery) -> list[str]:
    """What a running query cannot change."""
    return [str(complaint) for complaint in changes(restarted(old.spec, new.spec), new.spec).refused]


def _with_children(wanted: Wanted, seen: Seen, settings: OperatorSettings, outcome: Outcome) -> Outcome:
    """Rules 4 to 6."""
    if outcome.query is None or _lacks_spark(outcome.query, settings):
        return outcome
    replicas = clamped(outcome.query) if seen.replicas is None else seen.replicas
    parent = Parent(
        query=outcome.query, namespace=wanted.namespace, uid=wanted.uid, replicas=replicas, stopped=seen.has_ended,
        certificate=seen.certificates.get("tls.crt", ""),
    )  # fmt: skip
    made = []
    for manifest in (*children_of(parent, settings, dict(seen.certificates)), *lookup_children_of(parent, settings)):
        key, mark = (manifest["kind"], manifest["metadata"]["name"]), mark_of(manifest)
        if seen.applied.get(key) != mark:
            made.append(Apply(key, manifest, mark))
    return replace(outcome, actions=(*outcome.actions, *made))


def _lacks_spark(query: JoinQuery, settings: OperatorSettings) -> bool:
    return query.spec.table is not None and not settings.spark_image


def mark_of(manifest: Manifest) -> str:
    """A short text that differs if manifests do."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:16]
