"""The wire of gateway and collector, and of gateway and operator (control.proto).

Both call the same method. `Attending`, the first message of a connection, says who does, so that the gateway's shell
knows the peer's name; it is the only one that no machine sees.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from joinery.adapters.codec.changes import read_changed, read_spec_now, spec_in, write_changed, write_spec_now
from joinery.adapters.codec.fields import choice, chosen, i64, number, numbers, text, texts, vector
from joinery.adapters.codec.frames import pack, parse
from joinery.adapters.codec.looking import (
    read_decided,
    read_load,
    read_look,
    read_looked,
    write_decided,
    write_load,
    write_look,
    write_looked,
)
from joinery.adapters.codec.overview import read_overview, write_overview
from joinery.adapters.codec.shared import (
    read_committed,
    read_ping,
    read_pong,
    read_totals,
    read_windows,
    write_committed,
    write_ping,
    write_pong,
    write_totals,
    write_windows,
)
from joinery.join.plan import JoinPlan
from joinery.machine.messages import (
    ChangeQuery,
    ChangeSpec,
    ClusterReport,
    CollectorHello,
    Committed,
    Decided,
    Drain,
    Drained,
    Empty,
    EndStreams,
    Finished,
    Look,
    Looked,
    MoveGroup,
    Overview,
    Owners,
    Ping,
    Pong,
    QueryChanged,
    SpecNow,
    StreamsEnded,
    Vector,
)
from joinery.model.ids import GroupId, RecordNo, Term, WorkerId
from joinery.model.spec_change import write_spec
from joinery.v1 import common_pb2
from joinery.v1 import control_pb2 as wire


class Party(StrEnum):
    """Who attends."""

    COLLECTOR = "collector"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Attending:
    """The first message of a connection to the gateway's control."""

    party: Party


ToGateway = (
    Attending | CollectorHello | Vector | Committed | Finished | Drain | MoveGroup | ChangeSpec | Pong | ChangeQuery
    | EndStreams | Look | Decided
)  # fmt: skip
FromGateway = (
    Owners | Drained | ClusterReport | Empty | Finished | Ping | Overview | SpecNow | QueryChanged | StreamsEnded
    | Looked
)  # fmt: skip

_PARTY_TO_WIRE: Final = {Party.COLLECTOR: wire.PARTY_COLLECTOR, Party.OPERATOR: wire.PARTY_OPERATOR}
_PARTIES: Final = {number: party for party, number in _PARTY_TO_WIRE.items()}


def encode_to_gateway(message: ToGateway) -> bytes:
    """The bytes of a message of the collector or the operator."""
    return pack(_to_gateway(message))


def _to_gateway(message: ToGateway) -> wire.AttendantToGateway:
    match message:
        case Attending():
            return wire.AttendantToGateway(attending=wire.Attending(party=_PARTY_TO_WIRE[message.party]))
        case CollectorHello():
            return wire.AttendantToGateway(collector_hello=wire.CollectorHello(term=message.term))
        case Vector():
            vector = wire.Vector(
                term=message.term,
                versions=i64(message.versions),
                committed=i64(message.committed),
                seen=i64(message.seen),
                totals=write_totals(message.totals),
            )
            return wire.AttendantToGateway(vector=vector)
        case Committed():
            return wire.AttendantToGateway(committed=write_committed(message))
        case Finished():
            return wire.AttendantToGateway(finished=common_pb2.Finished())
        case Drain():
            return wire.AttendantToGateway(drain=wire.Drain(workers=message.workers))
        case MoveGroup():
            return wire.AttendantToGateway(move_group=wire.MoveGroup(group=message.group, to_worker=message.to))
        case ChangeSpec():
            change = wire.ChangeSpec(
                version=message.version,
                windows=write_windows(message.windows),
                lateness_ns=message.lateness_ns,
                idle_timeout_ns=message.idle_timeout_ns,
            )
            return wire.AttendantToGateway(change_spec=change)
        case Pong():
            return wire.AttendantToGateway(pong=write_pong(message))
        case ChangeQuery():
            wanted = write_spec(message.spec, whole=True)
            return wire.AttendantToGateway(change_query=wire.ChangeQuery(spec_json=wanted))
        case EndStreams():
            return wire.AttendantToGateway(end_streams=wire.EndStreams())
        case Look():
            return wire.AttendantToGateway(look=write_look(message))
        case Decided():
            return wire.AttendantToGateway(decided=write_decided(message))


