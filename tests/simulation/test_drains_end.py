"""A drain ends while the query goes on, also if commits lag behind checkpoints for ever (output in order)."""

import pyarrow as pa
import pytest

from joinery.model.ids import ProducerId
from joinery.simulate.process import START_NS
from joinery.simulate.schedule import MS, Batch, DrainLast, Schedule, Script
from joinery.simulate.story import FAULT
from joinery.simulate.world import run

END_MS = 1200
DRAINED_AT_MS = 200
SCHEMA = {"k": "int64", "n": "int64", "ts": "int64"}


def stream(name: str, lateness_ms: int) -> dict[str, object]:
    time = {"column": "ts", "unit": "ms", "lateness": f"{lateness_ms}ms", "idleTimeout": "never"}
    return {"name": name, "schema": SCHEMA, "window": "20ms", "time": time}


def script(number: int) -> Script:
    batches = []
    for at in range(5, END_MS, 4):
        columns = {"k": [at % 5, (at + 1) % 5], "n": [2 * at, 2 * at + 1], "ts": [START_NS // MS + at] * 2}
        batches.append(Batch(at * MS, pa.RecordBatch.from_pydict(columns)))
    batches.append(Batch(END_MS * MS, None, end=True))
    return Script(number, ProducerId(f"p{number}"), tuple(batches))


@pytest.mark.parametrize(("order", "lateness_ms", "interval_ms"), [("none", 80, 8), ("time", 0, 45), ("time", 80, 8)])
def test_a_drain_ends_long_before_the_query(order: str, lateness_ms: int, interval_ms: int) -> None:
    query = {
        "streams": [stream(name, lateness_ms) for name in ("orders", "fulfilments")],
        "join": {"on": ["k"]},
        "partitions": 4,
        "replicas": 2,
        "epochs": {"distribution": "5ms", "reorganization": "50ms"},
        "checkpoint": {"interval": f"{interval_ms}ms"},
        "output": {"order": order},
    }
    steps = (DrainLast(DRAINED_AT_MS * MS),)
    outcome = run(Schedule(seed=1, query=query, scripts=(script(0), script(1)), workers=2, steps=steps))
    assert (None, None) == (outcome.failed, outcome.stuck)
    gone = [at / MS for at, _, kind, what in outcome.story._events if kind == FAULT and "TAKEN AWAY" in str(what)]
    assert len(gone) == 1
    assert gone[0] < DRAINED_AT_MS + 300
