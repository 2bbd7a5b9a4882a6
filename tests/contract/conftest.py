"""The stores that must keep the contracts. A real one is added as one more name in `params` and a branch beside it.

Each fixture gives a way to *connect*: every call is another process's handle on the same store.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from joinery.machine.memory import MemoryCheckpoints, MemoryClock, MemoryCommits, MemoryLog
from joinery.machine.memory_sink import MemorySink
from joinery.machine.ports import CheckpointStore, Clock, CommitStore, Log, Receipt, Sink


@pytest.fixture(params=["memory"])
def connect_log(request: pytest.FixtureRequest) -> Callable[[], Log]:
    assert request.param == "memory"
    store = MemoryLog()
    return lambda: store


@pytest.fixture(params=["memory"])
def connect_checkpoints(request: pytest.FixtureRequest) -> Callable[[], CheckpointStore]:
    assert request.param == "memory"
    store = MemoryCheckpoints()
    return lambda: store


@pytest.fixture(params=["memory"])
def connect_commits(request: pytest.FixtureRequest) -> Callable[[], CommitStore]:
    assert request.param == "memory"
    store = MemoryCommits()
    return lambda: store


@dataclass(frozen=True)
class SinkDesk:
    """A sink, and how to look into it."""

    connect: Callable[[], Sink]
    valid: Callable[[Receipt | None], list[int]]
    """The values that count by a receipt, in their order."""
    output: Callable[[], list[int] | None]
    """The finished output; None: there is none yet."""


@pytest.fixture(params=["memory"])
def desk(request: pytest.FixtureRequest) -> SinkDesk:
    assert request.param == "memory"
    sink = MemorySink("one")

    def values(parts: list[object]) -> list[int]:
        return [value for part in parts for value in part.rows.column("k").to_pylist()]  # type: ignore[attr-defined]

    return SinkDesk(
        connect=sink.again,
        valid=lambda receipt: values(list(sink.valid_parts(receipt))),
        output=lambda: None if sink.shelf.finished is None else values(list(sink.shelf.finished)),
    )


@pytest.fixture(params=["memory"])
def clock(request: pytest.FixtureRequest) -> Clock:
    assert request.param == "memory"
    return MemoryClock(1_700_000_000_000_000_000)
