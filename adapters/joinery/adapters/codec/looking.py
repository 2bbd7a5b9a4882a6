"""What anybody may ask of a running query, and the operator's decisions, on the wire (control.proto)."""

from typing import Final

from joinery.adapters.codec.changes import read_spec_now, write_spec_now
from joinery.adapters.codec.errors import WireError
from joinery.adapters.codec.fields import LONGEST_TEXT, MIN_I64, choice, flag, inner, maybe_number, number, text, texts
from joinery.adapters.codec.overview import ROLE_TO_WIRE, ROLES, read_overview, write_overview
from joinery.adapters.codec.shared import read_report, write_report
from joinery.elastic.guarded import Wish
from joinery.elastic.load import ClusterLoad
from joinery.join.plan import JoinPlan
from joinery.machine.messages import Decided, GroupPlace, Look, Looked, RecordPlace, SpecNow, Station
from joinery.model.errors import Bug
from joinery.model.ids import GroupId, RecordNo, WorkerId
from joinery.v1 import control_pb2 as wire

_WISH_TO_WIRE: Final = {Wish.GROW: wire.WISH_GROW, Wish.SHRINK: wire.WISH_SHRINK, Wish.KEEP: wire.WISH_KEEP}
_WISHES: Final = {number: wish for wish, number in _WISH_TO_WIRE.items()}
_STATION_TO_WIRE: Final = {
    Station.WAITING: wire.STATION_WAITING,
    Station.MOVING: wire.STATION_MOVING,
    Station.SENT: wire.STATION_SENT,
    Station.JOINED: wire.STATION_JOINED,
    Station.COMMITTED: wire.STATION_COMMITTED,
    Station.LOST: wire.STATION_LOST,
}
_STATIONS: Final = {number: station for station, number in _STATION_TO_WIRE.items()}


def write_look(message: Look) -> wire.Look:
    """A look."""
    return wire.Look(record=message.record)


def read_look(message: wire.Look) -> Look:
    """A look."""
    found = maybe_number(message, "record")
    return Look(None if found is None else RecordNo(found))


def write_looked(message: Looked) -> wire.Looked:
    """The answer to it."""
    return wire.Looked(
        now=write_spec_now(SpecNow(message.term, message.spec)),
        view=write_overview(message.view),
        decisions=[write_decided(one) for one in message.decisions],
        place=None if message.place is None else _write_place(message.place),
    )


def read_looked(message: wire.Looked) -> Looked:
    """The answer to it, by the plan that it brings."""
    now = read_spec_now(inner(message, "now"))
    plan = JoinPlan.of(now.spec)
    return Looked(
        term=now.term,
        spec=now.spec,
        view=read_overview(inner(message, "view"), plan),
        decisions=tuple(read_decided(one, plan) for one in message.decisions),
        place=_read_place(message.place, plan) if message.HasField("place") else None,
    )


def write_load(load: ClusterLoad) -> wire.ClusterReport:
    """The load of all workers."""
    return wire.ClusterReport(
        reports=[write_report(one) for one in load.reports],
        roles=[ROLE_TO_WIRE[role] for role in load.roles],
        degree_workers=load.degree,
    )


def read_load(message: wire.ClusterReport, plan: JoinPlan) -> ClusterLoad:
    """The load of all workers."""
    reports = tuple(read_report(one, plan) for one in message.reports)
    roles = tuple(choice("ClusterReport.roles", role, ROLES) for role in message.roles)
    try:
        return ClusterLoad(reports=reports, roles=roles, degree=number(message, "degree_workers"))
    except Bug as error:
        raise WireError("ClusterReport", str(error), "a load that can be") from error


def write_decided(message: Decided) -> wire.Decided:
    """A decision as it is told."""
    return wire.Decided(
        at_ns=message.at_ns,
        load=write_load(message.load),
        wish=_WISH_TO_WIRE[message.wish],
        by_workers=message.by,
        because=message.because,
        blocked_by=message.blocked_by,
        blocked_until_ns=message.blocked_until_ns,
    )


def read_decided(message: wire.Decided, plan: JoinPlan) -> Decided:
    """A decision as it is told."""
    return Decided(
        at_ns=number(message, "at_ns", MIN_I64),
        load=read_load(inner(message, "load"), plan),
        wish=choice("Decided.wish", message.wish, _WISHES),
        by=number(message, "by_workers"),
        because=text(message, "because", LONGEST_TEXT),
        blocked_by=texts(message, "blocked_by"),
        blocked_until_ns=maybe_number(message, "blocked_until_ns", MIN_I64),
    )


def _write_place(place: RecordPlace) -> wire.RecordPlace:
    return wire.RecordPlace(
        record=place.record,
        is_recorded=place.is_recorded,
        is_kept=place.is_kept,
        groups=[
            wire.GroupPlace(
                group=one.group,
                rows=one.rows,
                station=_STATION_TO_WIRE[one.station],
                worker=one.worker,
                sent_record=one.sent,
                committed_record=one.committed,
            )
            for one in place.groups
        ],
    )


def _read_place(message: wire.RecordPlace, plan: JoinPlan) -> RecordPlace:
    return RecordPlace(
        record=RecordNo(number(message, "record")),
        is_recorded=flag(message, "is_recorded"),
        is_kept=flag(message, "is_kept"),
        groups=tuple(_read_group(one, plan) for one in message.groups),
    )


def _read_group(message: wire.GroupPlace, plan: JoinPlan) -> GroupPlace:
    return GroupPlace(
        group=GroupId(number(message, "group", 0, plan.partitions - 1)),
        rows=number(message, "rows"),
        station=choice("GroupPlace.station", message.station, _STATIONS),
        worker=WorkerId(text(message, "worker")) if message.HasField("worker") else None,
        sent=number(message, "sent_record", -1),
        committed=number(message, "committed_record", -1),
    )
