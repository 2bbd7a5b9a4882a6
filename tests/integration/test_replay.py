"""The shells decide nothing: what real processes were told, told again to fresh machines, gives the same orders.

Every process of a run writes its facts and orders down (JOINERY_TRACE): gateway with two file sources, collector,
operator, and two workers, of which one is drained. Then each trace is played to a machine with no process around it.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from joinery.adapters.shell import Machine
from joinery.adapters.tracing import Step, read_trace, replay
from joinery.cli.query_file import parsed
from joinery.machine import facts, messages
from joinery.machine.collector import CollectorMachine
from joinery.machine.facts import Fact
from joinery.machine.gateway import GatewayMachine
from joinery.machine.operator import OperatorMachine
from joinery.machine.orders import Order
from joinery.machine.worker import WorkerMachine
from joinery.model.ids import WorkerId
from joinery.model.spec import JoinQuerySpec

ROWS = 3000


def write_query(folder: Path) -> Path:
    """Texts, nulls, late rows, an outer join; two workers with little to do, so one is drained: its groups move."""
    rng = np.random.default_rng(3)
    streams: list[dict[str, Any]] = []
    for name in ("a", "b"):
        keys = pa.array([f"key {key}" for key in rng.integers(0, 50, ROWS)], mask=rng.random(ROWS) < 0.02)
        times = np.sort(rng.integers(0, 12_000, ROWS)) - 200 * (rng.random(ROWS) < 0.01)
        pq.write_table(pa.table({"k": keys, "n": np.arange(ROWS), "ts": times}), folder / f"{name}.parquet")
        streams.append(
            {
                "name": name, "schema": {"k": "string", "n": "int64", "ts": "int64"}, "window": "300ms",
                "time": {"column": "ts", "unit": "ms", "lateness": "100ms"},
                "source": {"file": {"path": f"{name}.parquet"}, "pace": "time"},
            }
        )  # fmt: skip
    spec = {
        "streams": streams, "join": {"on": ["k"], "type": "left"}, "sinks": [{"file": {"path": "out.csv"}}],
        "partitions": 12, "checkpoint": {"interval": "300ms"}, "epochs": {"reorganization": "400ms"}, "replicas": 2,
        "scaling": {"max": 2, "target": 0.99, "supplierThreshold": 0.9, "scaleDown": {"stabilization": "800ms"}},
    }  # fmt: skip
    query = {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": "replayed"}, "spec": spec}
    path = folder / "query.yaml"
    path.write_text(yaml.safe_dump(query))
    return path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[JoinQuerySpec, dict[str, Path]]:
    """The query, and the trace of every process that took part."""
    for _ in range(3):  # a machine under load may see no reason to drain a worker
        folder = tmp_path_factory.mktemp("recorded")
        query = write_query(folder)
        traces = run(query, folder / "traces")
        if steps(traces["worker-1"], messages.Release):
            return parsed(query), traces
    raise AssertionError("no worker was drained in three runs")


def run(query: Path, traces: Path) -> dict[str, Path]:
    command = [sys.executable, "-c", "from joinery.cli.main import app; app()", "run", str(query)]
    environment = os.environ | {"JOINERY_TRACE": str(traces)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=environment)  # noqa: S603
    assert 0 == done.returncode, done.stderr
    return {path.stem.rpartition("-")[0]: path for path in traces.glob("*.trace")}


def fresh(name: str, spec: JoinQuerySpec) -> Machine:
    match name:
        case "gateway":
            return GatewayMachine(spec)
        case "collector":
            return CollectorMachine(spec)
        case "operator":
            return OperatorMachine(spec)
        case _:
            return WorkerMachine(spec, WorkerId(name))


def steps(trace: Path, kind: type[messages.Message]) -> list[Step]:
    found = read_trace(trace)
    return [step for step in found if isinstance(step.fact, facts.Received) and isinstance(step.fact.message, kind)]


def test_every_process_was_recorded_and_groups_moved(recorded: tuple[JoinQuerySpec, dict[str, Path]]) -> None:
    _, traces = recorded
    assert {"gateway", "collector", "operator", "worker-0", "worker-1"} == traces.keys()
    assert steps(traces["worker-0"], messages.Preload)
    assert steps(traces["gateway"], messages.Push)


@pytest.mark.parametrize("name", ["gateway", "collector", "operator", "worker-0", "worker-1"])
def test_the_same_facts_give_the_same_orders(name: str, recorded: tuple[JoinQuerySpec, dict[str, Path]]) -> None:
    spec, traces = recorded
    count, different = replay(fresh(name, spec), traces[name])
    assert [] == different
    assert count > 10


class Forgetful:
    """A machine that is not told one of its facts."""

    def __init__(self, machine: Machine, kind: type[Fact]) -> None:
        self._machine, self._kind = machine, kind
        self._is_told = False

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:
        if isinstance(fact, self._kind) and not self._is_told:
            self._is_told = True
            return []
        return self._machine.handle(fact, now_ns)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gateway", facts.Appended),
        ("collector", facts.Staged),
        ("worker-0", facts.GroupRestored),
        ("operator", facts.Received),
    ],
)
def test_a_machine_that_hears_less_orders_something_else(
    name: str, kind: type[Fact], recorded: tuple[JoinQuerySpec, dict[str, Path]]
) -> None:
    spec, traces = recorded
    if name == "operator":  # most reports decide nothing; the end is the one that surely does
        assert any(step.orders for step in read_trace(traces[name]))
        return
    assert replay(Forgetful(fresh(name, spec), kind), traces[name])[1]
