"""A recorded run: every fact that a machine was told, when, and what it ordered; and the same facts told again.

Set JOINERY_TRACE to a folder, and every process of a query writes a trace into it. `replay` tells the facts of one to
a fresh machine and compares every order: equal if the shells decide nothing (docs/protocol.md). For tests; it is slow.
"""

import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from joinery.adapters.plain_values import Blobs, Sums, decode, encode
from joinery.adapters.shell import Machine
from joinery.machine.facts import Fact
from joinery.machine.orders import Order

FOLDER: Final = "JOINERY_TRACE"
_LENGTH: Final = struct.Struct("<I")


class Tracer:
    """Writes one process's story (`shell.Recorder`)."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")

    def saw(self, now_ns: int, fact: Fact, orders: list[Order]) -> None:
        """One fact and what was ordered."""
        blobs = Blobs()
        told = {"now": now_ns, "fact": encode(fact, blobs), "orders": _encoded(orders)}
        told["blobs"] = [len(blob) for blob in blobs.data]
        text = json.dumps(told).encode()
        self._file.write(_LENGTH.pack(len(text)) + text + b"".join(blobs.data))
        self._file.flush()

    def close(self) -> None:
        """Nothing more will be told."""
        self._file.close()


def tracer(name: str) -> Tracer | None:
    """The tracer of this process, if the environment asks for one."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return None
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Tracer(Path(folder) / f"{name}-{os.getpid()}.trace")


@dataclass(frozen=True, slots=True)
class Step:
    """One fact of a recorded run."""

    now_ns: int
    fact: Fact
    orders: list[Any]
    """As they were written down."""


def read_trace(path: Path) -> Iterator[Step]:
    """The steps of a trace; one that was cut off in the middle, by a process that was killed, ends before."""
    with path.open("rb") as file:
        while (head := file.read(_LENGTH.size)) and len(head) == _LENGTH.size:
            text = file.read(_LENGTH.unpack(head)[0])
            try:
                told = json.loads(text)
            except ValueError:
                return
            blobs = [file.read(length) for length in told["blobs"]]
            if any(len(blob) != length for blob, length in zip(blobs, told["blobs"], strict=True)):
                return
            yield Step(told["now"], decode(told["fact"], blobs), told["orders"])


def replay(machine: Machine, path: Path) -> tuple[int, list[str]]:
    """Tell a fresh machine what the trace says; how many facts, and the first step whose orders differ, if one does."""
    count = 0
    for step in read_trace(path):
        count += 1
        made = json.loads(json.dumps(_encoded(machine.handle(step.fact, step.now_ns))))
        if made != step.orders:
            return count, [f"{path.name}, fact {count}, {type(step.fact).__name__}", *_difference(step.orders, made)]
    return count, []


def _encoded(orders: list[Order]) -> list[Any]:
    sums = Sums()
    return [encode(order, sums) for order in orders]


def _difference(wanted: list[Any], found: list[Any]) -> list[str]:
    if len(wanted) != len(found):
        return [f"wanted {[_kind(one) for one in wanted]}", f"found {[_kind(one) for one in found]}"]
    at = next(place for place, (one, other) in enumerate(zip(wanted, found, strict=True)) if one != other)
    return [f"order {at}", f"wanted {wanted[at]}", f"found {found[at]}"]


def _kind(order: Any) -> str:
    return str(order.get("$type", order)).rpartition(":")[2] if isinstance(order, dict) else str(order)
