"""Which groups suppliers yield to consumers in a reorganization.

Source: seed 000, IV.C: after pairing (`elastic.pairing`) each supplier yields one partition-group, chosen at random:
`paper`.

`guarded` moves as many groups as bring each supplier to the mean load, wherever there is room for them. Pairs are not
kept: one new worker beside three overloaded ones would take from one of them in each epoch, and one overloaded worker
would fill one of three idle ones.

Rule 0: suppliers take turns, the heaviest first; each group goes to the consumer that is then the lightest.
Rule 1: the load is the demand (`elastic.demand`), or u while that is not known; or the memory share where that is what
        makes the worker a supplier.
Rule 2: groups are taken heaviest first (equal ones in random order) while the supplier stays at or above the mean. If
        every one would bring it below, the lightest goes, so that the epoch is not in vain. A supplier at or below the
        mean is only catching up, and gives nothing.
Rule 3: a group goes only if the consumer, with it, is lighter than the supplier was. So the two never change places,
        and one hot group is not thrown to and fro.
Rule 4: a consumer takes a group only if it fits in its memory; the supplier keeps one group.
Rule 5: the plan holds all that is to move; `max_parallel` bounds how many moves are under way at once, not how many
        there are (`Plan.startable`): a supplier with three times its work would need many epochs else. Moves under way
        or waiting count as done.
Rule 6: whoever is known to have less to do than the mean, and than it bears, takes groups as a consumer does, also
        while it is busy with what had waited: after a step of the load everybody is, for some epochs.
"""

from typing import Final

import numpy as np

from joinery.elastic import drain_plan
from joinery.elastic.classify import BUSY_HIGH
from joinery.elastic.load import ClusterLoad, LoadReport, Role
from joinery.elastic.pairing import pair
from joinery.elastic.plan import Book, Kind, Limits, Move, Part, Plan, PlanInputs
from joinery.model.ids import GroupId, WorkerId
from joinery.model.words import counted

ROUNDING: Final = 1e-9
"""Shares are sums of floats; a group that meets the mean but for this is not above it."""


def plan_paper(load: ClusterLoad, *, seed: int, in_flight: tuple[Move, ...] = ()) -> Plan:
    """The bare rule: one group per pair, at random."""
    return replan(PlanInputs(kind=Kind.PAPER, load=load, in_flight=in_flight), seed)


def plan_guarded(
    load: ClusterLoad, *, seed: int, limits: Limits | None = None, in_flight: tuple[Move, ...] = ()
) -> Plan:
    """As many groups as bring each supplier to the mean load."""
    inputs = PlanInputs(kind=Kind.GUARDED, load=load, limits=limits or Limits(), in_flight=in_flight)
    return replan(inputs, seed)


def replan(inputs: PlanInputs, seed: int) -> Plan:
    """The plan of these inputs and this seed, of whichever kind: the same every time."""
    match inputs.kind:
        case Kind.PAPER:
            return _paper(inputs, seed)
        case Kind.GUARDED:
            return _guarded(inputs, seed)
        case Kind.DRAIN:
            return drain_plan.make_drain(inputs)
        case Kind.SPREAD:
            return drain_plan.make_spread(inputs)


def _paper(inputs: PlanInputs, seed: int) -> Plan:
    book, rng = Book(inputs.load, inputs.in_flight), np.random.Generator(np.random.PCG64(seed))
    pairing = pair(inputs.load, group_counts={worker: len(parts) for worker, parts in book.parts.items()})
    moves = []
    for couple in pairing.pairs:
        groups = book.movable(couple.supplier)
        if groups:
            moves.append(Move(groups[rng.integers(len(groups))], couple.supplier, couple.consumer))
    return Plan(moves=tuple(moves), because=_because(inputs.load, moves), inputs=inputs, seed=seed, notes=pairing.notes)


