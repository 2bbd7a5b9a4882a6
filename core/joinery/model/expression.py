"""The expression language of `where` and `filter`: its tree and its parser. A text becomes data, never code.

Grammar, from the loosest to the tightest binding; keywords in any case, names exactly as in the schema:

    expr     or
    or       and { OR and }
    and      not { AND not }
    not      NOT not | is
    is       compare { IS [NOT] (NULL | TRUE | FALSE) }
    compare  range [ (= == != <> < <= > >=) range ]
    range    sum [ [NOT] (IN (expr, ...) | BETWEEN sum AND sum | LIKE 'pattern' [ESCAPE 'c']) ]
    sum      product { (+ -) product }
    product  sign { (* / %) sign }
    sign     - sign | + sign | atom
    atom     literal | stream.column | function(expr, ...) | (expr)
    literal  12 | 1.5 | 1e3 | 'text' | TRUE | FALSE | NULL | DATE '2024-01-31' | TIMESTAMP '2024-01-31 12:00:00.5[Z]'

What an expression means (types, nulls, overflow) is said in `expression_arrow`. Trees are at most `MAX_HEIGHT` high:
parser, checker and compiler recurse, and must not be driven into the interpreter's limit.
"""

from typing import Final

from joinery.model.errors import BadExpression
from joinery.model.expression_literals import parse_date, parse_number, parse_timestamp
from joinery.model.expression_text import MAX_LENGTH, Kind, Token, tokenize
from joinery.model.expression_tree import (
    Arithmetic,
    Call,
    Column,
    Compare,
    Expr,
    In,
    Is,
    Like,
    Literal,
    Logic,
    Negate,
    Node,
    Not,
    height,
    walk,
)

__all__ = ["MAX_HEIGHT", "MAX_LENGTH", "Expr", "columns", "parse"]

MAX_HEIGHT: Final = 64
"""Levels of a tree at most."""


def parse(text: str) -> Expr:
    """The tree of a text; `BadExpression` with the place where it stops making sense."""
    parser = _Parser(text, tokenize(text))
    root = parser.whole()
    if height(root) > MAX_HEIGHT:
        raise BadExpression(text, 0, f"{height(root)} levels", f"at most {MAX_HEIGHT}", "simplify it")
    return Expr(text, root)


def columns(expr: Expr) -> set[tuple[str, str]]:
    """Every (stream, column) that an expression names."""
    return {(node.stream, node.column) for node, _ in walk(expr.root) if isinstance(node, Column)}


OR, AND, NOT, IS, COMPARE, RANGE, SUM, PRODUCT, SIGN = range(9)
"""How tightly operators bind, loosest first: the lines of the grammar."""
_COMPARE: Final = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_SIGN_POWER: Final = dict.fromkeys(_COMPARE, COMPARE) | dict.fromkeys("+-", SUM) | dict.fromkeys("*/%", PRODUCT)
_WORD_POWER: Final = {"or": OR, "and": AND, "is": IS, "in": RANGE, "between": RANGE, "like": RANGE}
_REMEDY: Final = "compare columns and values, for example orders.cost > 10 and orders.state = 'open'"


