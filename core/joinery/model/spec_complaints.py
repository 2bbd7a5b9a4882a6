"""From pydantic's errors to ours: each names the field by its YAML path, what was found, what is wanted, and a remedy.

The remedy is taken from the models themselves: the default of a field ("leave it out for 60"), its example, or, for an
unknown name, the nearest known one. So a new field explains itself without a line here.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from joinery.model.complaints import BadValue, did_you_mean, show
from joinery.model.errors import Complaint
from joinery.model.spec_fields import Section

Place = tuple[int | str, ...]

NOT_YET: Final = {
    "routing": "tuple routing",
    "table": "joins with a stored table",
    "kafka": "Kafka",
    "emit": "early results",
    "aggregate": "aggregates over results",
}
"""Fields of a later round: refused until they work."""

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
    "invalid_key": "a text as key",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "too_short": "at least {min_length} entries",
    "too_long": "at most {max_length} entries",
    "string_too_short": "at least {min_length} character",
    "string_too_long": "at most {max_length} characters",
}


def path_of(place: Place) -> str:
    """`("streams", 1, "window")` as `streams[1].window`."""
    parts = [f"[{step}]" if isinstance(step, int) else f".{str(step)[:80]}" for step in place]
    return "".join(parts).lstrip(".")


def complaints_of(model: type[Section], error: ValidationError, root: Place) -> Iterator[tuple[Place, Complaint]]:
    """Each of pydantic's errors as its place below the model and its complaint."""
    for detail in error.errors(include_url=False):
        if detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]:
            continue  # only the entries that are broken themselves are missing
        yield tuple(step for step in detail["loc"] if step != "[key]"), _complaint(model, detail, root)


def _complaint(model: type[Section], detail: ErrorDetails, root: Place) -> Complaint:
    place: Place = tuple(step for step in detail["loc"] if step != "[key]")
    field = path_of((*root, *place)) or "the query"
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, BadValue):
        return cause.complaint(field)
    owner = section_at(model, place[:-1])
    name = place[-1] if place else ""
    if detail["type"] == "extra_forbidden":
        return _unknown(field, str(name), owner)
    if detail["type"] == "missing":
        return Complaint(field, "nothing", _described(owner, name), f"add {name}: {_example(owner, name)}")
    return Complaint(field, show(detail["input"]), _wanted(detail), _remedy(owner, name, detail))


def _unknown(field: str, name: str, owner: type[Section] | None) -> Complaint:
    if name in NOT_YET:
        return Complaint(
            field, f"the field {name}", f"no {NOT_YET[name]}: not yet", "leave it out; it comes in a later version"
        )
    known = [info.alias or attribute for attribute, info in owner.model_fields.items()] if owner else []
    return Complaint(field, f"the unknown field {show(name)}", "a field of a JoinQuery", did_you_mean(name, known))


def _wanted(detail: ErrorDetails) -> str:
    context: dict[str, Any] = detail.get("ctx", {})
    if detail["type"] == "literal_error":
        return str(context["expected"]).replace("'", "")
    template = _WANTED.get(detail["type"])
    return template.format(**context) if template else detail["msg"]


def _remedy(owner: type[Section] | None, name: int | str, detail: ErrorDetails) -> str:
    if detail["type"] == "invalid_key":
        return f'quote it: "{show(detail["input"])}"'
    if detail["type"] == "literal_error" and isinstance(detail["input"], str):
        expected = str(detail["ctx"]["expected"]).replace(" or ", ", ").replace("'", "").split(", ")
        return did_you_mean(detail["input"], expected)
    default = default_text(owner, name)
    return f"leave it out for {default}" if default is not None else f"write for example {_example(owner, name)}"


def default_text(owner: type[Section] | None, name: int | str) -> str | None:
    """The default of a field as a user would write it; None if it has none, or none that fits on a line."""
    default = owner.defaults().get(str(name)) if owner else None
    return show(default).strip("'") if isinstance(default, (str, int, float)) and default != "" else None


def _example(owner: type[Section] | None, name: int | str) -> str:
    info = field_at(owner, name)
    return _flow(info.examples[0]) if info and info.examples else "a value of that kind"


def _flow(value: object) -> str:
    """A value in YAML's one-line form."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(held)}" for key, held in value.items()) + "}"
    return "[" + ", ".join(map(_flow, value)) + "]" if isinstance(value, list) else str(value)


def _described(owner: type[Section] | None, name: int | str) -> str:
    info = field_at(owner, name)
    sentence = re.split("[;:.]", info.description if info and info.description else "a value")[0]
    return sentence[0].lower() + sentence[1:]


def field_at(owner: type[Section] | None, name: int | str) -> FieldInfo | None:
    """The field of a section by its name in YAML."""
    infos = owner.model_fields.items() if owner else ()
    return next((info for attribute, info in infos if name == (info.alias or attribute)), None)


def section_at(model: type[Section], place: Place) -> type[Section] | None:
    """The section of the models that a place lies in; None if no field leads there."""
    here: type[Section] | None = model
    for step in place:
        if isinstance(step, str):
            info = field_at(here, step)
            here = section_in(info.annotation) if info else None
    return here


def section_in(annotation: object) -> type[Section] | None:
    """The section that an annotation such as `tuple[StreamSpec, ...]` or `TimeSpec | None` speaks of."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    found: Iterable[type[Section] | None] = (section_in(part) for part in get_args(annotation))
    return next((section for section in found if section is not None), None)
