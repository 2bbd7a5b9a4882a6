"""Looking: what anybody may ask the gateway of a running query, and what the operator tells it to be looked at.

Nothing is decided by any of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from joinery.elastic.beta import Decision, Grow, Keep, Shrink
from joinery.elastic.guarded import Wish
from joinery.elastic.load import ClusterLoad
from joinery.machine.messages.overview import Overview
from joinery.model.ids import GroupId, RecordNo, Term, WorkerId
from joinery.model.spec import JoinQuerySpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision about the degree as it is told: what, why, and the load that it was made from."""

    at_ns: int
    load: ClusterLoad
    """Without the groups; its degree is the number of workers that had been asked for."""
    wish: Wish
    by: int
    because: str
    blocked_by: tuple[str, ...] = ()
    blocked_until_ns: int | None = None

    @classmethod
    def of(cls, at_ns: int, load: ClusterLoad, decision: Decision) -> "Decided":
        """A decision that was made at this load."""
        blocked = (decision.blocked_by, decision.blocked_until_ns) if isinstance(decision, Keep) else ((), None)
        wish = Wish.GROW if isinstance(decision, Grow) else Wish.SHRINK if isinstance(decision, Shrink) else Wish.KEEP
        reports = tuple(replace(one, groups=()) for one in load.reports)
        return cls(
            at_ns=at_ns, load=replace(load, reports=reports, degree=decision.inputs.degree), wish=wish,
            by=0 if isinstance(decision, Keep) else decision.by, because=decision.because,
            blocked_by=blocked[0], blocked_until_ns=blocked[1],
        )  # fmt: skip

    def words(self) -> str:
        """What was decided, and why."""
        if self.wish is not Wish.KEEP:
            return f"{self.by} {'more' if self.wish is Wish.GROW else 'fewer'}: {self.because}"
        held = f" (held back by {', '.join(self.blocked_by)})" if self.blocked_by else ""
        return f"keep {self.load.degree}: {self.because}{held}"


def last_act(decisions: Iterable[Decided]) -> Decided | None:
    """The last of them that changed the degree."""
    acted = [one for one in decisions if one.wish is not Wish.KEEP]
    return acted[-1] if acted else None


class Station(StrEnum):
    """How far the rows that a record gives to a group are."""

    WAITING = "waiting"
    """Recorded; in the gateway's mini-buffer."""
    MOVING = "moving"
    """Recorded; the group has no owner that is served, it changes hands."""
    SENT = "sent"
    """On the way to the worker, in its buffer, or being joined."""
    JOINED = "joined"
    """Joined; the results are with the collector or on their way to it, and not committed."""
    COMMITTED = "committed"
    LOST = "lost"
    """The group's state is lost: it is never joined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlace:
    """The rows of a record for one group."""

    group: GroupId
    rows: int
    station: Station
    worker: WorkerId | None
    """The group's owner; None: it has none."""
    sent: int
    """The last record that the owner was sent."""
    committed: int
    """The last record that is committed for the group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPlace:
    """Where one record is."""

    record: RecordNo
    is_recorded: bool
    is_kept: bool = False
    """False: its rows are committed and checkpointed for every group, and the gateway holds them no more."""
    groups: tuple[GroupPlace, ...] = ()
    """Those that it has rows for."""


@dataclass(frozen=True, slots=True)
class Look:
    """Somebody wants to see the query, and perhaps where a record is; the gateway answers with `Looked`."""

    record: RecordNo | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """The query as it is now."""

    term: Term
    spec: JoinQuerySpec
    """In force."""
    view: Overview
    decisions: tuple[Decided, ...] = ()
    """The newest that the operator told this gateway, the oldest first."""
    place: RecordPlace | None = None
    """None: it was not asked for."""
