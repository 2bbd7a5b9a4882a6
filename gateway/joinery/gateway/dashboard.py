"""The dashboard of a query in a cluster: served by its gateway beside the probes (`--http`)."""

import time
from functools import partial

from joinery.adapters.dashboard import Dashboard, Film, Sight
from joinery.adapters.http_probes import Probes
from joinery.adapters.process import Process
from joinery.machine.gateway import GatewayMachine
from joinery.machine.messages import last_act


def show(probes: Probes | None, process: Process, machine: GatewayMachine, name: str) -> None:
    """Until the process ends; its last frame says whether the query has."""
    if probes is None:
        return

    board = Dashboard(probes, Film(name, "gateway"), lambda: process.shell.look(partial(sight_of, machine)))
    process.ending(lambda: board.close(lambda: sight_of(machine, time.time_ns(), is_last=machine.finished)))


def sight_of(machine: GatewayMachine, now_ns: int, *, is_last: bool = False) -> Sight:
    """What a gateway knows, with what the operator told it of its decisions."""
    told = machine.looking.decisions
    return Sight(
        view=machine.overview(now_ns, is_last=is_last) if machine.is_open else None,
        spec=machine.spec,
        now_ns=now_ns,
        decision=told[-1] if told else None,
        change=last_act(told),
    )
