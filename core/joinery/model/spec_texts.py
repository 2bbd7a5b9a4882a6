"""Fields of a spec that are small languages: expressions, entries of `select`, and the key parts of `join.on`."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema

from joinery.model.complaints import BadValue, show
from joinery.model.errors import BadExpression
from joinery.model.expression import MAX_LENGTH, parse
from joinery.model.select import SelectItem, parse_select

MAX_KEYS: Final = 16
MAX_SELECTED: Final = 8192

_SIMPLE_ENTRY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*(\s+as\s+[A-Za-z_][A-Za-z0-9_]*)?", re.ASCII)
_EQUALITY: Final = re.compile(r"\s*(\w{1,63})\.(\w{1,63})\s*==?\s*(\w{1,63})\.(\w{1,63})\s*", re.ASCII)

T = TypeVar("T")


def as_bad_value(error: BadExpression) -> BadValue:
    """An error in an expression, as the complaint of the field that holds it."""
    return BadValue(f"{error.found} at character {error.at + 1} of {show(error.text)}", error.wanted, error.remedy)


def _reading(parse_text: Callable[[str], T], wanted: str, remedy: str) -> Callable[[object], T]:
    def read(value: object) -> T:
        if not isinstance(value, str):
            raise BadValue(show(value), wanted, remedy)
        try:
            return parse_text(value)
        except BadExpression as error:
            raise as_bad_value(error) from None

    return read


def _checked(text: str) -> str:
    parse(text)
    return text


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One column of the key: a name that every stream has, or, where names differ, sorted pairs (stream, column)."""

    name: str | None
    by_stream: tuple[tuple[str, str], ...] = ()

    def column_of(self, stream: str) -> str:
        """The column in this stream; a spec that parsed has one for every stream."""
        return self.name if self.name is not None else dict(self.by_stream)[stream]

    def to_dict(self) -> object:
        return self.name if self.name is not None else dict(self.by_stream)


def parse_key_part(value: object) -> KeyPart:
    """`order_id`, or `{orders: id, fulfilments: order_id}`."""
    if isinstance(value, str) and 1 <= len(value) <= 128:
        return KeyPart(value)
    if isinstance(value, dict) and value and all(isinstance(part, str) for pair in value.items() for part in pair):
        return KeyPart(None, tuple(sorted(value.items())))
    wanted = "a column name, or a mapping from every stream to its column"
    raise BadValue(show(value), wanted, "write order_id, or {orders: id, fulfilments: order_id}")


def _key_parts(value: object) -> object:
    """The mapping form stands for a list of one."""
    if isinstance(value, dict):
        return [value]
    if isinstance(value, str):
        raise BadValue(show(value), "a list of key columns", _key_remedy(value))
    return value


def _key_remedy(text: str) -> str:
    if match := _EQUALITY.fullmatch(text):
        return f"write {{{match[1]}: {match[2]}, {match[3]}: {match[4]}}}"
    return f"write [{names}]" if (names := _simple_entries(text)) else "write for example [order_id]"


def _simple_entries(text: str) -> str | None:
    """`a, b` and `[a, b` as the entries of a list, if they need no quotes."""
    entries = [entry.strip() for entry in text.strip("[] ").split(",")]
    return ", ".join(entries) if len(text) <= 200 and all(map(_SIMPLE_ENTRY.fullmatch, entries)) else None


def _select_items(value: object) -> object:
    wanted = "a list of columns"
    if isinstance(value, str) and value.strip() in ("*", "all"):
        raise BadValue(show(value), wanted, "leave select out for every column")
    if isinstance(value, str) and (entries := _simple_entries(value)):
        raise BadValue(show(value), wanted, f"write [{entries}]")
    if not isinstance(value, (list, tuple)):
        raise BadValue(show(value), wanted, 'write for example ["orders.id as id", "fulfilments.clerk"]')
    if not value:
        raise BadValue(show(value), "at least 1 column", "leave select out for every column")
    return value


def _text(read: Callable[[object], T], write: Callable[[T], object], schema: dict[str, Any]) -> tuple[Any, ...]:
    return PlainValidator(read), PlainSerializer(write), WithJsonSchema(schema)


_EXPRESSION_SCHEMA: Final = {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH}
_KEY_SCHEMA: Final = {
    "anyOf": [{"type": "string", "minLength": 1}, {"type": "object", "additionalProperties": {"type": "string"}}]
}

ExpressionText = Annotated[
    str, *_text(_reading(_checked, "an expression", 'write it in quotes: "orders.cost > 10"'), str, _EXPRESSION_SCHEMA)
]
SelectText = Annotated[
    SelectItem,
    *_text(
        _reading(parse_select, "a column", 'write "stream.column" or "stream.column as name"'), str, _EXPRESSION_SCHEMA
    ),
]
SelectItems = Annotated[
    tuple[SelectText, ...], BeforeValidator(_select_items), Field(min_length=1, max_length=MAX_SELECTED)
]
_Part = Annotated[KeyPart, *_text(parse_key_part, KeyPart.to_dict, _KEY_SCHEMA)]
KeyParts = Annotated[tuple[_Part, ...], BeforeValidator(_key_parts), Field(min_length=1, max_length=MAX_KEYS)]
