"""The state of a group, taken as an increment since a tag, and put back (DESIGN §3, checkpoints).

An increment holds the rows that came since the tag, the places of rows that matched since then, the marks that the
group has reached, and its fine-tuning directory. Its cost follows the input, not the window: blocks without a newer
row are passed over. Put together in the order of their tags, increments give the group as it was at the last one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joinery.model.errors import Bug, require
from joinery.model.ids import GroupId, RecordNo
from joinery.model.tuples import I64Array, Order, TupleBatch
from joinery.window.sliding import Floor, Marks
from joinery.window.store import MATCHED

if TYPE_CHECKING:
    from joinery.join.logic import WindowJoin


@dataclass(frozen=True, slots=True, eq=False)
class Increment:
    """What changed in one group after the tag `since` up to the tag `tag`."""

    group: GroupId
    tag: RecordNo
    since: RecordNo | None
    """None: everything."""
    rows: tuple[TupleBatch, ...]
    """Per stream: new rows."""
    flags: tuple[NDArray[np.uint8], ...]
    matched: tuple[I64Array, ...]
    """Per stream: places of rows that matched after `since`."""
    marks: Marks
    closed: tuple[int, ...]
    """Per stream: the clock below which rows have closed, as told by these marks."""
    floors: tuple[tuple[Floor, ...], ...]
    directory: tuple[int, ...]
    """Fine tuning; empty if the group is not split."""


class MatchJournal:
    """Rows that became matched, in the order in which they did, so that an increment can tell them."""

    def __init__(self, streams: int) -> None:
        self._entries: list[list[tuple[I64Array, NDArray[np.uint16]]]] = [[] for _ in range(streams)]
        self._dropped = [0] * streams

    def note(self, stream: int, places: I64Array, groups: NDArray[np.uint16]) -> None:
        """These stored rows have just matched for the first time."""
        self._entries[stream].append((places, groups))

    def position(self) -> tuple[int, ...]:
        """Where the journal stands now."""
        return tuple(dropped + len(entries) for dropped, entries in zip(self._dropped, self._entries, strict=True))

    def since(self, stream: int, position: int, group: GroupId) -> I64Array:
        """Places of the group's rows that matched after a position."""
        entries = self._entries[stream][max(0, position - self._dropped[stream]) :]
        found = [places[groups == group] for places, groups in entries]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def forget(self, positions: tuple[int, ...]) -> None:
        """Nobody will ask for what stands before these positions."""
        for stream, position in enumerate(positions):
            count = position - self._dropped[stream]
            if count > 0:
                del self._entries[stream][:count]
                self._dropped[stream] = position


@dataclass(frozen=True, slots=True)
class _Tag:
    """How far a group's state had been taken."""

    serials: tuple[int, ...]
    journal: tuple[int, ...]


