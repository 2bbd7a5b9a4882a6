"""`python -m joinery.gateway`: wires the gateway and runs it until the query ends.

Exit codes: 0 the query has ended and everything is committed; 1 it was stopped, or crashed, and may be started again;
2 it cannot run, and neither can another one: the query or its input must be mended, or the state of groups is lost.
"""

import json
import sys
from functools import partial

from joinery.adapters.chronicle import Chronicle
from joinery.adapters.conversations import controlling, exchanging, ingesting
from joinery.adapters.embedded_redis import connect
from joinery.adapters.http_probes import open_probes
from joinery.adapters.logs import complain
from joinery.adapters.lookups import Lookups
from joinery.adapters.metrics_roles import gateway_samples, measured
from joinery.adapters.process import Process
from joinery.adapters.recording import RecordingLog
from joinery.adapters.redis_log import RedisLog
from joinery.adapters.redis_spec import begin_anew, read_origin
from joinery.adapters.settings import CANNOT_RUN, Settings, plan_of, read_flags, stop_on_signals
from joinery.adapters.sources import Source, open_sources
from joinery.adapters.tracing import tracer
from joinery.adapters.tuning import keep_memory, settle
from joinery.gateway.dashboard import show
from joinery.gateway.throttling import throttle
from joinery.machine.calls import Calls
from joinery.machine.gateway import GatewayMachine
from joinery.machine.memory import MemoryLog
from joinery.machine.ports import Log
from joinery.machine.warming import warm_gateway
from joinery.model.errors import TryAgain, UserMustAct
from joinery.model.spec import JoinQuerySpec


def main() -> int:
    """Run it; the exit code."""
    keep_memory()
    settings = read_flags("gateway")
    try:
        return _run(settings)
    except UserMustAct as refused:
        _complain(settings, str(refused))
        return CANNOT_RUN
    except TryAgain as error:
        _complain(settings, str(error))
        return 1


def _complain(settings: Settings, text: str) -> None:
    """Also as the pod's last words: who looks at them should not have to read a log."""
    complain("gateway", text)
    if settings.last_words is not None:
        settings.last_words.write_text(f"gateway: {text}")


def _run(settings: Settings) -> int:
    probes = open_probes(settings.http)
    spec, plan = plan_of(settings)
    warm_gateway(plan)
    settle()
    machine = GatewayMachine(spec, settings.collector or None)
    log = _log_of(spec, settings)
    if settings.record is not None:
        log = RecordingLog(log, plan, settings.record)
    calls, security = Calls(instance=settings.instance, log=log), settings.security()
    process = Process(machine, calls, recorder=Chronicle(machine, tracer(settings.name)), security=security)
    if plan.table is not None:
        process.looking_up(Lookups(settings.lookup, plan, security))
    process.probed(probes, lambda: None if machine.is_open else "the log is not read yet")
    measured(probes, process, settings.joinquery, gateway_samples(machine))
    show(probes, process, machine, settings.joinquery)
    throttle(machine, process)
    talks = [ingesting(), exchanging(plan), controlling(plan)]
    try:
        process.listen(settings.listen, talks, reflects=settings.reflection)
        failed = partial(_source_failed, machine=machine)
        sources = open_sources(spec, plan, settings.query.parent, process, settings.redis, failed)
    except UserMustAct:
        process.close()
        raise
    stop_on_signals(process)
    for source in sources:
        source.start()
    try:
        because = process.run()
    finally:
        for source in sources:
            source.close()
    if not machine.finished and not because.startswith("SIG"):  # who sends a signal knows why
        _complain(settings, because)
    if machine.finished:
        if settings.last_words is not None:
            settings.last_words.write_text(json.dumps({"results": machine.watch.totals.results}))
        return 0
    wrong = [source for source in sources if isinstance(source.error, UserMustAct)]
    is_lost = because == machine.losses.text
    return CANNOT_RUN if wrong or is_lost or process.shell.cannot_run else 1


def _log_of(spec: JoinQuerySpec, settings: Settings) -> Log:
    """On disk, or in the memory of this process."""
    if spec.checkpoint.durability == "wal":
        client = connect(settings.redis)
        if not client.info("persistence").get("aof_enabled"):
            complain(
                "gateway",
                "found a Redis without an append-only file, wanted one for durability wal: what is acknowledged "
                "survives our processes, not a crash of Redis; set appendonly yes, appendfsync always",
            )
        return RedisLog(client, settings.stored_as)
    if settings.redis:
        client = connect(settings.redis)
        if read_origin(client, settings.stored_as) is not None:
            raise UserMustAct(
                "DataLost: found that a gateway of this query ran before, wanted its log, which was in its memory "
                "(checkpoint.durability: memory); start a new query, and write durability: wal to be safe from this"
            )
        begin_anew(client, settings.stored_as, spec)
    return MemoryLog()


def _source_failed(source: Source, machine: GatewayMachine) -> None:
    """It ends the query, unless its stream was ended here (`joinery stop --drain`): what it has left is not wanted."""
    if not machine.intake.head.clocks[source.stream].ended:
        source.process.shell.stop(str(source.error))


if __name__ == "__main__":
    sys.exit(main())
