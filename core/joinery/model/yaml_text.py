"""YAML as a query file may use it: one document, plain values, no surprises.

Values are read by the core schema of YAML 1.2: only true and false are booleans (`on`, a field of ours, stays a text),
010 is ten, 12:30 and 2024-01-31 are texts. Refused with one complaint each, never with a traceback: anchors and aliases
(a few lines of them can stand for billions of nodes), tags, keys that occur twice (YAML would silently take the last),
several documents, and texts that are too long, too deep or not YAML at all.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn, TypeGuard

import yaml

from joinery.model.complaints import printable, show
from joinery.model.errors import BadSpec, Complaint

MAX_TEXT: Final = 256 * 1024
"""Characters of a query file at most."""
MAX_DEPTH: Final = 32
"""Levels of mappings and lists at most."""

WHOLE: Final = "the file"
"""The field of a complaint about all of it."""
_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_FEW_DIGITS: Final = re.compile("[-+]?[0-9]{1,3}", re.ASCII)
_THREE_DIGITS: Final = re.compile("[0-9]{3}", re.ASCII)
_EMPTY: Final = re.compile("")
_LONGEST_NUMBER: Final = 30
_WORDS: Final[dict[str, object]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
MAX_DIGITS: Final = 300


def load_yaml(text: str) -> dict[str, Any]:
    """The mapping that a YAML text holds; `BadSpec` if it holds anything else."""
    if len(text) > MAX_TEXT:
        raise _bad(
            WHOLE, f"{len(text)} characters", f"at most {MAX_TEXT}", "a query file is small; is this the right file?"
        )
    try:
        value = _Builder(text).document()
    except yaml.YAMLError as error:
        raise _bad(WHOLE, *_explained(error)) from None
    if not isinstance(value, dict):
        raise _bad(WHOLE, show(value), "a mapping", "start with apiVersion: joinery.dev/v1alpha1")
    return value


def _bad(field: str, found: str, wanted: str, remedy: str) -> BadSpec:
    return BadSpec([Complaint(printable(field), printable(found), wanted, remedy)])


def _explained(error: yaml.YAMLError) -> tuple[str, str, str]:
    """What a reader of YAML stumbled over, in the words of one who writes it: found, wanted, remedy."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return str(error).splitlines()[0], "YAML", "take that character out"
    problem = error.problem or error.context or "an error"
    here, opened = _at(error.problem_mark or error.context_mark), _at(error.context_mark or error.problem_mark)
    for pattern, found, wanted, remedy in _PROBLEMS:
        if match := re.match(pattern, problem):
            told = {"here": here, "opened": opened, "it": match[match.lastindex or 0]}
            return found.format(**told), wanted.format(**told), remedy.format(**told)
    return f"{problem.removeprefix('found ')}{here}", "YAML", "mend the text there, or put the value in quotes"


def _at(mark: yaml.Mark | None) -> str:
    return f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""


_PROBLEMS: Final = (
    (r"found character '\\t'", "a tab{here}", "spaces", "indent with spaces; YAML takes no tabs"),
    (r"found character '(.*)' that", "{it}{here}, which starts no value", "a value", "put the value in quotes"),
    (
        r"expected ',' or '(.)'",
        "a bracket that opens{opened} and is still open{here}",
        "a closing {it}",
        "add {it} after its last entry, or the missing comma between two entries",
    ),
    (
        "found unexpected (?:end of stream|document separator)",
        "a quote that opens{opened} and never closes",
        "a closing quote",
        "add the quote at the end of the value",
    ),
    (
        "mapping values are not allowed",
        "a colon{here} where no field can begin",
        "one field per line, indented like its neighbours",
        "mend the indentation, or, if the colon belongs to the value, put the value in quotes",
    ),
    (
        "could not find expected ':'",
        "a line without a colon{opened}",
        "name: value",
        "add a colon and a space after the name",
    ),
    (
        "expected <block end>, but found '-'",
        "a list entry{here} among fields",
        "either fields or entries that begin with -",
        "take the - out, or indent it like the other entries of its list",
    ),
    (
        "expected <block end>, but found '<block|expected '<document start>', but found '<block",
        "a line that is indented unlike its neighbours{here}",
        "the same indentation for all fields of a section",
        "give it as many spaces as the other fields of its section",
    ),
    (
        "expected <block end>, but found",
        "text after the end of a value{here}",
        "one value",
        "put the whole value in quotes; after - and : comes a space",
    ),
    (
        "expected alphabetic or numeric character",
        "a bare * or &{opened}",
        "a plain value",
        "put it in quotes; for every column leave select out",
    ),
)
"""Problems as PyYAML words them, with what we say instead."""


