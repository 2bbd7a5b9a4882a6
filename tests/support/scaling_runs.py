"""Recorded runs of the operator's machine, made without processes: a load that rises and falls."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from joinery.adapters.scaling_record import DecisionTeller
from joinery.elastic.classify import Thresholds, classify_all
from joinery.elastic.load import ClusterLoad, LoadReport
from joinery.machine import messages, orders
from joinery.machine.facts import Connected, Fact, Received
from joinery.machine.messages import Decided
from joinery.machine.operator import OperatorMachine
from joinery.model.ids import GATEWAY, WorkerId
from joinery.model.spec import JoinQuerySpec

SECOND = 10**9
STEP = (0.6, 0.6, *[2.4] * 12, *[0.5] * 20)
"""Workers' worth of load at each report."""


def scaling_spec(**scaling: Any) -> JoinQuerySpec:
    streams = [{"name": name, "schema": {"k": "int64"}, "window": "10s"} for name in "ab"]
    rules = {"max": 5, "scaleUp": {"stabilization": "2s"}, "scaleDown": {"stabilization": "4s"}} | scaling
    epochs = {"reorganization": "1s"}
    return JoinQuerySpec.parse({"streams": streams, "join": {"on": ["k"]}, "scaling": rules, "epochs": epochs})


def load_of(spec: JoinQuerySpec, demand: float, workers: int) -> ClusterLoad:
    """So much work, evenly over so many workers."""
    each = demand / workers
    reports = [
        LoadReport(
            worker=WorkerId(f"worker-{ordinal}"), occupancy=0.0 if each < 1 else 0.9, busy=min(1.0, each), demand=each
        )
        for ordinal in range(workers)
    ]
    return classify_all(reports, Thresholds.of(spec.scaling))


def record_run(spec: JoinQuerySpec, folder: Path | None, demands: Sequence[float] = STEP) -> list[Decided]:
    """Workers come and are empty at once; what was told."""
    machine, told = OperatorMachine(spec), list[Decided]()
    teller = DecisionTeller(machine, told.append, folder)

    def tell(fact: Fact, at_ns: int) -> None:
        made = machine.handle(fact, at_ns)
        teller.saw(at_ns, fact, made)
        for order in made:
            if isinstance(order, orders.Send) and isinstance(order.message, messages.Drain):
                tell(Received(GATEWAY, messages.Empty(order.message.workers)), at_ns + 1000)

    tell(Connected(GATEWAY), 0)
    for number, demand in enumerate(demands, start=1):
        report = messages.ClusterReport(load_of(spec, demand, machine.replicas))
        tell(Received(GATEWAY, report), number * SECOND)
    teller.close()
    return told
