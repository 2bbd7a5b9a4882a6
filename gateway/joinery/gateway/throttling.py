"""A slow link and late turns, for tests and figures only; like `worker.speed`, but of the gateway's sending.

JOINERY_LINK_BYTES_PER_S=200000 lets every exchange take as long as a link of so many bytes per second would, all
workers together and in the order in which they were ordered (seed 000, VI: one network interface at the master).
JOINERY_TURNS=at-once serves all workers of a slot at its start, one after the other, as in the papers: none knows its
turn. Without it each has its even share of the slot.
"""

import os
import time
from typing import Any, Final

from joinery.adapters.process import Process, Send
from joinery.adapters.shell import Shell, Worker
from joinery.machine.gateway import GatewayMachine
from joinery.machine.messages import Exchange, Ping

LINK: Final = "JOINERY_LINK_BYTES_PER_S"
TURNS: Final = "JOINERY_TURNS"
AT_ONCE: Final = "at-once"


class CappedLink:
    """One message after the other, each as long as its rows take."""

    def __init__(self, bytes_per_s: float, send: Send, shell: Shell) -> None:
        self._bytes_per_s, self._send = bytes_per_s, send
        self._free_s = 0.0
        """When all that was sent so far has left."""
        self._thread = Worker("link", shell)

    def send(self, order: Any) -> None:
        """Behind what waits already, so that no message overtakes another; a ping asks for the time, not for room."""
        if isinstance(order.message, Ping):
            self._send(order)
        else:
            self._thread.put(lambda: self._pass(order))

    def _pass(self, order: Any) -> None:
        now_s = time.monotonic()
        if isinstance(order.message, Exchange):
            self._free_s = max(now_s, self._free_s) + order.message.nbytes / self._bytes_per_s
            time.sleep(max(0.0, self._free_s - now_s))
        self._send(order)


def throttle(machine: GatewayMachine, process: Process) -> None:
    """As the environment says; mostly it says nothing."""
    if bytes_per_s := os.environ.get(LINK):
        process.sending(lambda send: CappedLink(float(bytes_per_s), send, process.shell).send)
    machine.serving.turns_known = os.environ.get(TURNS) != AT_ONCE
