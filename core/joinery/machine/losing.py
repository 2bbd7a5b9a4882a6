"""Damaged checkpoints, and groups whose state is lost: those stop for good, the others go on.

Rule 1: while a group's owner lives, a damaged checkpoint of it costs nothing: the owner is asked to write the group
        whole, and a move of the group waits for that.
Rule 2: a new owner that could put a group back only at an older tag is served from there if the log holds every record
        after it. If not, the group's state is lost: it stops. Nobody is sent its rows, and it holds up neither the
        slots, the log nor a drain. What was committed of it stays true; nothing more of it is ever given out.
Rule 3: such a query cannot end as if it were complete. Once all else is committed (output in order: at once, since
        nothing may be given out past the gap) the gateway stops and says which keys, groups and rows.
Rule 4: nothing of this is stored. Another gateway gives the group to its owner again, who finds the damage again.
"""

from dataclasses import dataclass

import numpy as np

from joinery.machine.backlog import Backlog
from joinery.machine.messages import UNCLAIMED, CheckpointDamaged, CheckpointNow, EventKind, Holdings, Release
from joinery.machine.moving import Moves
from joinery.machine.orders import Order, Send
from joinery.machine.placement import Phase, Placement
from joinery.machine.trimming import Trimming
from joinery.machine.watching import Watch
from joinery.model.ids import GroupId, RecordNo, Term, WorkerId
from joinery.model.tuples import as_vector
from joinery.model.words import counted


@dataclass(slots=True)
class _Loss:
    """One group that has stopped."""

    because: str
    state_rows: int
    """In the checkpoint that cannot be read, as far as they can be counted."""
    committed: int
    rows: int
    """Recorded for it since, and never joined."""

    def text(self, group: GroupId) -> str:
        lost = counted(self.state_rows, "row of its window is lost", "rows of its window are lost")
        came = f"that came for it after record {self.committed}"
        left_out = counted(self.rows, f"row {came} is not joined", f"rows {came} are not joined")
        return f"group {group} has stopped: {self.because}; {lost}, and {left_out}"


class Losses:
    """What the gateway does about damaged checkpoints."""

    def __init__(self, placement: Placement, trimming: Trimming, moves: Moves, watch: Watch) -> None:
        self._place, self._trimming, self._moves, self._watch = placement, trimming, moves, watch
        self._lost: dict[GroupId, _Loss] = {}
        self._told: set[tuple[GroupId, str]] = set()

    @property
    def text(self) -> str | None:
        """What is lost; None: nothing."""
        if not self._lost:
            return None
        return "StateLost: " + "; ".join(loss.text(group) for group, loss in sorted(self._lost.items()))

    @property
    def groups(self) -> int:
        """How many have stopped."""
        return len(self._lost)

    @property
    def rows(self) -> int:
        """How many rows came for them that are never joined; those of their windows are not among them."""
        return sum(loss.rows for loss in self._lost.values())

    def recorded(self, backlog: Backlog) -> None:
        """A record is durable: rows of stopped groups are counted, and go nowhere."""
        for group, loss in self._lost.items():
            loss.rows += backlog.rows_of(group, RecordNo(backlog.last - 1))

    def damaged(
        self, worker: WorkerId, message: CheckpointDamaged, backlog: Backlog, term: Term, now_ns: int
    ) -> list[Order]:
        """A worker found a damaged checkpoint."""
        group, place = message.group, self._place
        because = f"{message.key}: {message.reason}"
        if message.version == UNCLAIMED:
            return self._write_anew(group, because, term, now_ns)
        if place.owner(group) != worker or place.terms_of(as_vector([group]))[0] != message.version:
            return []
        if group in self._lost:  # it was found to be lost before the reason came
            self._lost[group].because, self._lost[group].state_rows = because, message.rows
            self._tell_loss(group, now_ns)
            return []
        if place.phase[group] != Phase.SERVED:
            if message.tag < backlog.first - 1:
                return self._stop(worker, group, because, message.rows, backlog, now_ns)
            self._trimming.back_to(group, message.tag)
        self._tell(group, f"{because}; group {group} is made again from record {message.tag + 1} of the log", now_ns)
        return []

    def check(self, worker: WorkerId, holdings: Holdings, backlog: Backlog, now_ns: int) -> list[Order]:
        """A worker holds groups: those that the log no longer leads on from are lost (rule 2)."""
        made: list[Order] = []
        current = np.isin(holdings.groups, self._place.groups_of(worker))
        current &= self._place.terms_of(holdings.groups) == holdings.versions
        current &= holdings.received < backlog.first - 1
        for group, received in zip(holdings.groups[current].tolist(), holdings.received[current].tolist(), strict=True):
            if GroupId(group) not in self._lost:
                because = f"found its checkpoint at record {received}, wanted one from record {backlog.first - 1} on"
                made += self._stop(worker, GroupId(group), because, 0, backlog, now_ns)
        return made

    def _write_anew(self, group: GroupId, because: str, term: Term, now_ns: int) -> list[Order]:
        """Rule 1."""
        place = self._place
        owner = place.owner(group)
        if owner is None or place.phase[group] != Phase.SERVED or not place.workforce.is_up(owner):
            return []
        self._moves.begin_again(group)
        self._tell(group, f"{because}; {owner}, which holds group {group}, writes it anew", now_ns)
        return [Send(place.workforce.peer(owner), CheckpointNow(term, as_vector([group]), whole=True))]

    def _stop(
        self, worker: WorkerId, group: GroupId, because: str, rows: int, backlog: Backlog, now_ns: int
    ) -> list[Order]:
        place = self._place
        committed = int(place.committed[group])
        waiting = backlog.rows_of(group, RecordNo(max(committed, backlog.first - 1)))
        self._lost[group] = _Loss(because, rows, committed, waiting)
        place.stop(group)
        self._trimming.stop(group)
        self._moves.forget(as_vector([group]))
        self._tell_loss(group, now_ns)
        return [Send(place.workforce.peer(worker), Release(place.term, as_vector([group])))]

    def _tell_loss(self, group: GroupId, now_ns: int) -> None:
        loss = self._lost[group]
        if (group, loss.because) not in self._told:
            self._told.add((group, loss.because))
            self._watch.event(EventKind.STATE_LOST, f"StateLost: {loss.text(group)}", now_ns)

    def _tell(self, group: GroupId, text: str, now_ns: int) -> None:
        if (group, text) not in self._told:
            self._told.add((group, text))
            self._watch.event(EventKind.CHECKPOINT_DAMAGED, text, now_ns)
