"""The kinds of fields that a query spec is made of: strict, bounded, and written back as they were read.

A kind is an annotated Python type: the parser of `quantities`, `types`, `select` or `expression` that reads it, the
function that writes it, and the JSON schema of the text in between. The models of `spec_sections` are nothing but these
kinds with names, defaults and a sentence each. Numbers are strict: `true` is not 1 and "5" is not 5; NaN and infinity
are refused.
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    GetPydanticSchema,
    PlainSerializer,
    PlainValidator,
    Strict,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import core_schema

from joinery.model.complaints import BadValue, show
from joinery.model.quantities import (
    DURATION_PATTERN,
    MAX_COUNT,
    SIZE_PATTERN,
    Bytes,
    Nanoseconds,
    Window,
    format_duration,
    format_size,
    format_window,
    parse_duration,
    parse_size,
    parse_window,
)
from joinery.model.types import ColumnType, parse_type

MAX_COLUMNS: Final = 1024
MAX_NAME: Final = 128


class Section(BaseModel):
    """A mapping of the spec: frozen, closed to unknown fields; a field that is present but empty counts as left out."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, use_attribute_docstrings=True)

    keeps_null: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        known = {info.alias or name for name, info in cls.model_fields.items()} - cls.keeps_null
        return {name: value for name, value in data.items() if value is not None or name not in known}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """The schema with defaults as a user writes them: 2s, not 2000000000."""
        made = handler(schema)
        defaults = cls.defaults()
        for name, described in handler.resolve_ref_schema(made).get("properties", {}).items():
            described.pop("default", None)
            if name in defaults:
                described["default"] = defaults[name]
        return made

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """The defaults of the fields that have one, by their names in YAML and as YAML holds them."""
        return cls.model_construct().model_dump(by_alias=True, mode="json", exclude_none=True)


def exactly_one(section: Section, names: tuple[str, ...], remedy: str) -> None:
    """Refuse a section that has none or several of these fields."""
    aliases = {name: type(section).model_fields[name].alias or name for name in names}
    given = [alias for name, alias in aliases.items() if getattr(section, name) is not None]
    if len(given) != 1:
        found = " and ".join(given) if given else "none of them"
        raise BadValue(found, f"exactly one of {', '.join(aliases.values())}", remedy)


V = TypeVar("V")


def _text(parse: Callable[[object], V], write: Callable[[V], object], schema: dict[str, Any]) -> tuple[Any, ...]:
    return PlainValidator(parse), PlainSerializer(write, when_used="always"), WithJsonSchema(schema)


def _or_word(word: str, parse: Callable[[object], V]) -> Callable[[object], V | str]:
    def parsed(value: object) -> V | str:
        if value == word:
            return word
        try:
            return parse(value)
        except BadValue as bad:
            raise BadValue(bad.found, f"{word}, or {bad.wanted}", bad.remedy) from None

    return parsed


def _unless(word: str, write: Callable[[Any], object]) -> Callable[[Any], object]:
    return lambda value: word if value == word else write(value)


def _positive_duration(value: object) -> Nanoseconds:
    duration = parse_duration(value)
    if duration == 0:
        raise BadValue(show(value), "a duration longer than 0s", "write for example 2s")
    return duration


def _positive_size(value: object) -> Bytes:
    size = parse_size(value)
    if size == 0:
        raise BadValue(show(value), "a size larger than 0", "write for example 64Mi")
    return size


_DURATION_SCHEMA: Final = {"type": "string", "pattern": DURATION_PATTERN, "maxLength": 64}
_SIZE_SCHEMA: Final = {"type": "string", "pattern": SIZE_PATTERN, "maxLength": 32}


def _schema_or(word: str, pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{word}$|{pattern}", "maxLength": 64}


Duration = Annotated[Nanoseconds, *_text(parse_duration, format_duration, _DURATION_SCHEMA)]
PositiveDuration = Annotated[Nanoseconds, *_text(_positive_duration, format_duration, _DURATION_SCHEMA)]
Size = Annotated[Bytes, *_text(_positive_size, format_size, _SIZE_SCHEMA)]
AutoDuration = Annotated[
    Nanoseconds | Literal["auto"],
    *_text(
        _or_word("auto", _positive_duration), _unless("auto", format_duration), _schema_or("auto", DURATION_PATTERN)
    ),
]
NeverDuration = Annotated[
    Nanoseconds | Literal["never"],
    *_text(
        _or_word("never", _positive_duration), _unless("never", format_duration), _schema_or("never", DURATION_PATTERN)
    ),
]
_COUNT_SCHEMA: Final = {
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 1, "maximum": MAX_COUNT}},
    "required": ["count"],
    "additionalProperties": False,
}
WindowField = Annotated[
    Window, *_text(parse_window, format_window, {"anyOf": [_schema_or("unbounded", DURATION_PATTERN), _COUNT_SCHEMA]})
]


