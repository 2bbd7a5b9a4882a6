"""Station 3 of 8, slot, as the gateway keeps it: whose turn it is, and what its messages hold.

Rule 1: in its slot a worker gets one message for all its groups that stand at the same place, and one more for each
        other place. Rows are ordered by group; never one frame per group.
Rule 2: a batch ends at the newest record, or before it: where a group was committed when it was assigned (up to there
        it is joined in silence), where output in order was cut, at a change of the spec or of the stored table, and
        when the message is full.
Rule 3: a worker without credit is skipped; its rows wait for its next slot.
Rule 4: with `auto` a slot is also due when enough rows wait (`flow.minibuffer`), and epochs in which a turn came later
        than its slot is long, or small messages piled up at a worker, make the next ones longer.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from joinery.flow.minibuffer import MIN_EPOCH_NS, AutoEpoch, Due, DueRule
from joinery.flow.slot import SlotSchedule
from joinery.flow.stamps import Ledger
from joinery.machine.backlog import Backlog
from joinery.machine.log import SpecChange, TableVersion, version_at
from joinery.machine.messages import Exchange
from joinery.machine.orders import Order, SendExchange
from joinery.machine.placement import Placement
from joinery.model.ids import MapVersion, RecordNo, WorkerId
from joinery.model.spec import JoinQuerySpec
from joinery.model.tuples import I64Array

MESSAGE_BYTES: Final = 1 << 20
"""A message ends at the record with which it holds so many bytes."""
MESSAGES_PER_BUFFER: Final = 4
"""And before it would be more than this part of a worker's buffer. With one message as large as the buffer a worker has
nothing to do until its next slot, and f, seen just before a message, is 0 however much waits here."""


class Serving:
    """The slots, and what is sent in them."""

    def __init__(self, spec: JoinQuerySpec, placement: Placement) -> None:
        self._place = placement
        self.auto: AutoEpoch | None = None
        self._retune(spec)
        self._schedule: SlotSchedule | None = None
        self._turns: dict[WorkerId, int] = {}
        self._slots: dict[WorkerId, int] = {}
        """When the slot of each worker's next turn begins."""
        self._slot_ns = 0
        """The slot that is being served."""
        self.tables: Callable[[], tuple[TableVersion, ...]] = tuple
        """Versions of the stored table that records may be joined with (`machine.tables`)."""
        self.ledger = Ledger(len(spec.streams))
        """When rows arrived."""
        self._latest_ns, self._judged_ns, self._piles_up = 0, 0, False
        self._waits_since_ns: int | None = None
        """Since when something is to be sent; None: nothing is."""
        self._counted: tuple[tuple[int, int, bytes], int] | None = None
        self.turns_known = True
        """False, for figures: all workers of a slot are served at its start, one after the other, as in the papers."""
        self.peak_bytes = 0
        """The most that waited unsent, just before a slot."""

    def _retune(self, spec: JoinQuerySpec) -> None:
        fixed = spec.epochs.distribution
        self._subgroups = spec.epochs.subgroups
        self.auto = (self.auto or AutoEpoch()) if fixed == "auto" else None
        self._fixed_ns = MIN_EPOCH_NS if fixed == "auto" else int(fixed)
        self._limit = max(1, min(MESSAGE_BYTES, spec.worker.buffer // MESSAGES_PER_BUFFER))

    def retune(self, spec: JoinQuerySpec, now_ns: int) -> None:
        """Other epochs, sub-groups or buffers: slots are made anew at once, the present epoch may be a long one."""
        self._retune(spec)
        self._schedule = None
        self.reschedule(now_ns)

    @property
    def epoch_ns(self) -> int:
        """t_d."""
        return self.auto.length_ns if self.auto else self._fixed_ns

    def slot_of(self, worker: WorkerId) -> int | None:
        """In which slot of an epoch it is served."""
        members = self._schedule.subgroups if self._schedule else ()
        return next((place for place, subgroup in enumerate(members) if worker in subgroup), None)

    def reschedule(self, now_ns: int) -> None:
        """The map changed: slots are made anew, from the next epoch on."""
        if self._place.map is None:
            return
        start = self._schedule.boundary_after(now_ns) if self._schedule else now_ns
        self._schedule = SlotSchedule.of(
            self._place.map, subgroups=self._subgroups, epoch_ns=self.epoch_ns, start_ns=start
        )
        self._turns, self._slots = {}, {}
        for worker in self._place.map.workers:
            self._plan_turn(worker, self._schedule, now_ns)

    def _plan_turn(self, worker: WorkerId, schedule: SlotSchedule, now_ns: int) -> None:
        turn = schedule.next_turn(worker, now_ns)
        if not self.turns_known and turn.slot.start_ns < now_ns:
            turn = schedule.turn(worker, turn.slot.epoch + 1)
        at = turn.start_ns if self.turns_known else turn.slot.start_ns
        self._turns[worker], self._slots[worker] = at, turn.slot.start_ns

    def clock_is(self, now_ns: int) -> None:
        """If the clock was set back, the slots begin anew."""
        turn = self.next_turn_ns()
        if turn is not None and turn > now_ns + 2 * self.epoch_ns:
            self._schedule = None
            self.reschedule(now_ns)

    def _note_use(self, late_ns: int, now_ns: int) -> None:
        """`auto`: how late turns are, once per epoch; if the slots overran, the next epoch is longer (rule 4)."""
        self._latest_ns = max(self._latest_ns, late_ns)
        if self.auto is None or self._schedule is None or now_ns < self._judged_ns + self.epoch_ns:
            return
        before = self.auto.length_ns
        slot_ns = before // self._schedule.n_g
        self.auto = self.auto.after(slot_ns=slot_ns, used_ns=self._latest_ns, piles_up=self._piles_up)
        self._latest_ns, self._judged_ns, self._piles_up = 0, now_ns, False
        if self.auto.length_ns != before:
            self.reschedule(now_ns)

    def next_turn_ns(self) -> int | None:
        """When somebody is to be served."""
        return min(self._turns.values(), default=None)

    def serve(self, backlog: Backlog, changes: tuple[SpecChange, ...], now_ns: int) -> list[Order]:
        """Send to everybody whose turn has come, in the fixed order."""
        made: list[Order] = []
        if self._waits_since_ns is None and self.has_unsent(backlog):
            self._waits_since_ns = now_ns
        due = sorted((at, worker) for worker, at in self._turns.items() if at <= now_ns)
        if due:
            self.peak_bytes = max(self.peak_bytes, self.unsent_bytes(backlog))
        for _, worker in due:
            self._slot_ns = self._slots[worker]
            self._piles_up |= self._place.workforce.piles_up(worker, self._limit // 2)
            made += self.fill(worker, backlog, changes)
            if self._schedule:
                self._plan_turn(worker, self._schedule, now_ns + 1)
        if due and self._waits_since_ns is not None:  # a turn that had nothing to give was not late
            self._note_use(now_ns - max(due[0][0], self._waits_since_ns), now_ns)
        if not self.has_unsent(backlog):
            self._waits_since_ns = None
        return made

    def serve_if_full(self, backlog: Backlog, changes: tuple[SpecChange, ...], now_ns: int) -> list[Order]:
        """Rule 4: enough waits, so the slots come early, all in their order."""
        if self.auto is None:
            return []
        rule = DueRule(max_age_ns=self.epoch_ns)
        waiting = self.unsent_bytes(backlog)
        if rule.due(waiting_bytes=waiting, oldest_ns=now_ns, now_ns=now_ns) is not Due.FULL:
            return []
        self.peak_bytes = max(self.peak_bytes, waiting)
        self._slot_ns = now_ns
        return [order for worker in self._turns for order in self.fill(worker, backlog, changes)]

    def has_unsent(self, backlog: Backlog) -> bool:
        """Whether some group lacks a record, with rows or without."""
        return bool(((self._place.sent < backlog.last) & ~self._place.stopped).any())

    def unsent_bytes(self, backlog: Backlog) -> int:
        """Bytes in all mini-buffers."""
        going = ~self._place.stopped
        state = (backlog.first, backlog.last, self._place.sent.tobytes() + going.tobytes())
        if self._counted is None or self._counted[0] != state:  # asked after every fact, mostly with the same answer
            self._counted = (state, int(backlog.bytes_after(self._place.sent)[going].sum()))
        return self._counted[1]

    def unsent_rows(self, backlog: Backlog) -> int:
        """Rows in all mini-buffers, for whoever looks."""
        return backlog.rows_after(np.where(self._place.stopped, backlog.last, self._place.sent))

    def fill(self, worker: WorkerId, backlog: Backlog, changes: tuple[SpecChange, ...]) -> list[Order]:
        """The worker's messages, as long as it has credit."""
        made: list[Order] = []
        place, hands = self._place, self._place.workforce
        if place.map is None or not hands.is_up(worker):
            return made
        while True:
            groups = place.served_by(worker)
            groups = groups[place.sent[groups] < backlog.last]
            if not groups.size or not hands.has_credit(worker):
                return made
            exchange = self._message(groups, backlog, changes, place.map.version)
            place.sent[exchange.groups] = exchange.upto
            hands.sent(worker, exchange.nbytes, exchange.groups, exchange.upto)
            made.append(SendExchange(hands.peer(worker), exchange))

    def _message(
        self, groups: I64Array, backlog: Backlog, changes: tuple[SpecChange, ...], version: MapVersion
    ) -> Exchange:
        """The next message for some of these groups: those whose batch ends first."""
        ends = self._ends(groups, backlog.last, changes)
        upto = RecordNo(int(ends.min()))
        groups = groups[ends == upto]
        after = self._place.sent[groups]
        upto = backlog.reach(groups, after, upto, self._limit)
        groups, after = groups[after < upto], after[after < upto]
        in_force = tuple(change for change in changes if change.record < upto)
        batches = backlog.batch(groups, after, upto)
        return Exchange(
            self._place.term, version, groups, after, upto, backlog.marks_at(upto), batches, in_force,
            tuple(self.ledger.steps(batch.stream, batch.places) for batch in batches), self.ledger.stamp_at(upto),
            self._slot_ns, version_at(self.tables(), upto),
        )  # fmt: skip

    def _ends(self, groups: I64Array, last: RecordNo, changes: tuple[SpecChange, ...]) -> I64Array:
        """Where the next batch of each group must end (rule 2)."""
        sent, ends = self._place.sent[groups], np.full(groups.size, last, np.int64)
        for stop in (self._place.silent[groups], self._place.seen[groups]):
            ends = np.where(sent < stop, np.minimum(ends, stop), ends)
        for record in [*(change.record for change in changes), *(table.record for table in self.tables())]:
            ends = np.where(sent < record, np.minimum(ends, record), ends)
        return ends
