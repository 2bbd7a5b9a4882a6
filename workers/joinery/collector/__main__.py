"""`python -m joinery.collector`: wires the collector and runs it until it is stopped."""

import sys

from joinery.adapters.chronicle import Chronicle
from joinery.adapters.conversations import collecting, controlling, subscribing
from joinery.adapters.embedded_redis import connect
from joinery.adapters.http_probes import open_probes
from joinery.adapters.metrics_roles import collector_samples, measured
from joinery.adapters.process import Process
from joinery.adapters.recording import RESULTS
from joinery.adapters.redis_commits import RedisCommits
from joinery.adapters.settings import exit_code, plan_of, read_flags, stop_on_signals
from joinery.adapters.sinks import open_sinks, recording_sink, stream_targets
from joinery.adapters.sinks.retained import RedisRetained
from joinery.adapters.tracing import tracer
from joinery.adapters.tuning import keep_memory, settle
from joinery.machine.calls import Calls
from joinery.machine.collector import CollectorMachine
from joinery.model.ids import GATEWAY


def wired() -> Process:
    """The collector, with its stores, sinks and connections."""
    keep_memory()
    settings = read_flags("collector")
    probes = open_probes(settings.http)
    spec, plan = plan_of(settings)
    settle()
    client = connect(settings.redis)
    sinks = open_sinks(spec, plan, settings.query.parent, client, settings.stored_as)
    if settings.record is not None and not any(sink.file is not None for sink in spec.sinks):
        sinks.append(recording_sink(plan, settings.record / RESULTS, client, settings.stored_as))
    commits = RedisCommits(client, settings.stored_as, stream_targets(sinks))
    retained = None
    if spec.checkpoint.durability == "wal":
        retained = RedisRetained(client, settings.stored_as, plan, spec.results.retain)
    calls = Calls(instance=settings.instance, commits=commits, sinks=sinks, retained=retained)
    machine = CollectorMachine(spec)
    process = Process(machine, calls, recorder=Chronicle(machine, tracer(settings.name)), security=settings.security())
    process.listen(settings.listen, [collecting(plan), subscribing(plan)], reflects=settings.reflection)
    process.dial(GATEWAY, lambda: settings.gateway, controlling(plan))
    process.probed(
        probes,
        lambda: None if machine.is_ready else "the last commit is not read yet, or the sinks are not ready",
        lambda: process.lacks(GATEWAY),
    )
    measured(probes, process, settings.joinquery, collector_samples(machine))
    stop_on_signals(process)
    return process


if __name__ == "__main__":
    sys.exit(exit_code("collector", wired, ends_when_told=True))
