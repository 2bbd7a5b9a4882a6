"""`python -m joinery.collector`: wires the collector and runs it until it is stopped."""

import sys

from joinery.adapters.conversations import collecting, controlling, subscribing
from joinery.adapters.embedded_redis import connect
from joinery.adapters.process import Process
from joinery.adapters.redis_commits import RedisCommits
from joinery.adapters.settings import exit_code, plan_of, read_flags, stop_on_signals
from joinery.adapters.sinks import open_sinks, stream_targets
from joinery.machine.calls import Calls
from joinery.machine.collector import CollectorMachine
from joinery.model.ids import GATEWAY


def wired() -> Process:
    """The collector, with its stores, sinks and connections."""
    settings = read_flags("collector")
    spec, plan = plan_of(settings)
    client = connect(settings.redis)
    sinks = open_sinks(spec, plan, settings.query.parent, client, settings.query.stem)
    commits = RedisCommits(client, settings.query.stem, stream_targets(sinks))
    calls = Calls(instance=settings.instance, commits=commits, sinks=sinks)
    process = Process(CollectorMachine(spec), calls)
    process.listen(settings.listen, [collecting(plan), subscribing(plan)])
    process.dial(GATEWAY, lambda: settings.gateway, controlling(plan))
    stop_on_signals(process)
    return process


if __name__ == "__main__":
    sys.exit(exit_code("collector", wired))
