"""Does the harm of a plan to a running query, and keeps what was done when."""

import os
import random
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from joinery.cli.local import LocalRun
from joinery.elastic.beta import Decision, DegreeInputs, Grow, Keep, Shrink
from joinery.elastic.load import ClusterLoad
from tests.chaos.clock import Clock
from tests.chaos.plans import Fault, Ordered, Plan, in_turn

LOOK_S = 0.01
MOMENT_S = 3.0
"""How long a moment is waited for."""
SETTLE_S = 20.0
"""How long a run may take to come back before the next fault; most runs take a second or two."""
AHEAD_S = 1.0
"""So far rows may run ahead of what is done."""
FRESH_S = 0.6
"""An overview comes every half epoch."""
_SEEN = {"checkpoint": b"block:", "commit": b"}:commit", "record": b"}:log", "handover": b'\\"owners\\"'}
"""What Redis is asked while it is under way: increments are written before their heads; a commit, a record and a map
(the moment at which groups change hands) are one call each."""


class Harm:
    """A thread that works through the faults and orders of a plan."""

    def __init__(self, plan: Plan, run: LocalRun, clock: Clock, is_fed: Callable[[], bool]) -> None:
        self.done: list[str] = []
        self.met: Counter[str] = Counter()
        """Moments that were met."""
        self.inside_moves = 0
        """Faults that met a move under way, as the last overview showed it."""
        self._plan, self._run, self._clock, self._is_fed = plan, run, clock, is_fed
        self._dice = random.Random(f"harm {plan.seed}")
        self._stopped: dict[int, float] = {}
        """Processes that are stopped, and until when."""
        self._ending = threading.Event()
        self._move_s = 0.0
        self._began_s = time.monotonic()
        self._thread = threading.Thread(target=self._work, name="harm", daemon=True)
        self.wanted = run.spec.replicas
        run.operator._decide = self._decide  # type: ignore[method-assign]

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Whoever is still stopped goes on."""
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join(MOMENT_S + 5)
        self._continue(float("inf"))

    # --- the operator's decisions, by the plan

    def _decide(self, load: ClusterLoad, now_ns: int) -> Decision:
        del now_ns
        operator = self._run.operator
        known: dict[str, Any] = {"because": "the plan says so", "inputs": DegreeInputs.of(load, operator._rule)}
        change = self.wanted - operator.replicas
        if change == 0:
            return Keep(**known)
        return Grow(by=change, **known) if change > 0 else Shrink(by=-change, **known)

    # --- the thread

    def _work(self) -> None:
        for one in in_turn(self._plan):
            is_first = isinstance(one, Fault) and one.moment == "start"
            if not is_first and not self._wait_till(lambda at_s=one.at_s: self._is_time(at_s)):
                return
            if isinstance(one, Ordered):
                self._order(one)
            else:
                self._hurt(one)
        while self._stopped and not self._ending.wait(LOOK_S):
            self._continue(time.monotonic())

    def _is_time(self, at_s: float) -> bool:
        return self._clock.is_running and self._clock.now_s() >= at_s

    def _wait_till(self, is_so: Callable[[], bool], seconds: float = 300.0) -> bool:
        """Meanwhile whoever was stopped goes on in time; False: it did not come, or the run ends."""
        until_s = time.monotonic() + seconds
        while not is_so() and time.monotonic() < until_s and not self._ending.wait(LOOK_S):
            self._continue(time.monotonic())
        return is_so() and not self._ending.is_set()

    def _order(self, one: Ordered) -> None:
        if one.replicas is not None:
            self.wanted = one.replicas
            self.note(f"{one.replicas} workers are wanted")
        else:
            self._move(one.moves)

    def _move(self, count: int) -> None:
        view = self._run.progress.last
        workers = [one.worker for one in view.workers if one.is_up] if view is not None else []
        for _ in range(count if workers else 0):
            group, to = self._dice.randrange(self._run.spec.partitions), self._dice.choice(workers)
            self._run.move(group, to)

    def _keep_moving(self) -> bool:
        """A few moves now and then; orders that nobody hears are given again."""
        if time.monotonic() >= self._move_s:
            self._move_s = time.monotonic() + 0.4
            self._move(4)
        return True

    # --- faults

    def _hurt(self, fault: Fault) -> None:
        self._clock.hold(self._clock.now_s() + AHEAD_S if fault.moment != "end" else float("inf"))
        seen = fault.moment == "any" or self._wait_for(fault.moment)
        if fault.delay_s:
            self._wait_till(lambda: False, fault.delay_s)
        if self._ending.is_set():
            return
        pids = self._run.pids
        met = [name for name in fault.victims if name in pids]
        for name in met:
            with suppress(ProcessLookupError):
                os.kill(pids[name], signal.SIGKILL if fault.stop_s is None else signal.SIGSTOP)
            if fault.stop_s is not None:
                self._stopped[pids[name]] = time.monotonic() + fault.stop_s
        moving = self._moving()
        self.inside_moves += moving > 0
        self.met[fault.moment] += seen
        how = "killed" if fault.stop_s is None else f"stopped for {fault.stop_s} s"
        when = "" if fault.moment == "any" else f" at a {fault.moment}" if seen else f" (no {fault.moment} was seen)"
        gone = sorted(set(fault.victims) - set(met))
        missed = f"; not there: {', '.join(gone)}" if gone else ""
        self.note(f"{how} {', '.join(met) or 'nobody'}{when}, {moving} groups moving{missed}")
        if fault.settles and self._clock.is_running:
            self._settle()
        self._clock.release()

    def _settle(self) -> None:
        """Until the gateway is heard again, and everybody is there."""
        hurt_ns, wanted = time.time_ns(), {"gateway", "collector", "redis", "worker-0"}

        def is_back() -> bool:
            view = self._run.progress.last
            return view is not None and view.at_ns > hurt_ns and not self._stopped and wanted <= set(self._run.pids)

        self._wait_till(is_back, SETTLE_S)

    def _moving(self) -> int:
        """Groups on their way, as the last overview shows it; an old one shows nothing."""
        view = self._run.progress.last
        is_new = view is not None and time.time_ns() - view.at_ns < FRESH_S * 1e9
        return len(view.under_way) if view is not None and is_new else 0

    def _continue(self, now_s: float) -> None:
        for pid, until_s in list(self._stopped.items()):
            if now_s >= until_s:
                del self._stopped[pid]
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
                self.note(f"process {pid} goes on")

    def note(self, text: str) -> None:
        """Keep that this happened now."""
        self.done.append(f"{time.monotonic() - self._began_s:6.2f} s {text}")

    def _wait_for(self, moment: str) -> bool:
        """Until it is under way; False: it was not seen in time."""
        until_s = time.monotonic() + MOMENT_S
        if moment == "start":
            return True
        if moment == "end":
            return self._wait_till(self._is_fed)
        if moment == "move":
            return self._wait_till(lambda: self._keep_moving() and self._moving() > 0, MOMENT_S)
        if moment == "rewrite":
            return self._ask_redis(b"BGREWRITEAOF\r\n")
        return self._watch_redis(_SEEN[moment], until_s)

    def _ask_redis(self, words: bytes) -> bool:
        """Without waiting for the answer: it may be stopped."""
        with socket.socket(socket.AF_UNIX) as line, suppress(OSError):
            line.settimeout(0.1)
            line.connect(self._run.redis_url.removeprefix("unix://"))
            line.sendall(words)
            return line.recv(100).startswith(b"+")
        return False

    def _watch_redis(self, wanted: bytes, until_s: float) -> bool:
        """Until Redis is asked for something; one that has just died may come back."""
        while time.monotonic() < until_s and not self._ending.wait(LOOK_S):
            with socket.socket(socket.AF_UNIX) as line, suppress(OSError):
                line.settimeout(0.05)
                line.connect(self._run.redis_url.removeprefix("unix://"))
                line.sendall(b"MONITOR\r\n")
                if self._hears(line, wanted, until_s):
                    return True
        return False

    def _hears(self, line: socket.socket, wanted: bytes, until_s: float) -> bool:
        before = b""
        while time.monotonic() < until_s and not self._ending.is_set():
            self._continue(time.monotonic())
            if wanted == _SEEN["handover"]:
                self._keep_moving()
            with suppress(TimeoutError):
                data = line.recv(1 << 16)
                if not data or wanted in before + data:
                    return bool(data)
                before = data[-len(wanted) :]
        return False


def left_behind(folder: Path) -> list[str]:
    """Processes that still have to do with a folder."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if int(entry.name) != os.getpid() and state != "Z" and any(str(folder) in word for word in words[1:]):
                found.append(f"{entry.name}: {' '.join(words)[:200]}")
    return found


def known_of(run: LocalRun) -> dict[str, Any]:
    """Where a run stands, for whoever must find out why it does not end."""
    view = run.progress.last
    if view is None:
        return {"overview": None}
    return {
        "records": view.records,
        "streams": [(one.rows, one.late, one.watermark_ns) for one in view.streams],
        "workers": [(one.worker, one.is_up, one.groups) for one in view.workers],
        "under way": [(one.group, one.source, one.target, one.is_planned) for one in view.under_way],
        "results": view.results,
        "map": view.map_version,
        "events": [event.text for event in view.events],
        "processes": run.pids,
    }
