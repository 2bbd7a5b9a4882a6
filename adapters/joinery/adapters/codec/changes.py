"""Changes of a running query on the wire (control.proto; `SpecNow` also in exchange.proto). A spec travels as JSON."""

from typing import Any, Final

from joinery.adapters.codec.errors import WireError
from joinery.adapters.codec.fields import LONGEST_TEXT, maybe_number, number, text, where_of
from joinery.machine.messages import QueryChanged, SpecNow
from joinery.model.errors import BadSpec, Complaint
from joinery.model.ids import RecordNo, Term
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import FieldChange, SpecChanges, read_spec, write_spec
from joinery.v1 import common_pb2
from joinery.v1 import control_pb2 as wire

_LONGEST_SPEC: Final = 1 << 22


def spec_in(message: Any) -> JoinQuerySpec:
    """The spec of a message."""
    found = text(message, "spec_json", _LONGEST_SPEC)
    try:
        return read_spec(found)
    except BadSpec as bad:
        raise WireError(where_of(message, "spec_json"), f"a spec that cannot run ({bad})", "one that can") from bad
    except (ValueError, RecursionError) as error:
        raise WireError(where_of(message, "spec_json"), "no JSON", "a spec as JSON") from error


def write_spec_now(message: SpecNow) -> common_pb2.SpecNow:
    """The spec in force."""
    return common_pb2.SpecNow(term=message.term, spec_json=write_spec(message.spec))


def read_spec_now(message: common_pb2.SpecNow) -> SpecNow:
    """The spec in force."""
    return SpecNow(Term(number(message, "term")), spec_in(message))


def write_changed(message: QueryChanged) -> wire.QueryChanged:
    """What was changed, or refused."""
    found = message.changes
    return wire.QueryChanged(
        logged=[_write_field(one) for one in found.logged],
        at_once=[_write_field(one) for one in found.at_once],
        refused=[
            wire.FieldRefused(field=one.field, found=one.found, wanted=one.wanted, remedy=one.remedy)
            for one in found.refused
        ],
        record=message.record,
    )


def _write_field(one: FieldChange) -> wire.FieldChange:
    return wire.FieldChange(field=one.field, found=one.found, wanted=one.wanted)


def read_changed(message: wire.QueryChanged) -> QueryChanged:
    """What was changed, or refused."""
    refused = tuple(Complaint(*_texts(one, "field", "found", "wanted", "remedy")) for one in message.refused)
    logged, at_once = (
        tuple(FieldChange(*_texts(one, "field", "found", "wanted")) for one in part)
        for part in (message.logged, message.at_once)
    )
    record = maybe_number(message, "record")
    return QueryChanged(SpecChanges(logged, at_once, refused), None if record is None else RecordNo(record))


def _texts(message: Any, *names: str) -> list[str]:
    return [text(message, name, LONGEST_TEXT) for name in names]
