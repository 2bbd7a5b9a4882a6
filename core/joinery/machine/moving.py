"""Planned moves of groups, with preload: the state is copied while the supplier goes on; only the hand-over pauses.

    CHECKPOINT (the supplier writes an increment) -> PRELOAD (the consumer reads it, and follows newer ones)
    -> once what was preloaded is committed: HAND OVER, which is a change of the map (`machine.placement`)

Waiting for the commit makes the hand-over short: the consumer starts at the preloaded tag and joins little again.
A commit may be a long time coming (output in order waits for every stream): after `PATIENCE` epochs the group goes as
a lost one would, from its newest committed tag, and joins more again; else a drain could wait for ever.
A move whose supplier or consumer goes away is given up; nothing has happened yet, but a consumer that is still there
holds what it has preloaded, and is told to let it go, unless the group comes to it in another way. Drains are many
moves at once, bound by `maxParallelMoves`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from joinery.elastic.plan import Move
from joinery.machine.log import BEFORE_ALL
from joinery.machine.messages import CheckpointNow, Preload, Release
from joinery.machine.orders import Order, Send
from joinery.machine.placement import Phase, Placement
from joinery.model.ids import GroupId, Term, WorkerId
from joinery.model.tuples import I64Array, as_vector

PATIENCE: Final = 5
"""Reorganization epochs that a preloaded group waits for its commit."""


class Step(StrEnum):
    """How far a move is."""

    CHECKPOINT = "checkpoint"
    PRELOAD = "preload"
    COMMIT = "commit"


@dataclass(slots=True)
class Moving:
    """One move under way."""

    move: Move
    step: Step = Step.CHECKPOINT
    tag: int = BEFORE_ALL
    """The first tag that the consumer has read; it follows newer ones, which may never be all committed."""
    waited: int = 0
    """Epochs that have ended since then."""


class Moves:
    """The moves under way and those that wait for their turn."""

    def __init__(self, placement: Placement, max_parallel: int) -> None:
        self._placement, self.max_parallel = placement, max_parallel
        self.under_way: dict[GroupId, Moving] = {}
        self.closed: set[WorkerId] = set()
        """Workers that are being drained: nothing moves there."""
        self._waiting: list[Move] = []
        self._abandoned: list[Move] = []
        """Given up; their consumers have not been told."""
        self.given_up = 0
        """How many there were, for whoever looks."""

    @property
    def in_flight(self) -> tuple[Move, ...]:
        return tuple(moving.move for moving in self.under_way.values())

    @property
    def planned(self) -> tuple[Move, ...]:
        """Under way, or waiting for their turn: a new plan counts them as done."""
        return (*self.in_flight, *self._waiting)

    def start(self, moves: tuple[Move, ...], term: Term) -> list[Order]:
        """Begin these moves, as many at once as are allowed."""
        known = {move.group for move in self._waiting} | set(self.under_way)
        self._waiting += [move for move in moves if move.group not in known]
        return self.advance(term)

    def advance(self, term: Term) -> list[Order]:
        """Begin what may begin; what no longer makes sense is left out.

        A move may be begun while the map that moves its group is being written: once it is, nothing is left to do.
        """
        for group in [g for g, m in self.under_way.items() if self._placement.owner(g) != m.move.source]:
            self._abandon(group)
        made = self._tell_abandoned(term)
        while self._waiting and len(self.under_way) < self.max_parallel:
            move = self._waiting.pop(0)
            if self._makes_sense(move):
                self.under_way[move.group] = Moving(move)
                made.append(self._tell(move.source, CheckpointNow(term, as_vector([move.group]))))
        return made

    def _abandon(self, group: GroupId) -> None:
        if (moving := self.under_way.pop(group, None)) is not None:
            self._abandoned.append(moving.move)
            self.given_up += 1

    def _tell_abandoned(self, term: Term) -> list[Order]:
        made: list[Order] = []
        for move in self._abandoned:
            is_theirs = self._placement.may_own(move.group, move.target)
            if self._placement.workforce.is_up(move.target) and not is_theirs and move.group not in self.under_way:
                made.append(self._tell(move.target, Release(term, as_vector([move.group]))))
        self._abandoned.clear()
        return made

    def _tell(self, worker: WorkerId, message: CheckpointNow | Preload | Release) -> Order:
        return Send(self._placement.workforce.peer(worker), message)

    def _makes_sense(self, move: Move) -> bool:
        place = self._placement
        at_home = place.owner(move.group) == move.source and place.phase[move.group] == Phase.SERVED
        both_up = place.workforce.is_up(move.source) and place.workforce.is_up(move.target)
        is_open = place.map is not None and move.target in place.map.workers and move.target not in self.closed
        return at_home and both_up and is_open

    def checkpointed(self, groups: I64Array, term: Term) -> list[Order]:
        """The supplier wrote increments: the consumers read them."""
        made: list[Order] = []
        for group in groups.tolist():
            if moving := self.under_way.get(GroupId(group)):
                moving.step = Step.PRELOAD if moving.step is Step.CHECKPOINT else moving.step
                made.append(self._tell(moving.move.target, Preload(term, as_vector([group]))))
        return made

    def preloaded(self, worker: WorkerId, groups: I64Array, tags: I64Array) -> list[Order]:
        """A consumer has read these checkpoints."""
        for group, tag in zip(groups.tolist(), tags.tolist(), strict=True):
            moving = self.under_way.get(GroupId(group))
            if moving and moving.move.target == worker and moving.step is not Step.COMMIT:
                moving.step, moving.tag = Step.COMMIT, tag
        return self.hand_over()

    def epoch_ended(self) -> None:
        """Whoever waits for a commit has waited longer."""
        for moving in self.under_way.values():
            moving.waited += moving.step is Step.COMMIT

    def hand_over(self) -> list[Order]:
        """Every move whose preloaded state is committed, or has waited enough, becomes a change of the map."""
        ready = {
            group: moving.move.target
            for group, moving in self.under_way.items()
            if moving.step is Step.COMMIT
            and (moving.tag <= self._placement.committed[group] or moving.waited >= PATIENCE)
        }
        for group in ready:
            del self.under_way[group]
        return self._placement.propose(ready) if ready else []

    def close(self, workers: set[WorkerId]) -> None:
        """These workers are being drained; what is on its way to them is given up, and theirs is planned anew."""
        for worker in workers - self.closed:
            self.give_up(worker)
        self.closed = set(workers)

    def give_up(self, worker: WorkerId) -> None:
        """A worker went away, and its moves with it."""
        self._waiting = [move for move in self._waiting if worker not in (move.source, move.target)]
        for group in [g for g, m in self.under_way.items() if worker in (m.move.source, m.move.target)]:
            self._abandon(group)

    def begin_again(self, group: GroupId) -> None:
        """What the consumer should read is damaged: it waits until the supplier has written it anew."""
        if moving := self.under_way.get(group):
            moving.step, moving.tag, moving.waited = Step.CHECKPOINT, BEFORE_ALL, 0

    def forget(self, groups: I64Array) -> None:
        """These groups got another owner for another reason."""
        for group in groups.tolist():
            self._abandon(GroupId(group))
