"""What the models themselves know of a field: its section, its default, and an example as a user would write it.

So a new field explains itself: whoever writes a model gives it a default or an example, and every complaint about the
field can show it.
"""

from collections.abc import Iterable
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from joinery.model.complaints import show
from joinery.model.spec_fields import Section

Place = tuple[int | str, ...]
Owner = type[Section] | None


def field_at(owner: Owner, name: int | str) -> FieldInfo | None:
    """The field of a section by its name in YAML."""
    infos = owner.model_fields.items() if owner else ()
    return next((info for attribute, info in infos if name == (info.alias or attribute)), None)


def field_names(owner: Owner) -> list[str]:
    """The names in YAML of the fields of a section."""
    return [info.alias or attribute for attribute, info in owner.model_fields.items()] if owner else []


def required_names(section: type[Section]) -> list[str]:
    """The names in YAML of the fields that a section cannot do without."""
    return [name for name in field_names(section) if (info := field_at(section, name)) and info.is_required()]


def section_at(model: type[Section], place: Place) -> Owner:
    """The section of the models that a place lies in; None if no field leads there."""
    here: Owner = model
    for step in place:
        if isinstance(step, str):
            info = field_at(here, step)
            here = section_in(info.annotation) if info else None
    return here


def section_in(annotation: object) -> Owner:
    """The section that an annotation such as `tuple[StreamSpec, ...]` or `TimeSpec | None` speaks of."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    found: Iterable[Owner] = (section_in(part) for part in get_args(annotation))
    return next((section for section in found if section is not None), None)


def default_text(owner: Owner, name: int | str) -> str | None:
    """The default of a field as a user would write it; None if it has none, or none that fits on a line."""
    default = owner.defaults().get(str(name)) if owner else None
    return plain(default) if isinstance(default, (str, int, float)) and default != "" else None


def plain(value: object) -> str:
    """A value without quotes, and a number without needless digits: 1500, not 1500.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return show(value).strip("'")


def example(owner: Owner, name: int | str) -> str | None:
    """An example of a field in YAML's one-line form; None if the models give none."""
    info = field_at(owner, name)
    if info is None:
        return None
    if info.examples:
        return flow(info.examples[0])
    return section_example(section_in(info.annotation)) or default_text(owner, name)


def section_example(section: Owner) -> str | None:
    """The smallest mapping that shows how a section is written: what it needs, or else its first field."""
    if section is None:
        return None
    required = required_names(section)
    for chosen in [required] if required else [[name] for name in field_names(section)]:
        shown = {name: text for name in chosen if (text := example(section, name)) is not None}
        if len(shown) == len(chosen):
            return "{" + ", ".join(f"{name}: {text}" for name, text in shown.items()) + "}"
    return "{}"


def flow(value: object) -> str:
    """A value in YAML's one-line form."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(held)}" for key, held in value.items()) + "}"
    return "[" + ", ".join(map(flow, value)) + "]" if isinstance(value, list) else str(value)


def takes(owner: Owner, name: int | str, value: Any) -> bool:
    """Whether a field alone would take a value: nothing is proposed that would be refused again."""
    info = field_at(owner, name)
    if info is None:
        return False
    try:
        TypeAdapter(info.rebuild_annotation()).validate_python(value)
    except ValidationError:
        return False
    return True
