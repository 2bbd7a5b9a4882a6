"""`python -m joinery.gateway`: wires the gateway and runs it until the query ends."""

import sys

from joinery.adapters.conversations import controlling, exchanging, ingesting
from joinery.adapters.process import Process
from joinery.adapters.settings import plan_of, read_flags, stop_on_signals
from joinery.adapters.sources import open_sources
from joinery.machine.calls import Calls
from joinery.machine.gateway import GatewayMachine
from joinery.machine.memory import MemoryLog
from joinery.model.errors import UserMustAct


def main() -> int:
    """0: the query has ended and everything is committed; 1: it was stopped before."""
    settings = read_flags("gateway")
    spec, plan = plan_of(settings)
    machine = GatewayMachine(spec)
    process = Process(machine, Calls(instance=settings.instance, log=MemoryLog()))
    process.listen(settings.listen, [ingesting(), exchanging(plan), controlling(plan)])
    try:
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
    if not machine.finished:
        sys.stderr.write(f"gateway: {because}\n")
    return 0 if machine.finished else 1


if __name__ == "__main__":
    sys.exit(main())
