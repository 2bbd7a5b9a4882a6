"""Conditions of SQL in our expression language: aliases become streams, operators are written as we write them."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from joinery.model.complaints import nearest
from joinery.model.errors import BadExpression
from joinery.model.expression_functions import FUNCTIONS

MAX_SQL: Final = 8192
"""Characters of a statement at most."""
_BINARY: Final = {
    exp.And: "and", exp.Or: "or", exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=",
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.Is: "is",
}  # fmt: skip
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def place_of(node: exp.Expr) -> int:
    """Where a tree begins in the text, as far as the parser kept it."""
    starts = [int(one.meta["start"]) for one in node.walk() if "start" in one.meta]
    return min(starts, default=0)


@dataclass(frozen=True, slots=True)
class Names:
    """What the names of a statement stand for."""

    text: str
    aliases: Mapping[str, str]
    """By alias, the stream."""
    columns: Mapping[str, list[str]]

    def stream_of(self, alias: str) -> str:
        return self.aliases[alias]

    def column(self, node: exp.Column) -> tuple[str, str]:
        """Stream and column of a name; `BadExpression` if there is none, or more than one."""
        alias, name, at = node.table, node.name, place_of(node)
        if alias and alias not in self.aliases:
            known = ", ".join(self.aliases)
            raise BadExpression(self.text, at, f"{alias}.{name}", f"a column of {known}", "use the alias of its stream")
        within = [self.aliases[alias]] if alias else list(self.aliases.values())
        having = [stream for stream in within if name in self.columns[stream]]
        if len(having) > 1:
            wanted = f"{having[0]}.{name} or {having[1]}.{name}"
            raise BadExpression(self.text, at, f"{name}, which several streams have", wanted, "name the stream")
        if not having:
            known_columns = sorted({column for stream in within for column in self.columns[stream]})
            near = nearest(name, known_columns)
            remedy = f"write {near}" if near else f"columns are {', '.join(known_columns)}"
            raise BadExpression(self.text, at, f"the column {node.sql()}", f"one of {' or '.join(within)}", remedy)
        return having[0], name

    def text_of(self, node: exp.Column) -> str:
        """A column as our expressions write it."""
        stream, column = self.column(node)
        return f"{stream}.{self.quoted(column)}"

    @staticmethod
    def quoted(name: str) -> str:
        return name if _NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def term(node: exp.Expr, names: Names) -> str:
    """An expression in our language."""

    def inner(one: exp.Expr) -> str:
        return f"({written})" if isinstance(one, exp.Binary) and (written := term(one, names)) else term(one, names)

    def listed(items: Iterable[exp.Expr]) -> str:
        return ", ".join(term(one, names) for one in items)

    match node:
        case exp.Column():
            return names.text_of(node)
        case exp.Literal():
            return "'" + node.this.replace("'", "''") + "'" if node.is_string else str(node.this)
        case exp.Null() | exp.Boolean():
            return node.sql().lower()
        case exp.Paren():
            return f"({term(node.this, names)})"
        case exp.Not():
            return f"not ({term(node.this, names)})"
        case exp.Neg():
            return f"-{inner(node.this)}"
        case exp.Between():
            return f"{inner(node.this)} between {inner(node.args['low'])} and {inner(node.args['high'])}"
        case exp.In() if node.expressions:
            return f"{inner(node.this)} in ({listed(node.expressions)})"
        case exp.Escape():
            return f"{term(node.this, names)} escape {term(node.expression, names)}"
        case exp.Like():
            return f"{inner(node.this)} like {inner(node.expression)}"
        case exp.Cast() if isinstance(node.this, exp.Literal) and node.to.sql() in ("DATE", "TIMESTAMP"):
            return f"{node.to.sql().lower()} {term(node.this, names)}"
        case exp.Binary() if type(node) in _BINARY:
            return f"{inner(node.left)} {_BINARY[type(node)]} {inner(node.right)}"
        case exp.Func():
            return _call(node, names, listed)
    raise _refused(node, names)


def _call(node: exp.Func, names: Names, listed: Callable[[Iterable[exp.Expr]], str]) -> str:
    name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
    name = {"substring": "substr", "ceiling": "ceil"}.get(name, name)
    if name not in FUNCTIONS:
        raise _refused(node, names)
    held = node.expressions if isinstance(node, exp.Anonymous) else _arguments(node)
    return f"{name}({listed(held)})"


def _arguments(node: exp.Func) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for value in node.args.values():
        found += [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, exp.Expr)]
    return found


def _refused(node: exp.Expr, names: Names) -> BadExpression:
    wanted = "columns, numbers, texts, comparisons, + - * / %, AND, OR, NOT, IN, BETWEEN, LIKE, IS and our functions"
    return BadExpression(names.text, place_of(node), node.sql()[:60], wanted, f"functions are {', '.join(FUNCTIONS)}")
