"""A query on one machine: an embedded Redis, and gateway, collector and workers as processes of their own.

The same processes run as pods in a cluster. Here the runner plays Kubernetes: it starts them, looks after them
(`children`), and starts or takes away workers as the operator's machine says. It ends when the gateway says that the
query has ended. What is safe on disk (`durability: wal`) survives every one of them; with `memory` the log goes with
the gateway, so its death is the end of the run.

The query file is read once. Its processes get a copy of that text, also those that are started later: whoever edits the
file meanwhile edits the next run.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from joinery.adapters.conversations import controlling
from joinery.adapters.dashboard import Change
from joinery.adapters.dashboard.frames import in_words
from joinery.adapters.process import Process
from joinery.adapters.recording import RESULTS, forget_recording
from joinery.adapters.scaling_record import DecisionTeller, forget_scaling
from joinery.adapters.settings import REDIS_URL, free_port
from joinery.adapters.sinks import open_sinks
from joinery.adapters.sinks.file_sink import FileSink
from joinery.adapters.sinks.part_files import parts_of
from joinery.adapters.tracing import tracer
from joinery.cli.children import MOST_CRASHES, SOON_S, Children
from joinery.cli.dashboards import OFF, LocalDashboard
from joinery.cli.leftovers import keep, let_go, scratch
from joinery.cli.local_redis import LocalRedis
from joinery.cli.local_table import LOOKUP, LocalTable
from joinery.cli.nursery import nursery
from joinery.cli.progress import Progress
from joinery.cli.query_file import name_of, outputs, text_of
from joinery.cli.running import Announcement
from joinery.cli.words import counted
from joinery.join.plan import JoinPlan
from joinery.machine import orders
from joinery.machine.calls import Calls
from joinery.machine.facts import Fact, Received
from joinery.machine.messages import Drain, MoveGroup, Overview
from joinery.machine.operator import OperatorMachine
from joinery.machine.orders import Order
from joinery.model.errors import BadSpec, JoineryError, UserMustAct
from joinery.model.ids import GATEWAY, OPERATOR, GroupId, WorkerId
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import SpecChanges, changes, restarted

LAST_WORDS_S: Final = 2.0
"""How long the gateway's last overview may take after it has ended."""