@dataclass(slots=True)
class Checkpoints:
    """Takes the state of a join's groups by tags, and puts it back."""

    join: "WindowJoin"
    _tags: dict[GroupId, dict[RecordNo, _Tag]] = field(default_factory=dict)

    def take(self, groups: Sequence[GroupId], tag: RecordNo, since: RecordNo | None = None) -> list[Increment]:
        """The state of these groups at `tag`, as what is new after their tag `since` (None: all of it)."""
        method, streams = self.join.method, self.join.plan.streams
        wanted = np.zeros(self.join.plan.partitions, np.bool_)
        wanted[list(groups)] = True
        known = {group: self._known(group, since) for group in groups}
        journal = self.join.journal.position()
        taken = []
        for stream in range(streams):
            after = np.full(wanted.size, -1, np.int64)
            for group, tagged in known.items():
                after[group] = tagged.serials[stream]
            taken.append(
                _by_group(method.stores[stream].read(method.stores[stream].rows_of(wanted, after)), list(groups))
            )
        found = []
        for group in groups:
            rows, flags = zip(*(part[group] for part in taken), strict=True)
            matched = tuple(self._matched(stream, known[group], group, since) for stream in range(streams))
            marks, closed, directory = self.join.marks_of(group), self.join.closed_of(group), method.directory(group)
            found.append(Increment(group, tag, since, rows, flags, matched, marks, closed, self.join.floors, directory))
            tops = tuple(
                max(old, int(batch.serials.max(initial=-1)))
                for old, batch in zip(known[group].serials, rows, strict=True)
            )
            self._tags.setdefault(group, {})[tag] = _Tag(tops, journal)
        return found

    def restore(self, increments: Sequence[Increment]) -> None:
        """Put a group back from its increments, oldest first; it is held from then on."""
        group, last = increments[0].group, increments[-1]
        require(not self.join.held[group], f"group {group} is already here")
        require(increments[0].since is None, f"increments of group {group} start after tag {increments[0].since}")
        self.join.assign(group, last.marks, last.closed)
        self.join.floors = max(self.join.floors, last.floors, key=len)
        self.join.method.shape(group, last.directory)
        tops = []
        for stream in range(self.join.plan.streams):
            batch, flags = _put_together(stream, increments)
            tops.append(int(batch.serials.max(initial=-1)))
            living = self.join.method.stores[stream].clocks_of(batch) >= last.closed[stream]
            for floors in last.floors:
                living &= ~floors[stream].buries(batch)
            batch, flags = (batch, flags) if living.all() else (batch.take(living), flags[living])
            if len(batch):
                self.join.method.insert(batch, np.full(len(batch), group, np.uint16), flags)
        self._tags[group] = {last.tag: _Tag(tuple(tops), self.join.journal.position())}

    def release(self, group: GroupId) -> None:
        """The group has gone elsewhere: drop its rows."""
        self.join.release(group)
        self._tags.pop(group, None)

    def forget(self, group: GroupId, before: RecordNo) -> None:
        """No increment of the group will be asked for since a tag below `before`."""
        tags = self._tags.get(group, {})
        self._tags[group] = {tag: entry for tag, entry in tags.items() if tag >= before}
        journals = [entry.journal for entries in self._tags.values() for entry in entries.values()]
        if journals:
            self.join.journal.forget(tuple(min(stream) for stream in zip(*journals, strict=True)))

    def _known(self, group: GroupId, since: RecordNo | None) -> _Tag:
        if since is None:
            return _Tag((-1,) * self.join.plan.streams, self.join.journal.position())
        try:
            return self._tags[group][since]
        except KeyError:
            have = sorted(self._tags.get(group, {}))
            raise Bug(f"group {group}: an increment since tag {since} was asked for, known are {have}") from None

    def _matched(self, stream: int, tagged: _Tag, group: GroupId, since: RecordNo | None) -> I64Array:
        if since is None:
            return np.empty(0, np.int64)
        return self.join.journal.since(stream, tagged.journal[stream], group)


Read = tuple[TupleBatch, NDArray[np.uint16], NDArray[np.uint8]]


def _by_group(read: Read, groups: list[GroupId]) -> dict[GroupId, tuple[TupleBatch, NDArray[np.uint8]]]:
    """Rows cut by group, inside a group in the order in which they came."""
    batch, of, flags = read
    order = np.lexsort((batch.serials, of))
    batch, of, flags = batch.take(order), of[order], flags[order]
    cuts = {group: np.searchsorted(of, [group, group + 1]) for group in groups}
    return {group: (batch.take(np.arange(*cut)), flags[slice(*cut)]) for group, cut in cuts.items()}


def _put_together(stream: int, increments: Sequence[Increment]) -> tuple[TupleBatch, NDArray[np.uint8]]:
    batch = concat([increment.rows[stream] for increment in increments])
    flags = np.concatenate([increment.flags[stream] for increment in increments])
    matched = np.concatenate([increment.matched[stream] for increment in increments])
    flags[np.isin(batch.places, matched)] |= MATCHED
    return batch, flags


def concat(batches: Sequence[TupleBatch]) -> TupleBatch:
    """One batch of the rows of several of the same stream."""
    first = batches[0]
    if len(batches) == 1:
        return first
    keyed = None
    if any(batch.keyed is not None for batch in batches):
        keyed = np.concatenate([np.ones(len(b), np.bool_) if b.keyed is None else b.keyed for b in batches])
    orders = [batch.order for batch in batches if batch.order is not None]
    order = (
        Order(np.concatenate([o.ranks for o in orders]), np.concatenate([o.counts for o in orders])) if orders else None
    )
    table = pa.Table.from_batches([batch.rows for batch in batches]).combine_chunks()
    rows = table.to_batches()[0] if table.num_rows else first.rows
    return replace(
        first,
        times=np.concatenate([batch.times for batch in batches]),
        hashes=np.concatenate([batch.hashes for batch in batches]),
        words=np.concatenate([batch.words for batch in batches]),
        keyed=keyed,
        places=np.concatenate([batch.places for batch in batches]),
        rows=rows,
        order=order,
    )
