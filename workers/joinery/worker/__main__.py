"""`python -m joinery.worker`: wires a worker and runs it until the query ends."""

import sys

from joinery.adapters.conversations import collecting, exchanging
from joinery.adapters.embedded_redis import connect
from joinery.adapters.process import Process
from joinery.adapters.redis_checkpoints import RedisCheckpoints
from joinery.adapters.settings import exit_code, plan_of, read_flags, stop_on_signals
from joinery.machine.calls import Calls
from joinery.machine.join_module import JoinModule
from joinery.machine.worker import WorkerMachine
from joinery.model.ids import COLLECTOR, GATEWAY, WorkerId
from joinery.worker.pacing import paced


def wired() -> Process:
    """The worker, with its store and connections."""
    settings = read_flags("worker")
    spec, plan = plan_of(settings)
    store = RedisCheckpoints(connect(settings.redis), settings.query.stem)
    machine = WorkerMachine(spec, WorkerId(settings.name))
    process = Process(machine, Calls(instance=settings.instance, checkpoints=store))
    speed = None if spec.worker.speed == "unlimited" else float(spec.worker.speed)
    process.joining(paced(JoinModule(plan).perform, speed))
    process.dial(GATEWAY, lambda: settings.gateway, exchanging(plan))
    process.dial(COLLECTOR, lambda: settings.collector, collecting(plan))
    stop_on_signals(process)
    return process


if __name__ == "__main__":
    sys.exit(exit_code("worker", wired))
