"""What the page is told once a second, as plain data: a frame. And the past, as columns of numbers.

Rule 1: a frame is made from a `Sight` and the one before it; times are seconds since 1970, sizes bytes, delays seconds.
Rule 2: rates and delays are of the rows between two overviews; until a new one comes, the last ones stand.
Rule 3: nothing of a row is in it: no key, no value.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from joinery.elastic.beta import Decision, Grow, Keep, Shrink
from joinery.flow.delays import Delays
from joinery.machine.messages import Decided, MoveView, Overview, StreamView, WorkerView
from joinery.model.quantities import CountWindow, Window
from joinery.model.spec import JoinQuerySpec
from joinery.model.time import TIME_MAX, TIME_MIN

KEPT: Final = 600
"""Points of the past: ten minutes."""
SHOWN: Final = 20
"""Moves and events of a frame."""
COLUMNS: Final = (
    "at",
    "rows",
    "results",
    "p50",
    "p99",
    "degree",
    "suppliers",
    "consumers",
    "window",
    "unsent",
    "moves",
)


@dataclass(frozen=True, slots=True)
class Change:
    """The number of workers was changed."""

    at_ns: int
    text: str


@dataclass(frozen=True, slots=True)
class Other:
    """Another query that can be looked at."""

    name: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What is known of a query now."""

    view: Overview | None
    """None: nothing yet."""
    spec: JoinQuerySpec
    now_ns: int
    decision: Decision | Decided | None = None
    """None: none was made, or told to whoever serves the page."""
    change: Change | Decided | None = None
    notes: tuple[str, ...] = ()
    """What the runner saw: processes that died, for example."""
    others: tuple[Other, ...] = ()


@dataclass(slots=True)
class Film:
    """Frames of one query, one after the other."""

    name: str
    place: str
    """Who serves it: `local` or `gateway`."""
    points: deque[tuple[float | None, ...]] = field(default_factory=lambda: deque(maxlen=KEPT))
    _before: Overview | None = None
    _rates: dict[str, float | None] = field(default_factory=dict)
    _notes: dict[str, float] = field(default_factory=dict)
    """When each was seen first."""

    def add(self, sight: Sight) -> dict[str, Any]:
        """One more frame; its point is added to the past."""
        view, now_s = sight.view, sight.now_ns / 1e9
        for note in sight.notes:
            self._notes.setdefault(note, now_s)
        head = {"name": self.name, "place": self.place, "at": now_s, "others": [_other(one) for one in sight.others]}
        if view is None:
            news = [{"at": at, "kind": "Note", "text": text} for text, at in self._notes.items()]
            return {**head, "state": "starting", "events": news[-SHOWN:]}
        if self._before is None or view.at_ns > self._before.at_ns:
            self._rates = _rates(self._before, view)
            self._before = view
        point = self._point(view, now_s)
        self.points.append(point)
        return {
            **head,
            "state": "ended" if view.is_last else "running",
            "seen": view.at_ns / 1e9,
            "point": point,
            "streams": _streams(sight.spec, view, sight.now_ns),
            **_totals(view, sight),
            **_control(sight, view),
            "workers": [_worker(one) for one in view.workers],
            **_groups(sight.spec.partitions, view),
            "moves": [_move(one) for one in view.moves[-SHOWN:]],
            "movesDone": view.moves_done,
            "underWay": [_move(one) for one in view.under_way],
            "events": self._events(view),
        }

    def _point(self, view: Overview, now_s: float) -> tuple[float | None, ...]:
        rates = self._rates
        window = sum(one.report.window_bytes for one in view.workers if one.report is not None)
        numbers = (view.degree, view.n_sup, view.n_con, window, view.unsent_bytes, view.moves_done)
        return (round(now_s, 1), rates["rows"], rates["results"], rates["p50"], rates["p99"], *numbers)

    def _events(self, view: Overview) -> list[dict[str, Any]]:
        """The gateway's, and the runner's where it is not the same."""
        told: list[dict[str, Any]] = [
            {"at": one.at_ns / 1e9, "kind": one.kind.value, "text": one.text} for one in view.events
        ]
        known = {one.text for one in view.events}
        own = [{"at": at, "kind": "Note", "text": text} for text, at in self._notes.items() if text not in known]
        return sorted([*told, *own], key=lambda one: float(one["at"]))[-SHOWN:]

    def past(self) -> dict[str, list[float | None]]:
        """The past by columns."""
        points = list(self.points)
        return {name: [point[number] for point in points] for number, name in enumerate(COLUMNS)}


def _other(one: Other) -> dict[str, str]:
    return {"name": one.name, "address": one.address}


