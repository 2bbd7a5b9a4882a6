"""What a user can do about a value that a field refuses.

Rule 1: a remedy says what to write, not what is wrong; that is said already.
Rule 2: what was probably meant comes first ("10k" is 10000, outer is full), if the field would take it; then the
default or the example of the field.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from pydantic_core import ErrorDetails

from joinery.model.complaints import nearest, show
from joinery.model.spec_lookup import (
    Owner,
    default_text,
    example,
    field_at,
    field_names,
    flow,
    plain,
    required_names,
    section_example,
    section_in,
    takes,
)

WITHOUT_COMMAS: Final = "take it out; if it is a part of a number, write numbers without commas"

_SYNONYMS: Final = {
    "outer": "full", "full outer": "full", "fullouter": "full", "left outer": "left", "right outer": "right",
    "exists": "semi", "not exists": "anti",
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("milli", "millis", "msec", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("micro", "micros", "usec", "\u00b5s", "\u03bcs", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("nano", "nanos", "nsec", "nanosecond", "nanoseconds"), "ns"),
    "latest": "now", "end": "now", "beginning": "earliest", "first": "earliest", "oldest": "earliest",
    "disk": "wal", "skewed": "b-model", "random": "poisson", "loop": "nested-loop",
    "columns": "schema", "fields": "schema", "key": "on", "keys": "on", "using": "on", "condition": "where",
    "parallelism": "replicas",
}  # fmt: skip
"""Words of other systems, each with ours; used where ours is one of the choices."""

_POWERS: Final = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "%": 0.01}
_NUMBER: Final = re.compile(
    r"([-+]?[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][-+]?[0-9]{1,2})?)\s*(?:([kKMG%]?)|(?:rows?)?(?:/s)?)", re.ASCII
)
_GROUPED: Final = re.compile(r"[-+]?[0-9]{1,3}(?:[,_' ][0-9]{3})+(?:\.[0-9]+)?", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]{0,79}", re.ASCII)
_TRUTH: Final = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


def meant_by(name: str, known: list[str]) -> str | None:
    """The known name that was meant: one that other systems call so, or one that is spelled nearly so."""
    synonym = _SYNONYMS.get(" ".join(re.split(r"[\s_-]+", name.strip().lower())))
    return synonym if synonym in known else nearest(name, known)


def remedy_of(owner: Owner, name: int | str, detail: ErrorDetails) -> str:
    """The remedy for a value that a field refuses."""
    special = _BY_TYPE.get(detail["type"])
    proposed = special(owner, name, detail) if special else None
    return proposed or _instead(owner, name, is_bound="type" not in detail["type"])


def _instead(owner: Owner, name: int | str, *, is_bound: bool) -> str:
    """What can stand there in any case."""
    default, shown, info = default_text(owner, name), example(owner, name), field_at(owner, name)
    if default is not None:
        return f"leave it out for {default}" if is_bound else f"write for example {default}, the default"
    leave = ", or leave it out" if info is not None and not info.is_required() else ""
    return f"write for example {shown}{leave}" if shown is not None else "write a text in quotes, or take it out"


def _choice(owner: Owner, name: int | str, detail: ErrorDetails) -> str:
    choices = choices_of(detail)
    if len(choices) == 1:
        return f"write {choices[0]}"
    meant = meant_by(detail["input"], choices) if isinstance(detail["input"], str) else None
    if meant is not None:
        return f"did you mean {meant}?"
    default = default_text(owner, name)
    return "choose one of them" + (f", or leave it out for {default}" if default is not None else "")


def choices_of(detail: ErrorDetails) -> list[str]:
    """The words that a field takes."""
    return re.findall("'([^']*)'", str(detail["ctx"]["expected"]))


def _number(owner: Owner, name: int | str, detail: ErrorDetails) -> str | None:
    found = detail["input"]
    meant = _number_in(found) if isinstance(found, str) else found
    if isinstance(meant, bool) or not isinstance(meant, (int, float)):
        return None
    if isinstance(meant, float) and meant.is_integer():
        meant = int(meant)
    if not takes(owner, name, meant):
        return None
    if isinstance(found, str) and found == plain(meant):
        return f"remove the quotes: {found}"
    grouped = isinstance(found, str) and _GROUPED.fullmatch(found.strip())
    return f"write {plain(meant)}" + (", without separators" if grouped else "")


def _number_in(text: str) -> float | None:
    """The number that a text such as 10k, 1,000, 50% or 100/s speaks of."""
    text = text.strip()
    if _GROUPED.fullmatch(text):
        text = re.sub("[,_' ]", "", text)
    match = _NUMBER.fullmatch(text)
    return round(float(match[1]) * _POWERS[match[2] or ""], 9) if match else None


def _truth(_owner: Owner, _name: int | str, detail: ErrorDetails) -> str | None:
    found = detail["input"]
    if isinstance(found, str) and found.lower() in ("true", "false"):
        return f"remove the quotes: {found.lower()}"
    if isinstance(found, str):
        return f"write {_TRUTH[found.lower()]}" if found.lower() in _TRUTH else None
    if isinstance(found, (int, float)) and found in (0, 1):
        return "write true" if found else "write false"
    return None


def _text(_owner: Owner, _name: int | str, detail: ErrorDetails) -> str | None:
    return f'quote it: "{show(detail["input"])}"' if isinstance(detail["input"], (bool, int, float)) else None


def _mapping(owner: Owner, name: int | str, detail: ErrorDetails) -> str | None:
    """A text in place of a mapping names one of its fields, or is the value of its only necessary one."""
    info = field_at(owner, name)
    if info is None:  # an entry of a list lies in the section of its entries
        return _section_of(owner, detail["input"])
    return _section_of(section_in(info.annotation), detail["input"])


def _section_of(section: Owner, found: object) -> str | None:
    if section is None:
        return None
    if isinstance(found, str) and _WORD.fullmatch(found):
        required = required_names(section)
        if found in field_names(section):
            return f"write {{{found}: {example(section, found)}}}"
        if len(required) == 1 and takes(section, required[0], found):
            return f"write {{{required[0]}: {found}}}"
    return f"write for example {section_example(section)}"


def _list(owner: Owner, name: int | str, detail: ErrorDetails) -> str | None:
    info = field_at(owner, name)
    section = section_in(info.annotation) if info else None
    if section is None:
        return None
    if isinstance(detail["input"], dict):
        return "make it a list: begin each entry with -"
    entry = _section_of(section, detail["input"])
    return entry and entry.replace("{", "[{", 1) + "]"


def _too_short(owner: Owner, name: int | str, detail: ErrorDetails) -> str | None:
    info, found = field_at(owner, name), len(detail["input"])
    entries: Any = info.examples[0] if info and info.examples else None
    if not found or not isinstance(entries, list) or found >= len(entries):
        return None
    which = "a second" if found == 1 else "another"
    return f"add {which} {str(name).removesuffix('s')}, for example {flow(entries[found])}"


def _too_long(_owner: Owner, _name: int | str, detail: ErrorDetails) -> str:
    if isinstance(detail["input"], str):
        return "shorten it"
    return f"take out {len(detail['input']) - detail['ctx']['max_length']} of them"


_BY_TYPE: Final[dict[str, Callable[[Owner, int | str, ErrorDetails], str | None]]] = {
    "literal_error": _choice,
    "int_type": _number,
    "float_type": _number,
    "bool_type": _truth,
    "string_type": _text,
    "model_type": _mapping,
    "model_attributes_type": _mapping,
    "tuple_type": _list,
    "too_short": _too_short,
    "too_long": _too_long,
    "string_too_long": _too_long,
}