def _speed(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e18:
        raise BadValue(
            show(value), "comparisons per second, a number above 0", "write unlimited, or for example 1000000"
        )
    return float(value)


Speed = Annotated[
    float | Literal["unlimited"],
    *_text(
        _or_word("unlimited", _speed),
        lambda speed: speed,
        {"anyOf": [{"type": "string", "enum": ["unlimited"]}, {"type": "number", "exclusiveMinimum": 0}]},
    ),
]

Count = Annotated[int, Strict(), Field(ge=1, le=4096)]
Natural = Annotated[int, Strict(), Field(ge=0, le=MAX_COUNT)]
Rows = Annotated[int, Strict(), Field(ge=1, le=2**53)]
Seed = Annotated[int, Strict(), Field(ge=0, lt=2**63)]
Flag = Annotated[bool, Strict()]
Rate = Annotated[float, Strict(), Field(gt=0, le=1e12, allow_inf_nan=False)]
Share = Annotated[float, Strict(), Field(ge=0, lt=1, allow_inf_nan=False)]
InnerShare = Annotated[float, Strict(), Field(gt=0, lt=1, allow_inf_nan=False)]
Text = Annotated[str, Strict(), StringConstraints(max_length=1024)]
FullText = Annotated[str, Strict(), StringConstraints(min_length=1, max_length=1024)]


def _matching(pattern: str, wanted: str, remedy: str, *, is_secret: bool = False) -> Any:
    """A text of a given form; the pattern also goes into the JSON schema. What is secret is not shown."""
    form = re.compile(pattern, re.ASCII)

    def parse(value: object) -> str:
        if not isinstance(value, str) or not form.fullmatch(value):
            raise BadValue("another text" if is_secret and isinstance(value, str) else show(value), wanted, remedy)
        return value

    return Annotated[str, *_text(parse, str, {"type": "string", "pattern": f"^{pattern}$"})]


if TYPE_CHECKING:
    Identifier = str
    ObjectName = str
    RedisUrl = str
else:
    Identifier = _matching(
        "[A-Za-z_][A-Za-z0-9_]{0,62}",
        "a name of letters, digits and _, not starting with a digit, at most 63",
        "write for example orders",
    )
    ObjectName = _matching(
        "[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?",
        "a name of small letters, digits and -, at most 52 (pods add to it)",
        "write for example orders-fulfilments",
    )
    RedisUrl = _matching(
        r"((rediss?(\+sentinel)?|unix)://\S{1,1000})?",
        "redis://host:port/db, rediss://, redis+sentinel://host:port/master/db or unix://",
        "leave it out for the Redis that comes with Joinery",
        is_secret=True,  # it may have a password in it
    )


def _column_name(name: object) -> str:
    if not isinstance(name, str):
        raise BadValue(show(name), "a column name that is text", f'quote it: "{show(name)}"')
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or name != name.strip():
        raise BadValue(show(name), f"1 to {MAX_NAME} printable characters, no space at the ends", "rename the column")
    return name


ColumnName = Annotated[
    str, PlainValidator(_column_name), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_NAME})
]
TypeName = Annotated[ColumnType, *_text(parse_type, str, {"type": "string", "maxLength": 128})]
Pairs = tuple[tuple[str, V], ...]


def _pairs_of(key: Any, value: Any, smallest: int, largest: int) -> GetPydanticSchema:
    """A mapping of the spec, kept as pairs sorted by name: frozen and hashable like everything else."""

    def schema(_: Any, handler: Callable[[Any], core_schema.CoreSchema]) -> core_schema.CoreSchema:
        bounded = Annotated[dict[key, value], Field(min_length=smallest, max_length=largest)]
        generate = handler.generate_schema  # type: ignore[attr-defined]
        return core_schema.no_info_after_validator_function(
            lambda mapping: tuple(sorted(mapping.items())),
            generate(bounded),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda pairs: {name: str(held) if isinstance(held, ColumnType) else held for name, held in pairs}
            ),
        )

    return GetPydanticSchema(schema)


Columns = Annotated[Pairs[ColumnType], _pairs_of(ColumnName, TypeName, 1, MAX_COLUMNS)]
Labels = Annotated[Pairs[str], _pairs_of(FullText, Text, 0, 64), Field(examples=[{"team": "sales"}])]


def _quantity(value: object) -> str:
    text = str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    if len(text) > 32 or not re.fullmatch(r"[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?", text, re.ASCII):
        raise BadValue(show(value), "a Kubernetes quantity", "write for example 500m, 2 or 1Gi")
    return text


Quantity = Annotated[str, *_text(_quantity, str, {"type": "string"})]
Quantities = Annotated[Pairs[str], _pairs_of(FullText, Quantity, 0, 16), Field(examples=[{"cpu": "500m"}])]
