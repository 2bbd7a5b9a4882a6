"""What a run has shown so far: kept from the gateway's overviews, for the live table, the lines and the summary."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from joinery.cli.words import counted, duration, number, size
from joinery.flow.delays import Delays
from joinery.machine.messages import EventKind, MoveView, Overview
from joinery.model.spec import JoinQuerySpec

_NOT_TOLD = (EventKind.WORKER_JOINED, EventKind.WORKER_LEFT)
"""Who comes and leaves is told by the degree."""


@dataclass(slots=True)
class Progress:
    """One run as it is seen from outside."""

    name: str
    spec: JoinQuerySpec
    last: Overview | None = None
    degrees: list[tuple[int, int]] = field(default_factory=list)
    """(at, workers), whenever the number changed."""
    moves: list[MoveView] = field(default_factory=list)
    """All that were seen; `last.moves_done` is how many there were."""
    began_anew: bool = False
    """Whether the gateway was started again: delays are counted since then, rows and results from the beginning."""
    stored_peak: int = 0
    """The most that Redis was seen to take."""
    notes: list[str] = field(default_factory=list)
    """What went wrong, for the summary."""
    _news: deque[str] = field(default_factory=deque)
    _before: Overview | None = None
    _decided: str = ""

    def saw(self, view: Overview) -> None:
        """One more overview."""
        seen = self.last
        self.began_anew |= seen is not None and view.produced.rows < seen.produced.rows
        self._before, self.last = seen, view
        self.stored_peak = max(self.stored_peak, view.stored_bytes)
        self._note_degree(view)
        self._note_moves(view, 0 if seen is None else seen.moves_done)
        fresh = view.events_seen - (0 if seen is None else seen.events_seen)
        for event in view.events[-fresh:] if fresh > 0 else ():
            if event.kind not in _NOT_TOLD:
                self.say(event.text)

    def _note_degree(self, view: Overview) -> None:
        before = self.degrees[-1][1] if self.degrees else 0
        if view.degree == before or not view.degree:
            return
        self.degrees.append((view.at_ns, view.degree))
        if before:
            self._news.append(f"{before} → {counted(view.degree, 'worker')}{self._decided}")

    def _note_moves(self, view: Overview, known: int) -> None:
        fresh = view.moves[-(view.moves_done - known) :] if view.moves_done > known else ()
        self.moves += fresh
        pauses = [move.pause_ns for move in fresh if move.pause_ns is not None]
        if pauses:
            pause = f"median {duration(float(np.median(pauses)) / 1e9)}, longest {duration(max(pauses) / 1e9)}"
            self._news.append(f"{counted(view.moves_done - known, 'group')} moved, paused {pause}")

    def decided(self, because: str) -> None:
        """Why the number of workers is about to change."""
        self._decided = f": {because}"

    def say(self, text: str) -> None:
        """Something went wrong, or is strange: shown now, and again at the end."""
        self.notes.append(text)
        self._news.append(text)

    def news(self) -> list[str]:
        """What happened since it was asked last."""
        told = list(self._news)
        self._news.clear()
        return told

    @property
    def recent(self) -> Delays:
        """Production delays since the overview before; all of them if there was none since."""
        if self.last is None:
            return Delays()
        if self._before is None or self._before.produced.rows == self.last.produced.rows:
            return self.last.produced
        counts = self.last.produced.counts - self._before.produced.counts
        total = self.last.produced.total_ns - self._before.produced.total_ns
        return Delays(counts, total, self.last.produced.max_ns)

    # --- as people read it

    def headline(self) -> str:
        """One line: rate, results, delay, degree."""
        view = self.last
        if view is None:
            return "starting"
        parts = [f"{number(round(sum(one.rows_per_s for one in view.streams)))} rows/s"]
        parts.append(counted(view.results, "result"))
        delays = self.recent
        if delays.rows:
            p50, p99 = (duration(delays.percentile_ns(share) / 1e9) for share in (0.5, 0.99))
            parts.append(f"delay p50 {p50}, p99 {p99}")
        parts.append(counted(view.degree, "worker") if view.degree else "waits for its first worker")
        if view.stored_bytes:
            parts.append(f"Redis {size(view.stored_bytes)}")
        if view.under_way:
            parts.append(f"{counted(len(view.under_way), 'group')} moving")
        return "  ".join(parts)

    def table(self, seconds: float | None = None) -> Group:
        """Who is there, and how they fare; after so many seconds, if that is known."""
        view = self.last
        since = "" if seconds is None else f"  {duration(seconds)}"
        head = Text(f"{self.name}{since}  {self.headline()}", style="bold")
        table = Table()
        for column in ("worker", "role", "occupancy", "busy", "window", "groups"):
            table.add_column(column, justify="left" if column in ("worker", "role") else "right", min_width=8)
        for worker in view.workers if view else ():
            load = worker.report
            role = "gone" if not worker.is_up else worker.role.value if worker.role else "new"
            told = ["", "", ""]
            if load is not None:
                told = [f"{load.occupancy:.2f}", f"{load.busy:.0%}", size(load.window_bytes)]
            table.add_row(worker.worker, role, *told, str(worker.groups))
        moves = [] if view is None else [Text(_shown(move)) for move in (*view.moves[-3:], *view.under_way[:3])]
        return Group(head, table, *moves) if view is not None and view.workers else Group(head)


def _shown(move: MoveView) -> str:
    state = "under way" if move.pause_ns is None else f"paused {duration(move.pause_ns / 1e9)}"
    why = f", {move.why}" if move.why else ""
    return f"group {move.group}: {move.source} → {move.target}, {size(move.nbytes)}, {state}{why}"
