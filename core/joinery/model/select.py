"""Entries of `select`: "orders.order_id as id" chooses a column of a stream and names it in the result.

Only columns, no expressions: what a result holds is untouched payload. Without `as` the name is `<stream>_<column>`
(docs/design.md §2).
"""

import re
from dataclasses import dataclass
from typing import Final

from joinery.model.errors import BadExpression
from joinery.model.expression_text import Kind, Token, tokenize

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One column of the result: where it comes from, and its name."""

    stream: str
    column: str
    name: str

    def __str__(self) -> str:
        return f"{_quoted(self.stream)}.{_quoted(self.column)} as {_quoted(self.name)}"


def parse_select(text: str) -> SelectItem:
    """The item of a text `stream.column [as name]`; names that are not identifiers stand in double quotes."""
    tokens = tokenize(text)
    places = [(0, _is_name, "a stream"), (1, lambda token: token.is_sign("."), "a point"), (2, _is_name, "a column")]
    for place, fits, wanted in places:
        if len(tokens) <= place or not fits(tokens[place]):
            raise _bad(text, tokens[min(place, len(tokens) - 1)], wanted)
    stream, column, rest = tokens[0].word, tokens[2].word, tokens[3:]
    if rest[0].kind is Kind.END:
        return SelectItem(stream, column, result_name(stream, column))
    if not rest[0].is_word("as"):
        raise _bad(text, rest[0], "as, or the end")
    if not _is_name(rest[1]):
        raise _bad(text, rest[1], "the new name behind as")
    if rest[2].kind is not Kind.END:
        raise _bad(text, rest[2], "the end")
    if not rest[1].word.isprintable() or rest[1].word != rest[1].word.strip():
        raise BadExpression(
            text, rest[1].at, repr(rest[1].word)[:60], "a printable name", "take out what cannot be seen"
        )
    return SelectItem(stream, column, rest[1].word)


def result_name(stream: str, column: str) -> str:
    """The name of a column in results, unless `select` renames it."""
    return f"{stream}_{column}"


def _is_name(token: Token) -> bool:
    return token.kind in (Kind.NAME, Kind.QUOTED)


def _bad(text: str, token: Token, wanted: str) -> BadExpression:
    if token.is_sign("*"):
        return BadExpression(text, token.at, "*", "a single column", "leave select out for every column")
    return BadExpression(text, token.at, str(token), wanted, "write stream.column or stream.column as name")


def _quoted(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else '"' + name.replace('"', '""') + '"'
