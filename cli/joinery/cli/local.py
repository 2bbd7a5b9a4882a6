"""A query on one machine: an embedded Redis, and gateway, collector and workers as processes of their own.

The same processes run as pods in a cluster. Here the runner plays Kubernetes: it starts them, looks after them, and
starts or takes away workers as the operator's machine says. It ends when the gateway says that the query has ended.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from joinery.adapters.conversations import controlling
from joinery.adapters.embedded_redis import EmbeddedRedis
from joinery.adapters.process import Process
from joinery.adapters.settings import free_port
from joinery.elastic.load import ClusterLoad
from joinery.join.plan import JoinPlan
from joinery.machine import orders
from joinery.machine.calls import Calls
from joinery.machine.facts import Fact, Received
from joinery.machine.messages import ClusterReport
from joinery.machine.operator import OperatorMachine
from joinery.machine.orders import Order
from joinery.model.ids import GATEWAY, OPERATOR
from joinery.model.spec import JoinQuerySpec

GRACE_S: Final = 10.0
"""How long a process may take to end when it is asked to."""


class LocalRun:
    """All processes of one query; use it with `with`."""

    def __init__(self, query: Path, spec: JoinQuerySpec) -> None:
        self.query, self.spec = query, spec
        self.operator = OperatorMachine(spec)
        self.failed: str | None = None
        self.load: ClusterLoad | None = None
        """What the gateway reported last."""
        self._redis = EmbeddedRedis(durability="memory")
        self._gateway, self._collector = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._asked_to_go: set[str] = set()
        self._process: Process | None = None

    def __enter__(self) -> "LocalRun":
        try:
            self._redis.start()
            self._start("gateway", "gateway", "--listen", self._gateway)
            self._start("collector", "collector", "--listen", self._collector, "--gateway", self._gateway)
            self._scale(self.spec.replicas)
            self._attend()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def workers(self) -> list[str]:
        """The worker processes that are there."""
        return [name for name in self._children if name.startswith("worker-")]

    def wait(self, look: Callable[["LocalRun"], None], every_s: float = 0.25) -> bool:
        """Until the query has ended (True) or something failed; `look` is called now and then."""
        gateway = self._children["gateway"]
        while gateway.poll() is None and self.failed is None:
            look(self)
            self._look_after()
            time.sleep(every_s)
        look(self)
        if self.failed is None and gateway.returncode != 0:
            self.failed = f"the gateway ended with code {gateway.returncode}"
        return self.failed is None

    # --- processes

    def _start(self, role: str, name: str, *flags: str) -> None:
        command = [sys.executable, "-m", f"joinery.{role}", "--query", str(self.query), "--name", name]
        self._children[name] = subprocess.Popen(  # noqa: S603 - our own modules
            [*command, "--redis", self._redis.url, "--with-parent", *flags],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches this process alone, which then ends the others in order
        )

    def _start_worker(self, ordinal: int) -> None:
        self._start("worker", f"worker-{ordinal}", "--gateway", self._gateway, "--collector", self._collector)

    def _scale(self, replicas: int) -> None:
        """Workers 0 to replicas - 1, as a StatefulSet would have them."""
        for ordinal in range(replicas):
            if f"worker-{ordinal}" not in self._children:
                self._start_worker(ordinal)
        for name in self.workers:
            if int(name.removeprefix("worker-")) >= replicas:
                self._asked_to_go.add(name)
                self._children[name].terminate()

    def _look_after(self) -> None:
        """A worker that died comes back; without gateway or collector there is nothing to go on with."""
        for name, child in list(self._children.items()):
            code = child.poll()
            if code is None or name == "gateway":
                continue
            del self._children[name]
            if name == "collector":
                self.failed = f"the collector ended with code {code}"
            elif name in self._asked_to_go or code == 0:
                self._asked_to_go.discard(name)
            else:
                self._start_worker(int(name.removeprefix("worker-")))

    def _attend(self) -> None:
        """The operator's machine, in a thread of this process."""
        self._process = Process(self.operator, Calls(instance="operator"), recorder=self)
        self._process.shell.carrying({orders.SetReplicas: lambda order: self._scale(order.replicas)})
        address = self._gateway
        self._process.dial(GATEWAY, lambda: address, controlling(JoinPlan.of(self.spec)), role=OPERATOR)
        threading.Thread(target=self._process.run, name="operator", daemon=True).start()

    def saw(self, now_ns: int, fact: Fact, made: list[Order]) -> None:
        """What the operator's machine is told, for whoever looks."""
        del now_ns, made
        if isinstance(fact, Received) and isinstance(fact.message, ClusterReport):
            self.load = fact.message.load

    def close(self) -> None:
        """End every process that was started here."""
        if self._process is not None:
            self._process.close()
        for child in self._children.values():
            if child.poll() is None:
                child.terminate()
        until = time.monotonic() + GRACE_S
        for child in self._children.values():
            try:
                child.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self._redis.stop()