def _guarded(inputs: PlanInputs, seed: int) -> Plan:
    book, rng = Book(inputs.load, inputs.in_flight), np.random.Generator(np.random.PCG64(seed))
    counts = {worker: len(parts) for worker, parts in book.parts.items()}
    consumers = _takers(inputs.load, inputs.limits)
    suppliers = sorted(inputs.load.having(Role.SUPPLIER), key=lambda report: -max(report.load, report.memory_share))
    suppliers = [report for report in suppliers if report.worker not in consumers]
    able = [report.worker for report in suppliers if counts[report.worker] > 1 and consumers]
    notes = [_why_not(report.worker, counts[report.worker]) for report in suppliers if report.worker not in able]
    moves: list[Move] = []
    for supplier in able:
        relief = _relieve(book, supplier, consumers, inputs.limits, rng)
        moves += relief
        if not relief:
            reason = "no group of it makes the pair lighter and fits"
            notes.append(f"{supplier} yields nothing to {' or '.join(consumers)}: {reason}")
    return Plan(moves=tuple(moves), because=_because(inputs.load, moves), inputs=inputs, seed=seed, notes=tuple(notes))


def _takers(load: ClusterLoad, limits: Limits) -> list[WorkerId]:
    """The consumers, and whoever is known to have less to do than the mean and than it bears (rule 6)."""
    bound = min(BUSY_HIGH, sum(report.load for report in load.reports) / max(1, len(load.reports)))

    def has_room(report: LoadReport) -> bool:
        return report.demand is not None and report.demand < bound and report.memory_share <= limits.memory

    rows = zip(load.reports, load.roles, strict=True)
    return [report.worker for report, role in rows if role is Role.CONSUMER or has_room(report)]


def _why_not(supplier: WorkerId, groups: int) -> str:
    reason = "no consumer is left" if groups > 1 else f"it has {groups} group"
    return f"{supplier} is not paired: {reason}"


def _relieve(
    book: Book, supplier: WorkerId, consumers: list[WorkerId], limits: Limits, rng: np.random.Generator
) -> list[Move]:
    """Rules 0-4 for one supplier."""
    by_memory = book.memory_share(supplier) > limits.memory
    workers = list(book.parts)
    mean = sum(_level(book, worker, by_memory) for worker in workers) / len(workers)

    def taker(group: GroupId) -> WorkerId | None:
        part, level = book.parts[supplier][group], _level(book, supplier, by_memory)
        for consumer in sorted(consumers, key=lambda one: _level(book, one, by_memory)):
            after = _level(book, consumer, by_memory) + _size(book, part, consumer, by_memory)
            if after < level - ROUNDING and book.fits(part, consumer, limits):
                return consumer
        return None

    def size(group: GroupId) -> float:
        return _size(book, book.parts[supplier][group], supplier, by_memory)

    groups = [group for group in book.movable(supplier) if size(group) > 0]
    heaviest_first = sorted((groups[i] for i in rng.permutation(len(groups))), key=size, reverse=True)
    moves: list[Move] = []

    def move(group: GroupId) -> None:
        if len(book.parts[supplier]) > 1 and (target := taker(group)) is not None:
            moves.append(Move(group, supplier, target))
            book.apply(moves[-1])

    for group in heaviest_first:
        if size(group) <= _level(book, supplier, by_memory) - mean + ROUNDING:
            move(group)
    for group in reversed(heaviest_first):
        if not moves and _level(book, supplier, by_memory) > mean + ROUNDING:
            move(group)
    return moves


def _level(book: Book, worker: WorkerId, by_memory: bool) -> float:
    return book.memory_share(worker) if by_memory else book.busy[worker]


def _size(book: Book, part: Part, worker: WorkerId, by_memory: bool) -> float:
    return part.memory_bytes / book.limit[worker] if by_memory else part.busy


def _because(load: ClusterLoad, moves: list[Move]) -> str:
    workers = f"{counted(load.n_sup, 'supplier')}, {counted(load.n_con, 'consumer')}"
    return f"{workers}: {counted(len(moves), 'group moves', 'groups move')}"