class LocalRun:
    """All processes of one query; use it with `with`."""

    modules: Mapping[str, str] = {}
    """What runs in place of `joinery.ROLE` or of the lookup application, for tests and figures; by role."""

    def __init__(
        self,
        query: Path,
        spec: JoinQuerySpec,
        *,
        port: int = 0,
        record: Path | None = None,
        name: str = "",
        state: Path | None = None,
        dashboard: str = OFF,
        text: str | None = None,
    ) -> None:
        self.query, self.spec = query, spec
        self._text = text_of(query) if text is None else text
        """What the file said when the spec was read from it."""
        self._held = ExitStack()
        self._query_flags: list[str] = []
        self._belongings: list[Path] = []
        """What somebody must take away if this process is killed."""
        self.progress = Progress(name or query.stem, spec)
        self._record = record
        """Folder in which the input is recorded for `joinery verify`; None: it is not."""
        self.operator = OperatorMachine(spec)
        self.failed: str | None = None
        self.finished_s: float | None = None
        """When (seconds since 1970) the gateway said that everything is committed."""
        self._ended = False
        """Whether everything is committed and the sinks are complete."""
        self._redis = LocalRedis(spec.redis.url, query.stem, spec.checkpoint.durability, state)
        self._keeps_state = state is not None
        self._gateway, self._collector = (f"127.0.0.1:{at or free_port()}" for at in (port, 0))
        self._lookup = LocalTable(spec, record, state)
        self._announcement = Announcement(query, name_of(self._text), self._gateway, self._collector)
        self._stopping = threading.Event()
        self._older = {path: _stamp(path) for path in outputs(spec, query.parent)}
        """Outputs of an earlier run."""
        self._children = Children(self.progress.say, self._may_return)
        self._redis_deaths: list[float] = []
        self._wanted = self._scaled = self.operator.replicas
        self._process: Process | None = None
        self._attending: threading.Thread | None = None
        self._tracer = tracer("operator")
        self._teller: DecisionTeller | None = None
        self.last_change: Change | None = None
        """Of the number of workers."""
        self._dashboard_at = dashboard
        self._dashboard: LocalDashboard | None = None
        self.dashboard = ""
        """Its address, once the run has begun; empty: there is none."""

    def __enter__(self) -> "LocalRun":
        nursery()  # it loads while Redis starts
        try:
            self._hand_out()
            self._redis.start()
            self._write_down([*self._redis.scratch, *self._parts()])
            self._children.environment[REDIS_URL] = self._redis.url
            if self._redis.goes_on:
                self.progress.say("there is a log already: the query goes on where it was stopped")
                self._check_file()
            elif self._record is not None:
                forget_recording(self._record)
                forget_scaling(self._record)
            if self._dashboard_at != OFF:
                self._dashboard = LocalDashboard(self, self._dashboard_at)
                self.dashboard = self._announcement.dashboard = self._dashboard.url
            self._announcement.begin()
            self._write_down([self._announcement.path] if self._announcement.path is not None else [])
            if self._lookup.is_needed:
                module = self.modules.get("lookup", LOOKUP)
                self._children.start("lookup", module, self._lookup.words(self._query_flags, module))
            self._start("gateway", "gateway", "--listen", self._gateway, "--collector", self._collector)
            self._start("collector", "collector", "--listen", self._collector, "--gateway", self._gateway)
            self._scale(self._wanted)
            self._attend()
        except BaseException:
            self.close()
            raise
        return self

    def _hand_out(self) -> None:
        """The query as it was read, for every process."""
        copy = self._held.enter_context(scratch("run")) / "query.yaml"
        copy.write_text(self._text)
        self._query_flags = ["--query", str(self.query), "--as-read", str(copy)]

    def _write_down(self, paths: list[Path]) -> None:
        keep(*paths)
        self._belongings += paths

    def _parts(self) -> list[Path]:
        """What is half-written while it runs, and of no use to anybody if it is not to go on."""
        if self._keeps_state or self._redis.run is None:
            return []
        files = outputs(self.spec, self.query.parent)
        files += [self._record / RESULTS] if self._record is not None else []
        return [part for path in files for part in parts_of(path, self._redis.run)]

    def _check_file(self) -> None:
        """A file that was edited since the query began: what it asks for may be another query."""
        begun = self._redis.spec()
        found = SpecChanges() if begun is None else changes(restarted(begun, self.spec), self.spec)
        if found.refused:
            raise BadSpec(list(found.refused))
        if not found.is_empty:
            fields = ", ".join(one.field for one in (*found.logged, *found.at_once))
            self.progress.say(f"the file asks for another {fields}; joinery change {self.query.name} makes it so")

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def gateway(self) -> str:
        """The address to push to, and to read results from."""
        return self._gateway

    @property
    def workers(self) -> list[str]:
        """The worker processes that are there."""
        return [name for name in self._children.names if name.startswith("worker-")]

    @property
    def pids(self) -> dict[str, int]:
        """The processes that are there, our own Redis and its watcher among them; nobody is asked for it."""
        return {**self._redis.pids, **self._children.pids}

    @property
    def redis_url(self) -> str:
        """Where the query's Redis is."""
        return self._redis.url

    def wait(self, look: Callable[["LocalRun"], None], every_s: float = 0.25) -> bool:
        """Until the query has ended (True) or something failed; `look` is called now and then."""
        while not self._is_over:
            self.attend(look)
            self._stopping.wait(every_s)
        look(self)
        if self._stopping.is_set() and "gateway" not in self._children.done:
            return False
        self._ended = self.failed is None
        self._hear_the_end()
        return self._ended

    def attend(self, look: Callable[["LocalRun"], None]) -> None:
        """Look once, and see to whoever needs it; for those who do not `wait`. On the thread that began the run."""
        look(self)
        self._look_after()

    @property
    def _is_over(self) -> bool:
        return "gateway" in self._children.done or self.failed is not None or self._stopping.is_set()

    def stop(self) -> None:
        """End the run before its end; may be called by a signal, at any moment, more than once."""
        self._stopping.set()

    def move(self, group: int, to: str) -> None:
        """Order that a group moves to a worker; it does when its state is there (`progress` shows it)."""
        if self._process is not None:
            self._process.send(GATEWAY, MoveGroup(GroupId(group), WorkerId(to)))

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def _hear_the_end(self) -> None:
        """The last overview may still be on its way."""
        until = time.monotonic() + LAST_WORDS_S
        while self._ended and time.monotonic() < until:
            if self.progress.last is not None and self.progress.last.is_last:
                return
            time.sleep(0.01)

    # --- processes

    def _start(self, role: str, name: str, *flags: str) -> None:
        recording = [] if self._record is None else ["--record", str(self._record)]
        words = [*self._query_flags, "--name", name, "--keys", self._redis.keys, *flags, *recording]
        words += self._lookup.flags
        self._children.start(name, self.modules.get(role, f"joinery.{role}"), words)

    def _start_worker(self, ordinal: int) -> None:
        self._start("worker", f"worker-{ordinal}", "--gateway", self._gateway, "--collector", self._collector)

    def _want(self, order: orders.SetReplicas) -> None:
        """Done by the thread that waits, which looks after them all."""
        self._wanted = order.replicas

    def _scale(self, replicas: int) -> None:
        """Workers 0 to replicas - 1, as a StatefulSet would have them."""
        self._scaled = replicas
        for ordinal in range(replicas):
            if f"worker-{ordinal}" not in self._children:
                self._start_worker(ordinal)
        for name in self.workers:
            if int(name.removeprefix("worker-")) >= replicas:
                self._children.leave(name)

    def _look_after(self) -> None:
        """As many workers as are wanted; whoever died comes back, if it can."""
        if self._wanted != self._scaled:
            self._scale(self._wanted)
        if self._redis.has_died:
            self._revive_redis()
        self._children.look_after()
        if self.failed is None and self._children.failed is not None:
            self.failed = self._children.failed + self._loss()

    def _may_return(self, name: str) -> bool:
        """A gateway without its log has nothing to go on with."""
        return name != "gateway" or self.spec.checkpoint.durability == "wal"

    def _loss(self) -> str:
        """What a crash of the gateway costs without a log on disk."""
        view, failed = self.progress.last, self._children.failed or ""
        if view is None or self._may_return("gateway") or not failed.startswith("gateway was"):
            return ""
        recorded, results = counted(sum(one.rows for one in view.streams), "row"), counted(view.results, "result")
        return (
            f"; DataLost: the log was in its memory (checkpoint.durability: memory): {recorded} had been recorded, "
            f"{results} committed"
        )

    def _revive_redis(self) -> None:
        """One that dies again on its way is brought up again, at the next look."""
        now_s = time.monotonic()
        self._redis_deaths = [*(one for one in self._redis_deaths if one > now_s - SOON_S), now_s]
        if len(self._redis_deaths) > MOST_CRASHES:
            self.failed = self.failed or f"the embedded Redis has died {MOST_CRASHES + 1} times within {SOON_S:g} s"
            return
        try:
            is_back = self._redis.revive()
        except UserMustAct as error:
            self.progress.say(f"the embedded Redis has died, and could not be brought up: {error}")
            return
        if is_back:
            self.progress.say("the embedded Redis has died; it is back, with all that it had answered")
        else:
            self.failed = self.failed or "the embedded Redis has died"

    def _attend(self) -> None:
        """The operator's machine, in a thread of this process."""
        self._process = process = Process(self.operator, Calls(instance="operator"), recorder=self)
        self._teller = DecisionTeller(self.operator, lambda one: process.send(GATEWAY, one), self._record)
        self._process.shell.carrying({orders.SetReplicas: self._want})
        address = self._gateway
        self._process.dial(GATEWAY, lambda: address, controlling(JoinPlan.of(self.spec)), role=OPERATOR)
        self._attending = threading.Thread(target=self._process.run, name="operator", daemon=True)
        self._attending.start()

    def saw(self, now_ns: int, fact: Fact, made: list[Order]) -> None:
        """What the operator's machine is told, for whoever looks."""
        if self._tracer is not None:
            self._tracer.saw(now_ns, fact, made)
        if self._teller is not None:
            self._teller.saw(now_ns, fact, made)
        decision = self.operator.last_decision
        for order in made:
            is_drain = isinstance(order, orders.Send) and isinstance(order.message, Drain)
            if decision is not None and (is_drain or isinstance(order, orders.SetReplicas)):
                self.progress.decided(decision.because)
                self.last_change = Change(now_ns, in_words(decision))
        if isinstance(fact, Received) and isinstance(fact.message, Overview):
            self.progress.saw(fact.message)
            self.finished_s = now_ns / 1e9 if fact.message.is_last else None

    def close(self) -> None:
        """End every process that was started here."""
        if self._process is not None:
            self._process.close()
        if self._attending is not None:
            self._attending.join(LAST_WORDS_S)
        for recorder in (self._tracer, self._teller):
            if recorder is not None:
                recorder.close()
        if self._dashboard is not None:
            self._dashboard.close()
            self._dashboard = None
        self._children.close()
        if not self._ended and not self._keeps_state:
            self._discard()
        self._redis.stop(ended=self._ended)
        self._lookup.close(ended=self._ended)
        self._announcement.end()
        self._held.close()
        let_go(*self._belongings)

    def _discard(self) -> None:
        """A run that did not end leaves nothing half-written beside its outputs; if it was as good as over, it says so.

        Redis may be gone: the name of the run is all that is needed.
        """
        if self._redis.run is None:
            return
        files = self.spec.model_copy(update={"sinks": tuple(one for one in self.spec.sinks if one.file is not None)})
        if files.late is not None and files.late.sink.file is None:
            files = files.model_copy(update={"late": None})
        with suppress(JoineryError, OSError):
            for sink in open_sinks(files, JoinPlan.of(files), self.query.parent, None, self._redis.run):
                if isinstance(sink, FileSink):
                    sink.discard()
        for path, older in self._older.items():
            if _stamp(path) != older:
                self.progress.say(f"{path} was complete already, and is there")


def _stamp(path: Path) -> tuple[int, int] | None:
    """Which file it is; None: there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
