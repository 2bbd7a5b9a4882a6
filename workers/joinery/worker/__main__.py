"""`python -m joinery.worker`: wires a worker and runs it until the query ends."""

import sys

from joinery.adapters.chronicle import Chronicle
from joinery.adapters.conversations import collecting, exchanging
from joinery.adapters.embedded_redis import connect
from joinery.adapters.http_probes import open_probes
from joinery.adapters.lookups import Lookups
from joinery.adapters.metrics_roles import measured, worker_samples
from joinery.adapters.process import Process
from joinery.adapters.redis_checkpoints import RedisCheckpoints
from joinery.adapters.settings import exit_code, plan_of, read_flags, stop_on_signals
from joinery.adapters.tracing import tracer
from joinery.adapters.tuning import keep_memory, settle
from joinery.machine.calls import Calls
from joinery.machine.hybrid_module import HybridModule
from joinery.machine.join_module import JoinModule
from joinery.machine.warming import warm_worker
from joinery.machine.worker import WorkerMachine
from joinery.model.ids import COLLECTOR, GATEWAY, WorkerId
from joinery.worker.pacing import paced, speed_of


def wired() -> Process:
    """The worker, with its store and connections."""
    keep_memory()
    settings = read_flags("worker")
    probes = open_probes(settings.http)
    spec, plan = plan_of(settings)
    warm_worker(plan)
    settle()
    store = RedisCheckpoints(connect(settings.redis), settings.stored_as)
    machine = WorkerMachine(spec, WorkerId(settings.name))
    calls, security = Calls(instance=settings.instance, checkpoints=store), settings.security()
    process = Process(machine, calls, recorder=Chronicle(machine, tracer(settings.name)), security=security)
    module = JoinModule(plan) if plan.table is None else HybridModule(plan)
    process.joining(paced(module.perform, speed_of(spec, settings.speed_file)))
    if plan.table is not None:
        process.looking_up(Lookups(settings.lookup, plan, security))
    if settings.listen:
        process.listen(settings.listen, [], reflects=settings.reflection)  # nothing but its health
    process.dial(GATEWAY, lambda: settings.gateway, exchanging(plan))
    process.dial(COLLECTOR, lambda: settings.collector, collecting(plan))
    process.probed(probes, lambda: process.lacks(GATEWAY))
    measured(probes, process, settings.joinquery, worker_samples(machine))
    stop_on_signals(process)
    return process


if __name__ == "__main__":
    sys.exit(exit_code("worker", wired))
