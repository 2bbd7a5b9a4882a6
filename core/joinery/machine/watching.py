"""What the gateway measures for whoever looks: counts, delays, clocks, moves, events. Nothing is decided by it.

Rule 1: a beat is half a reorganization epoch. With each beat workers and collector are asked for the time
        (`flow.clocks`), and the operator, if it is there, gets an `Overview`. It gets the last one when the query ends.
Rule 2: delays, moves and events are lost with the gateway; the results are not, nor how many they are: rows are counted
        by the log's head, results and late rows by the collector's commits (`totals`).
"""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Final

from joinery.elastic.load import ClusterLoad
from joinery.flow.clocks import ClockOffset
from joinery.machine.backlog import Backlog
from joinery.machine.log import Head, Record
from joinery.machine.messages import (
    Event,
    EventKind,
    MoveView,
    Overview,
    Ping,
    Pong,
    SettingsView,
    StreamView,
    Tally,
    Vector,
    WorkerHello,
    WorkerView,
)
from joinery.machine.messages.overview import NO_MAP
from joinery.machine.moving import Moves
from joinery.machine.orders import Order, Send
from joinery.machine.placement import Placement
from joinery.machine.serving import Serving
from joinery.machine.totals import Totals
from joinery.machine.workforce import ordinal
from joinery.model.ids import OPERATOR, Peer, RecordNo, WorkerId
from joinery.model.spec import JoinQuerySpec

NEWEST: Final = 64
"""How many events an overview holds."""


