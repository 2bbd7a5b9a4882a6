"""Changes of a running query, as the gateway makes them (docs/design.md §3, spec changes; `model.spec_change`).

    asked -> WRITING (the spec in force, in the store) -> applied at once -> RECORDING (what is logged) -> answered

Rule 1: one change at a time, whole or not at all; who asks meanwhile waits.
Rule 2: the store first. The stored spec says how many changes the log must hold with it: a gateway that finds one fewer
        has died between the two, and records the last one. So what was begun is done, and who asks again is told that
        nothing is left to do.
Rule 3: the windows of the log are those of its own entries. A spec, of a file or of the store, never decides them.
Rule 4: to end all streams is a change of the log too: the next record ends them, and is the last.
"""

from collections import deque
from dataclasses import dataclass

from joinery.machine.intake import Cut, idle_timeout_ns
from joinery.machine.messages import ChangeQuery, ChangeSpec, EndStreams, EventKind, QueryChanged, SpecNow, StreamsEnded
from joinery.machine.orders import Order, Send, WriteSpec
from joinery.machine.tuning import Tuning
from joinery.model.errors import Complaint
from joinery.model.ids import Peer, RecordNo, Term
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import KeptSpec, SpecChanges, changes, restarted

_ENDED = Complaint("spec", "a query whose streams have ended", "one that runs", "start a new query")


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """A change that was not refused."""

    peer: Peer
    changes: SpecChanges
    kept: KeptSpec


class Changing:
    """What was asked for, and how far it is."""

    def __init__(self, spec: JoinQuerySpec, tuning: Tuning) -> None:
        self._tuning, self._intake = tuning, tuning.intake
        self.spec = spec
        """In force."""
        self.is_changed = False
        """Whether it is another one than processes start with."""
        self._asked: deque[tuple[Peer, JoinQuerySpec]] = deque()
        self._under_way: _UnderWay | None = None
        self._enders: list[Peer] = []

    def opened(self, kept: KeptSpec | None, now_ns: int) -> None:
        """The log was read, and with it the spec in force, if it is another one than we started with (rule 2)."""
        if kept is None:
            return
        self._use(restarted(kept.spec, self.spec), now_ns)
        if kept.version == len(self._intake.head.changes) + 1:
            self._intake.change_spec(_logged(kept))

    def _use(self, spec: JoinQuerySpec, now_ns: int) -> None:
        self.spec, self.is_changed = spec, True
        self._tuning.apply(spec, now_ns)

    def tell(self, peer: Peer, term: Term) -> list[Order]:
        """For who has just come, and has read the spec that the log began with."""
        return [Send(peer, SpecNow(term, self.spec))] if self.is_changed else []

    def asked(self, peer: Peer, message: ChangeQuery | EndStreams, term: Term) -> list[Order]:
        """Somebody wants the query to be another one, or to end."""
        if isinstance(message, EndStreams):
            return self._end(peer)
        self._asked.append((peer, message.spec))
        return self._go_on(term)

    def _go_on(self, term: Term) -> list[Order]:
        made: list[Order] = []
        while self._asked and self._under_way is None:
            peer, spec = self._asked.popleft()
            found = SpecChanges(refused=(_ENDED,)) if self._is_ending else changes(self.spec, spec)
            if found.refused or found.is_empty:
                made.append(Send(peer, QueryChanged(SpecChanges(refused=found.refused))))
                continue
            kept = KeptSpec(len(self._intake.head.changes) + bool(found.logged), spec)
            self._under_way = _UnderWay(peer, found, kept)
            made.append(WriteSpec(term, kept))
        return made

    @property
    def _is_ending(self) -> bool:
        return self._intake.is_ending or self._intake.head.ended

    def written(self, kept: KeptSpec, term: Term, now_ns: int) -> list[Order]:
        """The spec is durable, and in force from now on; what is logged of it goes into the next record."""
        self._use(kept.spec, now_ns)
        made = self._tuning.tell(self.spec, term)
        if self._under_way is not None:
            self._note(self._under_way.changes, now_ns)
        if self._under_way is None or not self._under_way.changes.logged:
            return made + self._answer(None) + self._go_on(term)
        self._intake.change_spec(_logged(kept))
        return made

    def _note(self, found: SpecChanges, now_ns: int) -> None:
        texts = [f"{one.field} {one.found} -> {one.wanted}" for one in (*found.logged, *found.at_once)]
        self._tuning.watch.event(EventKind.SPEC_CHANGED, ", ".join(texts), now_ns)

    def recorded(self, cut: Cut, term: Term) -> list[Order]:
        """A record is durable: whoever waits for what it holds is told."""
        made: list[Order] = []
        if cut.head.ended:
            made += [Send(peer, StreamsEnded(cut.number)) for peer in self._enders]
            self._enders.clear()
        if (under_way := self._under_way) is not None and under_way.changes.logged:
            if len(cut.head.changes) >= under_way.kept.version:
                made += self._answer(cut.number) + self._go_on(term)
            elif cut.head.ended:  # it was stored when the last record was on its way: there is no next one
                self._under_way = None
                made.append(Send(under_way.peer, QueryChanged(SpecChanges(refused=(_ENDED,)))))
        return made + (self._go_on(term) if cut.head.ended else [])

    def _answer(self, record: RecordNo | None) -> list[Order]:
        done, self._under_way = self._under_way, None
        return [] if done is None else [Send(done.peer, QueryChanged(done.changes, record))]

    def _end(self, peer: Peer) -> list[Order]:
        """Somebody wants all streams to end (rule 4)."""
        if self._intake.head.ended:
            return [Send(peer, StreamsEnded(RecordNo(self._intake.head.next_record - 1)))]
        self._enders.append(peer)
        self._intake.is_ending = True
        return []


def _logged(kept: KeptSpec) -> ChangeSpec:
    streams = kept.spec.streams
    windows, lateness = tuple(one.window for one in streams), tuple(one.lateness for one in streams)
    return ChangeSpec(kept.version, windows, lateness, idle_timeout_ns(kept.spec))