class _Parser:
    """Top-down operator precedence over the tokens."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self._text, self._tokens, self._next, self._depth = text, tokens, 0, 0

    def whole(self) -> Node:
        if len(self._tokens) == 1:
            raise self._bad("nothing", "an expression", _REMEDY)
        root = self._expression(OR)
        if self._here.kind is not Kind.END:
            raise self._bad(str(self._here), "and, or, an operator, or the end", self._remedy_behind())
        return root

    @property
    def _here(self) -> Token:
        return self._tokens[self._next]

    def _peek(self) -> Token:
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)]

    def _take(self) -> Token:
        token = self._here
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _take_word(self, *words: str) -> Token | None:
        return self._take() if self._here.is_word(*words) and not self._peek().is_sign(".") else None

    def _take_sign(self, *signs: str) -> Token | None:
        return self._take() if self._here.is_sign(*signs) else None

    def _need_sign(self, sign: str, remedy: str) -> None:
        if self._take_sign(sign) is None:
            raise self._bad(str(self._here), sign, remedy)

    def _bad(self, found: str, wanted: str, remedy: str, at: int | None = None) -> BadExpression:
        return BadExpression(self._text, self._here.at if at is None else at, found, wanted, remedy)

    def _remedy_behind(self) -> str:
        return "text stands in single quotes" if self._here.kind is Kind.QUOTED else _REMEDY

    def _expression(self, loosest: int) -> Node:
        """Everything from here on that binds at least as tightly as `loosest` (Pratt, 1973)."""
        self._depth += 1
        if self._depth > MAX_HEIGHT:
            raise self._bad(f"more than {MAX_HEIGHT} levels", "fewer", "take away parentheses that are not needed")
        node = self._prefix(loosest)
        while (power := self._power()) >= loosest:
            node = self._behind(node, power)
        self._depth -= 1
        return node

    def _power(self) -> int:
        """How tightly the operator that stands here binds; -1 if there is none."""
        token, ahead = self._here, self._peek()
        if token.kind is Kind.SIGN:
            return _SIGN_POWER.get(token.word, -1)
        if token.is_word("not") and ahead.is_word("in", "between", "like"):
            return RANGE
        return _WORD_POWER.get(token.word.lower(), -1) if token.kind is Kind.NAME else -1

    def _prefix(self, loosest: int) -> Node:
        if self._here.is_word("not") and not self._peek().is_sign("."):
            if loosest > NOT:
                raise self._bad("not", "a value", "put not and what it negates into parentheses")
            return Not(self._take().at, self._expression(NOT))
        if self._here.is_sign("+", "-"):
            return self._signed(self._take())
        return self._atom()

    def _signed(self, sign: Token) -> Node:
        if sign.word == "-" and self._here.kind is Kind.NUMBER:
            return Literal(sign.at, parse_number(self._text, sign.at, f"-{self._take().word}"))
        operand = self._expression(SIGN)
        return Negate(sign.at, operand) if sign.word == "-" else operand

    def _behind(self, left: Node, power: int) -> Node:
        """The node of the operator that stands here, with `left` in front of it."""
        token = self._take()
        if power in (OR, AND):
            return self._logic(left, token, power)
        if power == IS:
            return self._is(left, token)
        if power == COMPARE:
            right = self._expression(RANGE)
            if self._here.is_sign(*_COMPARE):
                raise self._bad(
                    str(self._here), "and, or, or the end", "comparisons do not chain; write a < b and b < c"
                )
            return Compare(token.at, _COMPARE[token.word], left, right)
        if power == RANGE:
            return Not(token.at, self._range(left, self._take())) if token.is_word("not") else self._range(left, token)
        return Arithmetic(token.at, token.word, left, self._expression(power + 1))

    def _logic(self, left: Node, token: Token, power: int) -> Node:
        operands, word = [left, self._expression(power + 1)], token.word.lower()
        while self._take_word(word):
            operands.append(self._expression(power + 1))
        return Logic(token.at, word, tuple(operands))

    def _is(self, operand: Node, token: Token) -> Node:
        negated = self._take_word("not") is not None
        word = self._take_word("null", "true", "false")
        if word is None:
            raise self._bad(str(self._here), "null, true or false behind is", "write is null or is not null")
        return Is(token.at, operand, {"null": None, "true": True, "false": False}[word.word.lower()], negated)

    def _range(self, operand: Node, word: Token) -> Node:
        if word.is_word("in"):
            return In(word.at, operand, self._list("the values of in", "write in (1, 2, 3)"))
        return self._between(word.at, operand) if word.is_word("between") else self._like(word.at, operand)

    def _between(self, at: int, operand: Node) -> Node:
        low = self._expression(SUM)
        if self._take_word("and") is None:
            raise self._bad(str(self._here), "and", "write x between 1 and 5")
        return Logic(at, "and", (Compare(at, ">=", operand, low), Compare(at, "<=", operand, self._expression(SUM))))

    def _like(self, at: int, operand: Node) -> Node:
        pattern, escape = self._need_text("a pattern in single quotes"), None
        if self._take_word("escape"):
            escape = self._need_text("one character in single quotes")
            if len(escape) != 1:
                raise self._bad(repr(escape[:40]), "one escape character", "write for example escape '!'")
        return Like(at, operand, pattern, escape)

    def _need_text(self, wanted: str) -> str:
        if self._here.kind is not Kind.TEXT:
            raise self._bad(str(self._here), wanted, "write for example like 'a%'")
        return self._take().word

    def _list(self, wanted: str, remedy: str) -> tuple[Node, ...]:
        self._need_sign("(", remedy)
        if self._here.is_sign(")"):
            raise self._bad("an empty list", wanted, remedy)
        items = [self._expression(OR)]
        while self._take_sign(","):
            items.append(self._expression(OR))
        self._need_sign(")", remedy)
        return tuple(items)

    def _atom(self) -> Node:
        token = self._here
        if token.kind is Kind.NUMBER:
            return Literal(token.at, parse_number(self._text, token.at, self._take().word))
        if token.kind is Kind.TEXT:
            return Literal(token.at, self._take().word)
        if token.kind in (Kind.NAME, Kind.QUOTED) and self._peek().is_sign("."):
            return self._column()
        if self._take_sign("("):
            node = self._expression(OR)
            self._need_sign(")", "close the parenthesis")
            return node
        if token.kind is Kind.NAME:
            return self._word()
        raise self._bad(str(token), "a value, stream.column or (", _REMEDY)

    def _column(self) -> Node:
        stream = self._take()
        self._take()
        column = self._here
        if column.kind not in (Kind.NAME, Kind.QUOTED):
            raise self._bad(str(column), "a column name behind the point", "write stream.column")
        self._take()
        return Column(stream.at, stream.word, column.word)

    def _word(self) -> Node:
        token, behind = self._here, self._peek()
        if token.is_word("true", "false", "null"):
            return Literal(token.at, {"true": True, "false": False}.get(self._take().word.lower()))
        if token.is_word("date", "timestamp") and behind.kind is Kind.TEXT:
            read = parse_date if self._take().is_word("date") else parse_timestamp
            return Literal(token.at, read(self._text, behind.at, self._take().word))
        if behind.is_sign("(") and not token.is_word("and", "or", "not", "in"):
            self._take()
            return Call(token.at, token.word.lower(), self._list("arguments", f"write {token.word}(...)"))
        raise self._bad(
            str(token),
            "a value, stream.column or (",
            f"name the stream: stream.{token.word}; texts stand in single quotes",
        )