def decode_to_gateway(data: bytes, plan: JoinPlan) -> ToGateway:
    """A message of the collector or the operator."""
    kind, message = chosen(parse(wire.AttendantToGateway, data))
    match kind:
        case "attending":
            return Attending(choice("Attending.party", message.party, _PARTIES))
        case "collector_hello":
            return CollectorHello(Term(number(message, "term")))
        case "vector":
            names = ("versions", "committed", "seen")
            versions, committed, seen = (vector(message, name, plan.partitions) for name in names)
            return Vector(Term(number(message, "term")), versions, committed, seen, read_totals(message, plan))
        case "committed":
            return read_committed(message, plan)
        case "finished":
            return Finished()
        case "drain":
            return Drain(_workers(message))
        case "move_group":
            group = GroupId(number(message, "group", 0, plan.partitions - 1))
            return MoveGroup(group, WorkerId(text(message, "to_worker")))
        case "pong":
            return read_pong(message)
        case "change_query":
            return ChangeQuery(spec_in(message))
        case "end_streams":
            return EndStreams()
        case "look":
            return read_look(message)
        case "decided":
            return read_decided(message, plan)
        case _:
            return ChangeSpec(
                number(message, "version"),
                read_windows(message.windows, plan),
                numbers(message, "lateness_ns", plan.streams, low=0),
                numbers(message, "idle_timeout_ns", plan.streams, low=0),
            )


def encode_from_gateway(message: FromGateway) -> bytes:
    """The bytes of the gateway's message to the collector or the operator."""
    return pack(_from_gateway(message))


def _from_gateway(message: FromGateway) -> wire.GatewayToAttendant:
    match message:
        case Owners():
            return wire.GatewayToAttendant(owners=wire.Owners(term=message.term, versions=i64(message.versions)))
        case Drained():
            return wire.GatewayToAttendant(drained=wire.Drained(term=message.term))
        case ClusterReport():
            return wire.GatewayToAttendant(cluster_report=write_load(message.load))
        case Empty():
            return wire.GatewayToAttendant(empty=wire.Empty(workers=message.workers))
        case Finished():
            return wire.GatewayToAttendant(finished=common_pb2.Finished())
        case Ping():
            return wire.GatewayToAttendant(ping=write_ping(message))
        case Overview():
            return wire.GatewayToAttendant(overview=write_overview(message))
        case SpecNow():
            return wire.GatewayToAttendant(spec_now=write_spec_now(message))
        case QueryChanged():
            return wire.GatewayToAttendant(query_changed=write_changed(message))
        case StreamsEnded():
            return wire.GatewayToAttendant(streams_ended=wire.StreamsEnded(record=message.record))
        case Looked():
            return wire.GatewayToAttendant(looked=write_looked(message))


def decode_from_gateway(data: bytes, plan: JoinPlan) -> FromGateway:
    """The gateway's message."""
    kind, message = chosen(parse(wire.GatewayToAttendant, data))
    match kind:
        case "owners":
            return Owners(Term(number(message, "term")), vector(message, "versions", plan.partitions))
        case "drained":
            return Drained(Term(number(message, "term")))
        case "cluster_report":
            return ClusterReport(read_load(message, plan))
        case "empty":
            return Empty(_workers(message))
        case "ping":
            return read_ping(message)
        case "overview":
            return read_overview(message, plan)
        case "spec_now":
            return read_spec_now(message)
        case "query_changed":
            return read_changed(message)
        case "streams_ended":
            return StreamsEnded(RecordNo(number(message, "record")))
        case "looked":
            return read_looked(message)
        case _:
            return Finished()


def _workers(message: wire.Drain | wire.Empty) -> tuple[WorkerId, ...]:
    return tuple(WorkerId(name) for name in texts(message, "workers"))
