"""How the machines of a run are made: the real ones, or others in tests of the world itself."""

from collections.abc import Callable
from dataclasses import dataclass

from joinery.join.plan import JoinPlan
from joinery.machine.collector import CollectorMachine
from joinery.machine.gateway import GatewayMachine
from joinery.machine.join_module import JoinModule
from joinery.machine.producer import ProducerMachine
from joinery.machine.worker import WorkerMachine
from joinery.model.ids import Peer, ProducerId, WorkerId
from joinery.model.spec import JoinQuerySpec
from joinery.simulate.process import Machine, Module
from joinery.simulate.schedule import Role, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """One factory per role."""

    gateway: Callable[[JoinQuerySpec], Machine] = GatewayMachine
    collector: Callable[[JoinQuerySpec], Machine] = CollectorMachine
    worker: Callable[[JoinQuerySpec, WorkerId, int], Machine] = WorkerMachine
    """Spec, name, and how many bytes of results it keeps."""
    module: Callable[[JoinPlan], Module] = JoinModule
    producer: Callable[[int, ProducerId | None], Machine] = ProducerMachine

    def of(self, role: Role, ordinal: int, peer: Peer, spec: JoinQuerySpec, schedule: Schedule) -> Machine:
        """The machine of a new process."""
        match role:
            case Role.GATEWAY:
                return self.gateway(spec)
            case Role.COLLECTOR:
                return self.collector(spec)
            case Role.WORKER:
                return self.worker(spec, WorkerId(peer), schedule.retain_bytes)
            case Role.PRODUCER:
                script = schedule.scripts[ordinal]
                return self.producer(script.stream, script.name if script.is_named else None)