class Watch:
    """The gateway's book about itself."""

    def __init__(self, spec: JoinQuerySpec, placement: Placement, serving: Serving, moves: Moves) -> None:
        self._place, self._serving, self._moves = placement, serving, moves
        self.retune(spec)
        self.next_ns = 0
        self.is_watched = False
        """Whether the operator is connected."""
        self.tally, self.totals = Tally(), Totals()
        self.events: deque[Event] = deque(maxlen=NEWEST)
        self.events_seen = 0
        self.events_by_kind: Counter[EventKind] = Counter()
        self._rows, self._late = [0] * len(spec.streams), [0] * len(spec.streams)
        self._before: deque[tuple[int, tuple[int, ...]]] = deque(maxlen=4)
        """Rows at the last beats."""
        self._clocks: dict[Peer, ClockOffset] = {}
        self._retired: set[tuple[WorkerId, str]] = set()
        self._lost: set[tuple[WorkerId, str]] = set()
        self._is_too_large = False
        self.stored_bytes = 0
        """What the store of the log takes; 0: not known."""
        self.checkpointed_ns = 0
        """When an increment was written last."""

    def retune(self, spec: JoinQuerySpec) -> None:
        """Another beat."""
        self.spec, self._epoch_ns = spec, spec.epochs.reorganization
        self._beat_ns = max(1, self._epoch_ns // 2)

    # --- what happens

    def begins(self, head: Head) -> None:
        """The log was read: the rows before the head were recorded by other gateways."""
        self._rows = list(head.positions)

    def recorded(self, number: RecordNo, record: Record) -> None:
        """A record is durable."""
        self.stamped(number, record)
        for batch in record.batches:
            self._rows[batch.stream] += batch.rows.num_rows
            self._late[batch.stream] += 0 if batch.late is None else int(batch.late.sum())

    def stamped(self, number: RecordNo, record: Record) -> None:
        """When rows arrived that are not joined yet."""
        for batch in record.batches:
            self._serving.ledger.add(number, batch.stream, batch.first_place + batch.rows.num_rows, batch.stamp_ns)

    def committed(self, tally: Tally | None, totals: Totals | None) -> None:
        """The collector tells what was committed."""
        self.totals = self.totals.newest(totals)
        if tally is not None:
            self.tally += tally

    def event(self, kind: EventKind, text: str, now_ns: int) -> None:
        """Something happened that a person wants to know."""
        self.events.append(Event(now_ns, kind, text))
        self.events_seen += 1
        self.events_by_kind[kind] += 1

    def hello(self, message: WorkerHello, now_ns: int) -> None:
        """A worker introduces itself; called before it is in the book."""
        worker, known = message.worker, self._place.workforce.hands.get(message.worker)
        if known is not None and known.instance not in ("", message.instance):
            self.event(EventKind.WORKER_LOST, f"{worker} has ended; a new one takes its place", now_ns)
        if known is None or known.instance != message.instance:
            self.event(EventKind.WORKER_JOINED, f"{worker} is here", now_ns)

    def lost(self, worker: WorkerId, now_ns: int) -> None:
        """A worker was silent for too long; told once, however often it is found."""
        hand, groups = self._place.workforce.hands.get(worker), int(self._place.groups_of(worker).size)
        who = (worker, hand.instance if hand else "")
        if who not in self._lost:
            self._lost.add(who)
            goes = f"; its groups ({groups}) go to the others" if groups else ""
            self.event(EventKind.WORKER_LOST, f"{worker} is silent and taken for lost{goes}", now_ns)

    def vector(self, message: Vector, head: Head, now_ns: int) -> None:
        """What was committed before; whether that is of records that this gateway's log does not hold."""
        self.totals = self.totals.newest(message.totals)
        newest = int(message.committed.max(initial=-1))
        if newest >= head.next_record:
            lost = f"results are committed up to record {newest}, but the log ends before record {head.next_record}"
            self.event(EventKind.DATA_LOST, lost, now_ns)

    def disconnected(self, peer: Peer) -> None:
        """A connection is gone, and what was known of the clock behind it."""
        self._clocks.pop(peer, None)
        if peer == OPERATOR:
            self.is_watched = False

    def pong(self, peer: Peer, message: Pong, now_ns: int) -> None:
        """A ping came back."""
        self._clocks.setdefault(peer, ClockOffset()).add(message.sent_ns, message.clock_ns, now_ns)

    # --- beats

    def clock_is(self, now_ns: int) -> None:
        """The next beat is never further away than a beat, even if the clock was set back."""
        self.next_ns = min(self.next_ns, now_ns + self._beat_ns)

    def ping(self, peer: Peer, now_ns: int) -> Order:
        """Ask a peer for the time."""
        known = self._clocks.get(peer)
        return Send(peer, Ping(now_ns, known.ahead_ns if known else 0))

    def is_due(self, now_ns: int) -> bool:
        """Whether it is time for a beat; if so the next one is set."""
        if now_ns < self.next_ns:
            return False
        self.next_ns = now_ns + self._beat_ns
        return True

    def beat(self, memory_share: float, now_ns: int) -> list[Order]:
        """Rule 1, without the overview."""
        workforce = self._place.workforce
        peers: Iterable[Peer] = [workforce.peer(worker) for worker in workforce.up()]
        if self._place.collector is not None:
            peers = [*peers, self._place.collector]
        self._note_left(now_ns)
        if (memory_share >= 1) != self._is_too_large:
            self._is_too_large = not self._is_too_large
            if self._is_too_large:
                text = "a worker's windows have reached worker.memory; producers wait until rows expire or groups move"
                self.event(EventKind.STATE_TOO_LARGE, text, now_ns)
            else:
                self.event(EventKind.STATE_FITS_AGAIN, "the windows of every worker are below worker.memory", now_ns)
        return [self.ping(peer, now_ns) for peer in peers]

    def _note_left(self, now_ns: int) -> None:
        now = set(self._place.workforce.retired.items())
        for worker, _ in sorted(now - self._retired):
            self.event(EventKind.WORKER_LEFT, f"{worker} is drained and leaves", now_ns)
        self._retired = now

    # --- the overview

    def overview(
        self, load: ClusterLoad | None, head: Head, backlog: Backlog, now_ns: int, *, rejected: int, is_last: bool
    ) -> Overview:
        """The query as it is now; to look changes nothing."""
        place, handovers = self._place, self._place.handovers
        return Overview(
            at_ns=now_ns,
            records=head.next_record,
            streams=self._streams(head, now_ns),
            workers=self._workers(load),
            degree=len(place.map.workers) if place.map else 0,
            n_sup=load.n_sup if load else 0,
            n_con=load.n_con if load else 0,
            map_version=place.map.version if place.map else NO_MAP,
            results=self.totals.results,
            late=sum(self.totals.late),
            produced=self.tally.produced,
            delivered=self.tally.delivered,
            moves=tuple(handovers.done),
            moves_done=handovers.count,
            under_way=self._under_way(now_ns),
            events=tuple(self.events),
            events_seen=self.events_seen,
            unsent_bytes=self._serving.unsent_bytes(backlog),
            unsent_peak_bytes=self._serving.peak_bytes,
            replay_bytes=backlog.nbytes,
            epoch_ns=self._serving.epoch_ns,
            is_last=is_last,
            uncommitted=int(place.committed.min()) + 1,
            rejected=rejected,
            checkpointed_ns=self.checkpointed_ns,
            stored_bytes=self.stored_bytes,
            settings=self._settings(head),
        )

    def tell(self, view: Overview) -> list[Order]:
        """An overview goes out: the rates of the next ones count from here."""
        self._before.append((view.at_ns, tuple(self._rows)))
        return [Send(OPERATOR, view)]

    def _settings(self, head: Head) -> SettingsView:
        scaling = self.spec.scaling
        first = tuple(stream.window for stream in self.spec.streams)
        return SettingsView(
            changes=len(head.changes),
            windows=head.changes[-1].windows if head.changes else first,
            replicas=self.spec.replicas,
            beta=scaling.beta,
            supplier_threshold=scaling.supplier_threshold,
            consumer_threshold=scaling.consumer_threshold,
        )

    def _streams(self, head: Head, now_ns: int) -> tuple[StreamView, ...]:
        since_ns, before = next(
            ((at, rows) for at, rows in self._before if now_ns - at <= self._epoch_ns + self._beat_ns // 2),
            (now_ns - self._epoch_ns, tuple(self._rows)),
        )
        seconds = max(1, now_ns - since_ns) / 1e9
        counted = [max(late, self.totals.late_of(stream)) for stream, late in enumerate(self._late)]
        return tuple(
            StreamView(rows=rows, late=late, rows_per_s=max(0.0, (rows - was) / seconds), watermark_ns=mark)
            for rows, late, was, mark in zip(self._rows, counted, before, head.watermarks, strict=True)
        )

    def _workers(self, load: ClusterLoad | None) -> tuple[WorkerView, ...]:
        place, hands = self._place, self._place.workforce.hands
        told = {r.worker: (r, role) for r, role in zip(load.reports, load.roles, strict=True)} if load else {}
        found = []
        for worker in sorted(place.map.workers if place.map else (), key=ordinal):
            report, role = told.get(worker, (None, None))
            hand = hands.get(worker)
            clock = self._clocks.get(hand.peer) if hand else None
            found.append(
                WorkerView(
                    worker=worker,
                    is_up=hand is not None and hand.is_up,
                    groups=int(place.groups_of(worker).size),
                    role=role,
                    report=report,
                    clock_ahead_ns=clock.ahead_ns if clock else 0,
                    slot=self._serving.slot_of(worker),
                )
            )
        return tuple(found)

    def _under_way(self, now_ns: int) -> tuple[MoveView, ...]:
        """Those that are being prepared, and those whose group stands still."""
        handovers = self._place.handovers
        early = [
            MoveView(
                group=move.group, source=move.source, target=move.target,
                nbytes=handovers.bytes_of(move.source, move.group), is_planned=True, begun_ns=now_ns,
            )
            for move in self._moves.in_flight
        ]  # fmt: skip
        return (*early, *handovers.changing.values())
