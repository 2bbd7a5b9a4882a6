"""Where the groups of leaving and of lost workers go.

A shrink takes the highest ordinals, because that is what a StatefulSet removes. All groups of the leaving workers
leave at once, spread over the rest by load; a lost worker's groups are spread in the same way, and the query is never
restarted.

Rule 1: heaviest group first, each to the worker that is then the lightest (by u, then f, then ordinal): no worker
        gets much more than its fair part. In an idle cluster a group counts as `IDLE_PART`, so that their numbers are
        evened out.
Rule 2: a drained group goes only where it fits in memory, else it stays and is listed as left out: the shrink cannot
        be finished. A lost group must live somewhere: if it fits nowhere it goes to where most memory is free, with a
        note.
Rule 3: a lost group of which nothing was reported counts as the mean of those that are known.
Rule 4: a group on its way to a leaving worker is left out as well; plan again when it has arrived. A group that was
        on its way from a lost worker goes where it was going: its state is being loaded there.
"""

from collections.abc import Sequence
from typing import Final

from joinery.elastic.load import ClusterLoad
from joinery.elastic.plan import Book, Kind, Limits, Move, Part, Plan, PlanInputs
from joinery.model.errors import require
from joinery.model.ids import GroupId, WorkerId
from joinery.model.words import counted
from joinery.partition.map import PartitionMap

IDLE_PART: Final = 1e-3
"""The least that a group counts for, as a busy share."""
DETERMINED: Final = 0
"""The seed of plans that choose nothing at random."""


def highest_ordinals(workers: Sequence[WorkerId], by: int) -> tuple[WorkerId, ...]:
    """The workers that leave in a shrink; `workers` are in the order of their ordinals, as in the partition map."""
    require(0 < by < len(workers), f"a shrink by {by} of {len(workers)} workers; at least one stays")
    return tuple(workers[-by:])


def plan_drain(
    load: ClusterLoad,
    leaving: Sequence[WorkerId],
    *,
    limits: Limits | None = None,
    in_flight: tuple[Move, ...] = (),
) -> Plan:
    """All groups of `leaving` go to the workers that stay."""
    return make_drain(
        PlanInputs(kind=Kind.DRAIN, load=load, limits=limits or Limits(), in_flight=in_flight, leaving=tuple(leaving))
    )


def plan_spread(
    load: ClusterLoad,
    lost: Sequence[WorkerId],
    pmap: PartitionMap,
    *,
    limits: Limits | None = None,
    in_flight: tuple[Move, ...] = (),
) -> Plan:
    """The groups that the map gives to `lost` go to the others; `load` may still hold their last reports."""
    return make_spread(
        PlanInputs(
            kind=Kind.SPREAD,
            load=load,
            limits=limits or Limits(),
            in_flight=in_flight,
            leaving=tuple(lost),
            orphans=tuple((group, worker) for worker in lost for group in pmap.groups_of(worker)),
        )
    )


def make_drain(inputs: PlanInputs) -> Plan:
    """The drain plan of recorded inputs."""
    book = Book(inputs.load, inputs.in_flight)
    unknown = set(inputs.leaving) - set(book.parts)
    require(not unknown, f"workers {sorted(unknown)} should be drained but have not reported")
    groups = [(worker, group, part) for worker in inputs.leaving for group, part in book.parts[worker].items()]
    arriving = tuple(group for _, group, _ in groups if group in book.fixed)
    moves, left_out = _place(inputs, book, [row for row in groups if row[1] not in book.fixed], forced=False)
    notes = [f"group {group} fits in nobody's memory" for group in left_out]
    notes += [f"group {group} is still on its way; plan again when it has arrived" for group in arriving]
    share = f"{len(moves)} of {counted(len(groups), 'group moves', 'groups move')}"
    return Plan(
        moves=tuple(moves),
        because=f"drain of {', '.join(inputs.leaving)}: {share}",
        inputs=inputs,
        seed=DETERMINED,
        left_out=tuple(left_out) + arriving,
        notes=tuple(notes),
    )


def make_spread(inputs: PlanInputs) -> Plan:
    """The spread plan of recorded inputs."""
    lost = set(inputs.leaving)
    book = Book(inputs.load, [move for move in inputs.in_flight if not lost & {move.source, move.target}])
    mean = _mean_part(book)
    last = {group: part for worker in lost for group, part in book.parts.get(worker, {}).items()}
    rows = [(source, group, last.get(group, mean)) for group, source in inputs.orphans]
    going = {move.group: move.target for move in inputs.in_flight if move.target in book.parts.keys() - lost}
    moves = [Move(group, source, going[group]) for source, group, _ in rows if group in going]
    for _, group, part in rows:
        if group in going:
            book.give(group, part, going[group])
    placed, left_out = _place(inputs, book, [row for row in rows if row[1] not in going], forced=True)
    moves += placed
    full = [worker for worker in book.parts if book.memory_share(worker) > inputs.limits.memory and worker not in lost]
    share = f"{len(moves)} of {counted(len(rows), 'group goes', 'groups go')}"
    return Plan(
        moves=tuple(moves),
        because=f"loss of {', '.join(inputs.leaving)}: {share} to others",
        inputs=inputs,
        seed=DETERMINED,
        left_out=tuple(left_out),
        notes=tuple(f"{worker} is above its memory bound" for worker in full),
    )


def _mean_part(book: Book) -> Part:
    known = [part for parts in book.parts.values() for part in parts.values()]
    count = max(1, len(known))
    return Part(sum(part.busy for part in known) / count, sum(part.memory_bytes for part in known) // count)


def _place(
    inputs: PlanInputs, book: Book, rows: list[tuple[WorkerId, GroupId, Part]], *, forced: bool
) -> tuple[list[Move], list[GroupId]]:
    """Rule 1: the moves, and the groups that found no place."""
    order = {report.worker: (report.occupancy, place) for place, report in enumerate(inputs.load.reports)}
    staying = [worker for worker in book.parts if worker not in inputs.leaving]
    weight = {worker: max(book.busy[worker], IDLE_PART * len(book.parts[worker])) for worker in staying}
    moves: list[Move] = []
    left_out: list[GroupId] = []
    for source, group, part in sorted(rows, key=lambda row: (-row[2].busy, -row[2].memory_bytes, row[1])):
        fitting = [worker for worker in staying if book.fits(part, worker, inputs.limits)]
        if not fitting and forced:
            fitting = sorted(staying, key=lambda worker: book.memory[worker] - book.limit[worker])[:1]
        if not fitting:
            left_out.append(group)
            continue
        target = min(fitting, key=lambda worker: (weight[worker], order[worker]))
        weight[target] += max(part.busy, IDLE_PART)
        book.give(group, part, target)
        moves.append(Move(group, source, target))
    return moves, left_out
