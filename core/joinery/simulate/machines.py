"""How the machines of a run are made: the real ones, or others in tests of the world itself."""

from collections.abc import Callable
from dataclasses import dataclass

from joinery.join.plan import JoinPlan
from joinery.machine.collector import CollectorMachine
from joinery.machine.gateway import GatewayMachine
from joinery.machine.join_module import JoinModule
from joinery.machine.producer import ProducerMachine
from joinery.machine.worker import WorkerMachine
from joinery.model.ids import ProducerId, WorkerId
from joinery.model.spec import JoinQuerySpec
from joinery.simulate.process import Machine, Module


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """One factory per role."""

    gateway: Callable[[JoinQuerySpec], Machine] = GatewayMachine
    collector: Callable[[JoinQuerySpec], Machine] = CollectorMachine
    worker: Callable[[JoinQuerySpec, WorkerId, int], Machine] = WorkerMachine
    """Spec, name, and how many bytes of results it keeps."""
    module: Callable[[JoinPlan], Module] = JoinModule
    producer: Callable[[int, ProducerId | None], Machine] = ProducerMachine
