"""The words of the expression language: a text cut into tokens, each with its place.

    names     orders, "Order No", keywords in any case        numbers   12, 1.5, .5, 1e3 (a float)
    texts     'it''s'                                         signs     = == != <> < <= > >= + - * / % ( ) , .

A text is at most `MAX_LENGTH` characters, so that whatever a user sends is cut, parsed and refused in bounded time.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from joinery.model.complaints import show
from joinery.model.errors import BadExpression

MAX_LENGTH: Final = 4096
"""Characters of an expression at most."""


class Kind(Enum):
    """What a token is."""

    NAME = "name"
    QUOTED = "quoted name"
    NUMBER = "number"
    TEXT = "text"
    SIGN = "sign"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """One word of an expression; `word` has its quotes taken off, `at` is its offset."""

    kind: Kind
    word: str
    at: int

    def is_word(self, *words: str) -> bool:
        return self.kind is Kind.NAME and self.word.lower() in words

    def is_sign(self, *signs: str) -> bool:
        return self.kind is Kind.SIGN and self.word in signs

    def __str__(self) -> str:
        return {Kind.END: "the end", Kind.TEXT: f"the text '{self.word[:40]}'"}.get(self.kind, self.word[:40])


_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<NUMBER>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<NAME>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<TEXT>'(?:[^']|'')*')
      | (?P<QUOTED>"(?:[^"]|"")+")
      | (?P<SIGN>==|!=|<>|<=|>=|[-=<>+*/%(),.])
    )""",
    re.VERBOSE | re.ASCII,
)


def tokenize(text: str) -> list[Token]:
    """The tokens of a text, ended by an END token; `BadExpression` where no token begins."""
    if len(text) > MAX_LENGTH:
        remedy = "shorten it; a long list of values belongs into a stream of its own"
        raise BadExpression(text[:60], 0, f"{len(text)} characters", f"at most {MAX_LENGTH}", remedy)
    surrogate = next((at for at, sign in enumerate(text) if "\ud800" <= sign <= "\udfff"), None)
    if surrogate is not None:
        raise BadExpression(
            show(text), 0, f"half a character at {surrogate + 1}", "text in Unicode", "write it in UTF-8"
        )
    tokens, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise BadExpression(text, at, *_no_token(text[at]))
        kind = Kind[match.lastgroup]
        start, at = match.start(kind.name), match.end()
        tokens.append(Token(kind, _unquoted(kind, match[kind.name]), start))
        if kind is Kind.NUMBER and at < end and (text[at].isalnum() or text[at] == "_"):
            raise BadExpression(
                text,
                start,
                f"{match[kind.name]}{text[at]}",
                "a number or a name",
                "a name starts with a letter; else quote it",
            )
    return [*tokens, Token(Kind.END, "", len(text))]


def _unquoted(kind: Kind, raw: str) -> str:
    if kind is Kind.TEXT:
        return raw[1:-1].replace("''", "'")
    return raw[1:-1].replace('""', '"') if kind is Kind.QUOTED else raw


def _no_token(sign: str) -> tuple[str, str, str]:
    if sign == "'":
        return "a text without an end", "a closing '", "a quote inside a text is written twice: 'it''s'"
    if sign == '"':
        return "a quoted name without an end", 'a closing "', "texts stand in single quotes, names in double ones"
    remedy = {"&": "write and", "|": "write or", "!": "write not", "$": "parameters are not supported"}.get(
        sign, "take it out"
    )
    return repr(sign), "a name, a number, a text or an operator", remedy
