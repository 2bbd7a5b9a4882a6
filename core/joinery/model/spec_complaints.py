"""From pydantic's errors to ours: each names the field by its YAML path, what was found, what is wanted, and a remedy.

The remedies are those of `spec_remedies`, or, for an unknown name, the nearest known one. Complaints with one cause are
one complaint: a field that is missing because its name is misspelt is not told twice.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from joinery.model.complaints import BadValue, did_you_mean, show
from joinery.model.errors import Complaint
from joinery.model.spec_fields import Section
from joinery.model.spec_lookup import Owner, Place, example, field_at, field_names, plain, section_at
from joinery.model.spec_remedies import WITHOUT_COMMAS, choices_of, meant_by, remedy_of
from joinery.model.spec_sections import SinkSpec, SourceSpec

NOT_YET: Final = {
    "routing": "tuple routing",
    "kafka": "Kafka",
    "emit": "early results",
    "aggregate": "aggregates over results",
}
"""Fields of a later round: refused until they work."""

_INSTEAD_OF_KAFKA: Final[dict[Owner, tuple[str, str]]] = {
    SourceSpec: (
        "file, redisStream, generator or gRPC push",
        "leave source out and push the rows over gRPC, or read a Redis Stream",
    ),
    SinkSpec: ("file, redisStream, stdout or count", "write to a Redis Stream or a file instead"),
}

_WANTED: Final = {
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "a text",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "finite_number": "a finite number",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "too_short": "at least {min_length} {entries}",
    "too_long": "at most {max_length} {entries}",
    "string_too_short": "at least {min_length} {characters}",
    "string_too_long": "at most {max_length} {characters}",
}


def path_of(place: Place) -> str:
    """`("streams", 1, "window")` as `streams[1].window`."""
    parts = [f"[{step}]" if isinstance(step, int) else f".{str(step)[:80]}" for step in place]
    return "".join(parts).lstrip(".")


def complaints_of(
    model: type[Section], error: ValidationError, root: Place, raw: Mapping[Any, Any]
) -> Iterator[tuple[Place, Complaint]]:
    """Each of pydantic's errors as its place below the model and its complaint; the same complaint for one cause."""
    details = error.errors(include_url=False)
    misspelt = _misspelt(model, details)
    for detail in details:
        if detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]:
            continue  # only the entries that are broken themselves are missing
        place = _place(detail)
        cause = misspelt.get(place, detail) if detail["type"] == "missing" else detail
        yield place, _within_its_stream(_complaint(model, cause, root), raw, place)


def _place(detail: ErrorDetails) -> Place:
    return tuple(step for step in detail["loc"] if step != "[key]")


def _misspelt(model: type[Section], details: list[ErrorDetails]) -> dict[Place, ErrorDetails]:
    """Unknown fields by the place of the field that they probably mean."""
    found = {}
    for detail in details:
        *section, name = _place(detail) or ("",)
        if detail["type"] == "extra_forbidden":
            meant = meant_by(str(name), field_names(section_at(model, tuple(section))))
            if meant is not None:
                found[(*section, meant)] = detail
    return found


def _within_its_stream(complaint: Complaint, raw: Any, place: Place) -> Complaint:
    """The complaint with the name of the stream that the place lies in: nobody counts streams from 0."""
    below = place[1:] if place[:1] == ("spec",) else place
    if below[:1] != ("streams",) or len(below) < 3 or below[2] == "name":
        return complaint
    for step in place[: len(place) - len(below) + 2]:
        raw = raw[step]
    name = raw.get("name")
    if not isinstance(name, str):
        return complaint
    return Complaint(complaint.field, f"{complaint.found} in stream {name[:63]}", complaint.wanted, complaint.remedy)


def _complaint(model: type[Section], detail: ErrorDetails, root: Place) -> Complaint:
    place = _place(detail)
    field = path_of((*root, *place)) or "the query"
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, BadValue):
        return cause.complaint(field)
    owner = section_at(model, place[:-1])
    name = place[-1] if place else ""
    if detail["type"] == "invalid_key" or (detail["type"] == "extra_forbidden" and str(name).isdecimal()):
        key = show(detail["input"]) if detail["type"] == "invalid_key" else str(name)
        return _no_name(path_of((*root, *place[:-1])) or "the query", key, owner)
    if detail["type"] == "extra_forbidden":
        return _unknown(field, str(name), owner)
    if detail["type"] == "missing":
        return Complaint(field, "nothing", _described(owner, name), f"add {name}: {example(owner, name)}")
    return Complaint(field, show(detail["input"]), _wanted(detail), remedy_of(owner, name, detail))


def _no_name(field: str, name: str, owner: Owner) -> Complaint:
    """A key that no field can have; a number comes from `{rows: 300,000}`, which YAML takes for two entries."""
    remedy = WITHOUT_COMMAS if name.isdecimal() else did_you_mean(name, field_names(owner))
    return Complaint(field, f"{name[:80]} as a field", "a field of a JoinQuery", remedy)


def _unknown(field: str, name: str, owner: Owner) -> Complaint:
    if name == "kafka" and owner in _INSTEAD_OF_KAFKA:
        wanted, remedy = _INSTEAD_OF_KAFKA[owner]
        return Complaint(field, name, f"{wanted} (Kafka is not yet supported)", remedy)
    if name in NOT_YET:
        wanted = f"a query without {NOT_YET[name]}, not yet supported"
        return Complaint(field, f"the field {name}", wanted, "leave it out; it comes in a later version")
    known = field_names(owner)
    meant = meant_by(name, known)
    remedy = f"did you mean {meant}?" if meant is not None else did_you_mean(name, known)
    return Complaint(field, f"the unknown field {show(name)}", "a field of a JoinQuery", remedy)


def _wanted(detail: ErrorDetails) -> str:
    context: dict[str, Any] = detail.get("ctx", {})
    if detail["type"] == "literal_error":
        *others, last = choices_of(detail)
        return f"{', '.join(others)} or {last}" if others else last
    template = _WANTED.get(detail["type"])
    if template is None:
        return detail["msg"]
    one = 1 in (context.get("min_length"), context.get("max_length"))
    nouns = {"entries": "entry" if one else "entries", "characters": "character" if one else "characters"}
    return template.format(**{key: plain(value) for key, value in context.items()}, **nouns)


def _described(owner: Owner, name: int | str) -> str:
    info = field_at(owner, name)
    sentence = re.split("[;:.]", info.description if info and info.description else "a value")[0]
    return sentence[0].lower() + sentence[1:]