def _line(event: yaml.Event) -> int:
    return 1 + (event.start_mark.line if event.start_mark else 0)


def _is_plain(event: yaml.Event, form: re.Pattern[str]) -> TypeGuard[yaml.ScalarEvent]:
    """Whether an event is a value of this form without quotes."""
    return isinstance(event, yaml.ScalarEvent) and event.implicit[0] and form.fullmatch(event.value) is not None


class _Builder:
    """Builds values from YAML events, so that nothing is ever made of what a limit refuses."""

    def __init__(self, text: str) -> None:
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.SafeLoader)
        self._path: list[str] = []

    def document(self) -> object:
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        value = self._value(next(self._events))
        next(self._events)
        if not isinstance(next(self._events), yaml.StreamEndEvent):
            raise _bad(WHOLE, "several documents", "one", "put each query into a file of its own")
        return value

    def _value(self, event: yaml.Event) -> object:
        if getattr(event, "anchor", None) is not None:
            raise _bad(
                self._where(),
                f"an anchor or alias in line {_line(event)}",
                "plain values",
                "write the value out",
            )
        if len(self._path) > MAX_DEPTH:
            raise _bad(self._where(), f"more than {MAX_DEPTH} levels", "fewer", "a query has no such field")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if (tag := getattr(event, "tag", None)) not in (None, "!"):
            raise _bad(self._where(), f"the tag {tag}", "no tags", "take the tag out")
        return self._mapping() if isinstance(event, yaml.MappingStartEvent) else self._list()

    def _mapping(self) -> dict[object, object]:
        made: dict[object, object] = {}
        number = ""
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = _line(event)
            key = self._value(event)
            if isinstance(key, (dict, list)):
                raise _bad(
                    self._where(), f"a mapping or list as a key in line {line}", "a text as key", "mend the indentation"
                )
            held = next(self._events)
            if number and _is_plain(event, _THREE_DIGITS) and _is_plain(held, _EMPTY):
                self._refuse_commas(str(list(made)[-1]), f"{number},{event.value}")
            if key in made:
                raise _bad(
                    self._where(str(key)),
                    f"the key twice, again in line {line}",
                    "each key once",
                    "take one of them out",
                )
            self._path.append(f".{key}")
            made[key] = self._value(held)
            self._path.pop()
            number = held.value if _is_plain(held, _FEW_DIGITS) else ""
        return made

    def _refuse_commas(self, key: str, number: str) -> NoReturn:
        """`{rows: 300,000}` has two entries for YAML, rows and 000; it is told as what was meant."""
        while len(number) < _LONGEST_NUMBER and _is_plain(event := next(self._events), _THREE_DIGITS):
            number += f",{event.value}"
            next(self._events)
        raise _bad(
            self._where(key),
            number,
            "a number without commas",
            f"write {number.replace(',', '')}: within {{ }} YAML splits at every comma",
        )

    def _list(self) -> list[object]:
        made: list[object] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            self._path.append(f"[{len(made)}]")
            made.append(self._value(event))
            self._path.pop()
        return made

    def _scalar(self, event: yaml.ScalarEvent) -> object:
        if event.tag not in (None, "!", "tag:yaml.org,2002:str"):
            raise _bad(self._where(), f"the tag {event.tag}", "no tags", "take the tag out")
        if not event.implicit[0]:
            return event.value
        return plain_value(event.value)

    def _where(self, key: str = "") -> str:
        path = "".join([*self._path, f".{key}" if key else ""]).lstrip(".")
        return path[:200] or WHOLE


def plain_value(text: str) -> object:
    """What an unquoted scalar means."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= MAX_DIGITS and _INTEGER.fullmatch(text):
        return int(text, 0) if text.startswith(("0x", "0o")) else int(text)
    return float(text) if len(text) <= MAX_DIGITS and _FLOAT.fullmatch(text) else text
