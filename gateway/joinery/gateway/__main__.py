"""`python -m joinery.gateway`: wires the gateway and runs it until the query ends."""

import sys

from joinery.adapters.conversations import controlling, exchanging, ingesting
from joinery.adapters.process import Process
from joinery.adapters.recording import RecordingLog
from joinery.adapters.settings import plan_of, read_flags, stop_on_signals
from joinery.adapters.sources import open_sources
from joinery.adapters.tracing import tracer
from joinery.adapters.tuning import keep_memory, settle
from joinery.gateway.throttling import throttle
from joinery.machine.calls import Calls
from joinery.machine.gateway import GatewayMachine
from joinery.machine.memory import MemoryLog
from joinery.machine.ports import Log
from joinery.machine.warming import warm_gateway
from joinery.model.errors import UserMustAct


def main() -> int:
    """0: the query has ended and everything is committed; 1: it was stopped before."""
    keep_memory()
    settings = read_flags("gateway")
    spec, plan = plan_of(settings)
    warm_gateway(plan)
    settle()
    machine = GatewayMachine(spec, settings.collector or None)
    log: Log = MemoryLog()
    if settings.record is not None:
        log = RecordingLog(log, plan, settings.record)
    process = Process(machine, Calls(instance=settings.instance, log=log), recorder=tracer(settings.name))
    throttle(machine, process)
    talks = [ingesting(), exchanging(plan), controlling(plan)]
    try:
        process.listen(settings.listen, talks, reflects=settings.reflection)
        sources = open_sources(spec, plan, settings.query.parent, process, settings.redis)
    except UserMustAct as refused:
        process.close()
        sys.stderr.write(f"gateway: {refused}\n")
        return 2
    stop_on_signals(process)
    for source in sources:
        source.start()
    try:
        because = process.run()
    finally:
        for source in sources:
            source.close()
    if not machine.finished and not because.startswith("SIG"):  # who sends a signal knows why
        sys.stderr.write(f"gateway: {because}\n")
    return 0 if machine.finished else 1


if __name__ == "__main__":
    sys.exit(main())
