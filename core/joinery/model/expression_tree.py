"""The tree of an expression: plain frozen data, each node with its place in the text (`at`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from joinery.model.expression_literals import DateValue, TimestampValue

Value = bool | int | Decimal | float | str | DateValue | TimestampValue | None


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that stands in the text; None is `null`."""

    at: int
    value: Value


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream."""

    at: int
    stream: str
    column: str


@dataclass(frozen=True, slots=True)
class Logic:
    """`and` or `or` of two or more; flat, so that long chains are not high."""

    at: int
    operator: str
    operands: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Negation: not null is null."""

    at: int
    operand: "Node"


@dataclass(frozen=True, slots=True)
class Is:
    """`is [not] null`, `is [not] true`, `is [not] false`: never null itself."""

    at: int
    operand: "Node"
    wanted: bool | None
    negated: bool


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison; the operator is one of = != < <= > >=."""

    at: int
    operator: str
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class In:
    """Membership in a list; null in the list makes false null."""

    at: int
    operand: "Node"
    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Like:
    """A text against a pattern: % any characters, _ exactly one."""

    at: int
    operand: "Node"
    pattern: str
    escape: str | None


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """One of + - * / %."""

    at: int
    operator: str
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Negate:
    """A changed sign."""

    at: int
    operand: "Node"


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the language with its arguments."""

    at: int
    function: str
    arguments: tuple["Node", ...]


Node = Literal | Column | Logic | Not | Is | Compare | In | Like | Arithmetic | Negate | Call


@dataclass(frozen=True, slots=True)
class Expr:
    """A parsed expression, with its text for messages."""

    text: str
    root: Node


def height(root: Node) -> int:
    """Levels of a tree."""
    return max(level for _, level in walk(root))


def walk(root: Node) -> Iterator[tuple[Node, int]]:
    """Every node with its level, without recursion: a chain of signs may be as high as the text is long."""
    waiting = [(root, 1)]
    while waiting:
        node, level = waiting.pop()
        yield node, level
        waiting.extend((child, level + 1) for child in children(node))


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below."""
    match node:
        case Literal() | Column():
            return ()
        case Logic(operands=operands) | Call(arguments=operands):
            return operands
        case Compare(left=left, right=right) | Arithmetic(left=left, right=right):
            return (left, right)
        case In(operand=operand, items=items):
            return (operand, *items)
        case Not(operand=operand) | Is(operand=operand) | Like(operand=operand) | Negate(operand=operand):
            return (operand,)
