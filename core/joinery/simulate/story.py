"""What happened in a run, to be read by a person: kept as it is, put into words only when somebody asks.

123.456 ms worker-0/2 < gateway: Exchange term=1 group 0, group 3 after=4, 4 upto=6
123.456 ms worker-0/2 > JoinBatch ...
130.001 ms worker-0/2 ! CRASH before emit
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Final

import numpy as np
import pyarrow as pa

from joinery.machine import facts, messages, orders

MAX_EVENTS: Final = 20_000
"""Older events are forgotten."""
_MAX_TEXT: Final = 220
_MAX_ITEMS: Final = 12
_MS: Final = 1e6

FACT, ORDER, FAULT = "<", ">", "!"
_SILENT: Final = frozenset({orders.WakeAt, facts.Tick})
_DULL: Final = (messages.Alive, messages.Load, messages.ClusterReport, messages.Ping, messages.Pong, messages.Overview)


class Story:
    """The last events of a run."""

    __slots__ = ("_events",)

    def __init__(self, limit: int = MAX_EVENTS) -> None:
        self._events: deque[tuple[int, str, str, object]] = deque(maxlen=limit)

    def add(self, now: int, who: str, mark: str, what: object) -> None:
        """One more event: a fact that reached a process, an order that it carries out, or a fault that struck."""
        if type(what) not in _SILENT:
            self._events.append((now, who, mark, what))

    def __len__(self) -> int:
        return sum(not _is_dull(what) for *_, what in self._events)

    def __iter__(self) -> Iterator[str]:
        for now, who, mark, what in self._events:
            if not _is_dull(what):
                yield f"{now / _MS:9.3f} ms {who} {mark} {in_words(what)}"

    def tail(self, count: int) -> list[str]:
        """The last events."""
        return list(self)[-count:]


def _is_dull(what: object) -> bool:
    return isinstance(getattr(what, "message", None), _DULL)


def in_words(what: object) -> str:
    """A fact or an order in one line."""
    match what:
        case str():
            return what
        case facts.Received():
            text = f"{what.peer}: {_value(what.message)}"
        case orders.Send() | orders.SendAcknowledge() | orders.SendExchange() | orders.Emit():
            text = f"{what.to}: {_value(what.message)}"
        case _:
            text = _value(what)
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 3]}..."


def _value(value: object) -> str:
    if isinstance(value, np.ndarray):
        return _items(value.tolist())
    if isinstance(value, pa.RecordBatch):
        return _rows(value)
    if isinstance(value, Enum):
        return str(value.value)
    if is_dataclass(value) and not isinstance(value, type):
        named = [_named(field.name, getattr(value, field.name)) for field in fields(value)]
        return " ".join([type(value).__name__, *named])
    if isinstance(value, tuple | list):
        return _items(list(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_value(key)}: {_value(one)}" for key, one in list(value.items())[:_MAX_ITEMS]) + "}"
    return str(value)


def _named(name: str, value: object) -> str:
    """A field; groups and records in words that a reader can look for."""
    if name == "groups":
        plain = value.tolist() if isinstance(value, np.ndarray) else value
        return ", ".join(f"group {one}" for one in plain) if isinstance(plain, list | tuple) else _value(value)
    if name in ("group", "record"):
        return f"{name} {_value(value)}"
    return f"{name}={_value(value)}"


def _items(values: list[object]) -> str:
    more = f" and {len(values) - _MAX_ITEMS} more" if len(values) > _MAX_ITEMS else ""
    return "[" + ", ".join(map(_value, values[:_MAX_ITEMS])) + more + "]"


def _rows(rows: pa.RecordBatch) -> str:
    if "n" in rows.schema.names and rows.num_rows <= _MAX_ITEMS:
        return "(" + " ".join(f"n={number}" for number in rows.column("n").to_pylist()) + ")"
    return f"({rows.num_rows} rows)"