def _rates(before: Overview | None, view: Overview) -> dict[str, float | None]:
    if before is None or view.results < before.results or view.produced.rows < before.produced.rows:
        return dict.fromkeys(("rows", "results", "p50", "p99"))  # the first, or a gateway that has begun anew
    seconds = (view.at_ns - before.at_ns) / 1e9
    rows = sum(one.rows for one in view.streams) - sum(one.rows for one in before.streams)
    recent = Delays(view.produced.counts - before.produced.counts, 0.0, view.produced.max_ns)
    known = recent.rows > 0
    return {
        "rows": round(max(0, rows) / seconds, 1),
        "results": round((view.results - before.results) / seconds, 1),
        "p50": recent.percentile_ns(0.5) / 1e9 if known else None,
        "p99": recent.percentile_ns(0.99) / 1e9 if known else None,
    }


def _streams(spec: JoinQuerySpec, view: Overview, now_ns: int) -> list[dict[str, Any]]:
    marks = [one.watermark_ns for one in view.streams if TIME_MIN < one.watermark_ns < TIME_MAX]
    windows = view.settings.windows if view.settings else tuple(one.window for one in spec.streams)
    return [
        {"name": name.name, "window": _window(window), **_stream(one, max(marks, default=0), now_ns)}
        for name, window, one in zip(spec.streams, windows, view.streams, strict=True)
    ]


def _stream(one: StreamView, newest_ns: int, now_ns: int) -> dict[str, Any]:
    mark, is_known = one.watermark_ns, TIME_MIN < one.watermark_ns < TIME_MAX
    return {
        "rows": one.rows,
        "late": one.late,
        "ended": mark >= TIME_MAX,
        "watermark": mark / 1e9 if is_known else None,
        "lag": (now_ns - mark) / 1e9 if is_known else None,
        "behind": (newest_ns - mark) / 1e9 if is_known else None,
    }


def _window(window: Window) -> str:
    return f"last {window.rows:,} rows" if isinstance(window, CountWindow) else str(window)


def _totals(view: Overview, sight: Sight) -> dict[str, Any]:
    return {
        "records": view.records,
        "uncommitted": view.records - view.uncommitted,
        "results": view.results,
        "late": view.late,
        "rejected": view.rejected,
        "unsentPeak": view.unsent_peak_bytes,
        "replay": view.replay_bytes,
        "stored": view.stored_bytes or None,
        "epoch": view.epoch_ns / 1e9,
        "checkpointAge": (sight.now_ns - view.checkpointed_ns) / 1e9 if view.checkpointed_ns else None,
        "durability": sight.spec.checkpoint.durability,
        "delay": {"p50": view.produced.percentile_ns(0.5) / 1e9, "p99": view.produced.percentile_ns(0.99) / 1e9},
    }


def _control(sight: Sight, view: Overview) -> dict[str, Any]:
    scaling = sight.spec.scaling
    told = view.settings
    return {
        "degree": view.degree,
        "suppliers": view.n_sup,
        "consumers": view.n_con,
        "beta": told.beta if told else scaling.beta,
        "thSup": told.supplier_threshold if told else scaling.supplier_threshold,
        "thCon": told.consumer_threshold if told else scaling.consumer_threshold,
        "least": scaling.min,
        "most": scaling.max,
        "mode": scaling.mode,
        "mapVersion": view.map_version,
        "decision": None if sight.decision is None else in_words(sight.decision),
        "change": None if sight.change is None else _change(sight.change),
    }


def _change(change: Change | Decided) -> dict[str, Any]:
    text = change.words() if isinstance(change, Decided) else change.text
    return {"at": change.at_ns / 1e9, "text": text}


def in_words(decision: Decision | Decided) -> str:
    """What was decided, and why."""
    match decision:
        case Decided():
            return decision.words()
        case Grow():
            return f"{decision.by} more: {decision.because}"
        case Shrink():
            return f"{decision.by} fewer: {decision.because}"
        case Keep():
            held = f" (held back by {', '.join(decision.blocked_by)})" if decision.blocked_by else ""
            return f"keep {decision.inputs.degree}: {decision.because}{held}"


def _worker(one: WorkerView) -> dict[str, Any]:
    load = one.report
    return {
        "name": one.worker,
        "up": one.is_up,
        "role": one.role.value if one.role else None,
        "groups": one.groups,
        "occupancy": round(load.occupancy, 4) if load else None,
        "busy": round(load.busy, 4) if load else None,
        "bytes": load.window_bytes if load else None,
        "limit": load.memory_limit if load else None,
    }


def _groups(count: int, view: Overview) -> dict[str, Any]:
    """Which worker (its place in the frame's list; -1: not known) has each group, and how large it is."""
    owners, sizes = [-1] * count, [0] * count
    for place, worker in enumerate(view.workers):
        for part in worker.report.groups if worker.report else ():
            owners[part.group], sizes[part.group] = place, part.memory_bytes
    return {"owners": owners, "sizes": sizes}


def _move(move: MoveView) -> dict[str, Any]:
    return {
        "group": move.group,
        "from": move.source,
        "to": move.target,
        "bytes": move.nbytes,
        "planned": move.is_planned,
        "at": move.begun_ns / 1e9,
        "pause": None if move.pause_ns is None else move.pause_ns / 1e9,
    }
