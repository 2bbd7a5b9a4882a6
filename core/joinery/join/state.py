"""The state of a group, taken as an increment since a tag, and put back (docs/design.md §3, checkpoints).

An increment holds the rows that came since the tag, the places of rows that matched since then, the marks that the
group has reached, and its fine-tuning directory. Its cost follows the input, not the window: blocks without a newer
row are passed over. Put together in the order of their tags, increments give the group as it was at the last one.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from joinery.model.errors import Bug, require
from joinery.model.ids import GroupId, RecordNo
from joinery.model.quantities import CountWindow, Window
from joinery.model.tuples import I64Array, TupleBatch, concat
from joinery.window.sliding import Floor, Marks
from joinery.window.store import MATCHED, PLACE

if TYPE_CHECKING:
    from joinery.join.logic import WindowJoin


_TEXT_LIMIT: Final = 1 << 30
"""Bytes of a text column that are read at once."""
_PIECE_ROWS: Final = 1 << 14
"""Rows that are put back at once: a few milliseconds of work."""

Matched = tuple[I64Array, NDArray[np.uint16]]
"""Places of rows, and their groups."""


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


@dataclass(frozen=True, slots=True)
class Age:
    """How old the rows of an increment are: per stream the greatest time and the greatest count; None: no row."""

    tag: RecordNo
    is_whole: bool
    """Whether it needs no increment before it."""
    tops: tuple[tuple[int, int] | None, ...]
    closed: tuple[int, ...]

    @staticmethod
    def of(increment: Increment) -> "Age":
        """The age of an increment's rows."""
        tops = tuple(
            (int(batch.times.max()), int(batch.order.counts[:, batch.stream].max()) if batch.order else 0)
            if len(batch)
            else None
            for batch in increment.rows
        )
        return Age(increment.tag, increment.since is None, tops, increment.closed)

    def is_past(self, closed: tuple[int, ...], windows: Sequence[Window]) -> bool:
        """Whether every row has closed by these clocks (of a later increment, under the windows in force there)."""
        return all(
            top is None or top[isinstance(window, CountWindow)] < clock
            for top, clock, window in zip(self.tops, closed, windows, strict=True)
        )


def dead_before(ages: Sequence[Age], tag: RecordNo, windows: Sequence[Window]) -> RecordNo | None:
    """The newest tag up to which no increment is needed at `tag` or later; None: even the first one is.

    It is not needed if all its rows have closed by then, or if a whole state follows it. `ages` are in the order of
    their tags; the increment of `tag` itself always stays: it holds the marks.
    """
    last = next(age for age in ages if age.tag == tag)
    whole = max((age.tag for age in ages if age.is_whole and age.tag <= tag), default=-1)
    dead = None
    for age in ages:
        if age.tag >= tag or not (age.tag < whole or age.is_past(last.closed, windows)):
            break
        dead = age.tag
    return dead


class MatchJournal:
    """Rows that became matched, in the order in which they did, so that an increment can tell them.

    It is written only while a tag is known: who never takes an increment pays nothing.
    """

    def __init__(self, streams: int) -> None:
        self._entries: list[list[Matched]] = [[] for _ in range(streams)]
        self._dropped = [0] * streams
        self._is_kept = False

    def note(self, stream: int, places: I64Array, groups: NDArray[np.uint16]) -> None:
        """These stored rows have just matched for the first time."""
        if self._is_kept:
            self._entries[stream].append((places, groups))

    def position(self) -> tuple[int, ...]:
        """Where the journal stands now."""
        return tuple(dropped + len(entries) for dropped, entries in zip(self._dropped, self._entries, strict=True))

    def since(self, stream: int, position: int) -> Matched:
        """Places and groups of the rows that matched after a position, by group."""
        entries = self._entries[stream][max(0, position - self._dropped[stream]) :]
        if not entries:
            return np.empty(0, np.int64), np.empty(0, np.uint16)
        places, groups = (np.concatenate(column) for column in zip(*entries, strict=True))
        order = np.argsort(groups, kind="stable")
        return places[order], groups[order]

    def keep_from(self, positions: list[tuple[int, ...]]) -> None:
        """Somebody may still ask for what stands after these positions; none: nobody will ask."""
        self._is_kept = bool(positions)
        first = tuple(min(stream) for stream in zip(*positions, strict=True)) if positions else self.position()
        for stream, position in enumerate(first):
            del self._entries[stream][: max(0, position - self._dropped[stream])]
            self._dropped[stream] = max(position, self._dropped[stream])


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
        require(bool(self.join.held[wanted].all()), f"of the groups {list(groups)} not all are here")
        known = {group: self._known(group, since) for group in groups}
        journal = self.join.journal.position()
        taken = [self._rows_since(stream, wanted, known) for stream in range(streams)]
        journals = [self._matched_since(stream, known) for stream in range(streams)]
        found = []
        for group in groups:
            rows, flags = zip(*(part[group] for part in taken), strict=True)
            matched = tuple(part[group] if since is not None else np.empty(0, np.int64) for part in journals)
            marks, closed, directory = self.join.marks_of(group), self.join.closed_of(group), method.directory(group)
            found.append(Increment(group, tag, since, rows, flags, matched, marks, closed, self.join.floors, directory))
            tops = (int(batch.serials.max(initial=-1)) for batch in rows)
            serials = tuple(max(pair) for pair in zip(known[group].serials, tops, strict=True))
            self._tags.setdefault(group, {})[tag] = _Tag(serials, journal)
        self._trim_journal()
        return found

    def _rows_since(
        self, stream: int, wanted: NDArray[np.bool_], known: dict[GroupId, _Tag]
    ) -> dict[GroupId, tuple[TupleBatch, NDArray[np.uint8]]]:
        """The new rows of each group with their flags, inside a group in the order in which they came."""
        store, after = self.join.method.stores[stream], np.full(wanted.size, -1, np.int64)
        for group, tagged in known.items():
            after[group] = tagged.serials[stream]
        rows = store.rows_of(wanted, after)
        if len(known) > 1 and store.heap_bytes(rows) >= _TEXT_LIMIT:  # more than fits one Arrow column
            return self._rows_in_halves(stream, known)
        batch, of, flags = store.read(rows)
        order = np.lexsort((batch.serials, of))
        batch, of, flags = batch.take(order), of[order], flags[order]
        cuts = {group: slice(*np.searchsorted(of, [group, group + 1]).tolist()) for group in known}
        return {group: (batch.slice(cut.start, cut.stop), flags[cut]) for group, cut in cuts.items()}

    def _rows_in_halves(
        self, stream: int, known: dict[GroupId, _Tag]
    ) -> dict[GroupId, tuple[TupleBatch, NDArray[np.uint8]]]:
        groups, found = list(known), {}
        for half in (groups[: len(groups) // 2], groups[len(groups) // 2 :]):
            wanted = np.zeros(self.join.plan.partitions, np.bool_)
            wanted[half] = True
            found.update(self._rows_since(stream, wanted, {group: known[group] for group in half}))
        return found

    def _matched_since(self, stream: int, known: dict[GroupId, _Tag]) -> dict[GroupId, I64Array]:
        """The places of each group's rows that matched since its tag; most groups share one, so it is read once."""
        read = {at: self.join.journal.since(stream, at) for at in {tagged.journal[stream] for tagged in known.values()}}
        found = {}
        for group, tagged in known.items():
            places, of = read[tagged.journal[stream]]
            found[group] = places[slice(*np.searchsorted(of, [group, group + 1]).tolist())]
        return found

    def restore(self, increments: Sequence[Increment], base: RecordNo | None = None) -> None:
        """Put a group back from its increments, oldest first; it is held from then on.

        `base`: the tag up to which older increments were dropped because nothing in them was alive (`dead_before`).
        """
        deque(self.restoring(increments, base), maxlen=0)

    def restoring(self, increments: Sequence[Increment], base: RecordNo | None = None) -> Iterator[None]:
        """`restore`, piece by piece: batches of other groups may be joined in between."""
        self._check_chain(increments, base)
        group, last = increments[0].group, increments[-1]
        self.join.assign(group, last.marks, last.closed)
        self.join.floors = max(self.join.floors, last.floors, key=len)
        self.join.method.shape(group, last.directory)
        tops, done = [-1] * self.join.plan.streams, 0
        for stream in range(self.join.plan.streams):
            for top, rows in self._insert(stream, increments):
                tops[stream], done = max(tops[stream], top), done + rows
                if done >= _PIECE_ROWS:
                    yield
                    done = 0
        self._tags[group] = {last.tag: _Tag(tuple(tops), self.join.journal.position())}
        self._trim_journal()

    def extend(self, increments: Sequence[Increment]) -> None:
        """Bring a group that is here at a tag to a newer one; its floors and its directory are still the same."""
        group, first, last = increments[0].group, increments[0], increments[-1]
        sinces, tags = [one.since for one in increments], [one.tag for one in increments]
        require(bool(self.join.held[group]) and first.since is not None, f"group {group} is not here to go on with")
        require(sinces[1:] == tags[:-1], f"increments of group {group} with tags {tags} were taken since {sinces}")
        known = self._known(group, first.since)
        self.join.assign(group, last.marks, last.closed)
        wanted = np.zeros(self.join.plan.partitions, np.bool_)
        wanted[group] = True
        tops = []
        for stream, store in enumerate(self.join.method.stores):
            matched = np.concatenate([one.matched[stream] for one in increments])
            if matched.size:
                rows = store.rows_of(wanted, np.full(wanted.size, -1))
                store.mark_matched(rows[np.isin(store.lane(rows, PLACE), matched)])
            store.kill(store.rows_before(last.closed[stream], wanted))
            tops.append(max([known.serials[stream], *(top for top, _ in self._insert(stream, increments))]))
        self._tags[group] = {last.tag: _Tag(tuple(tops), self.join.journal.position())}
        self._trim_journal()

    def _insert(self, stream: int, increments: Sequence[Increment]) -> Iterator[tuple[int, int]]:
        """Put the rows in that live at the last tag, in pieces; of each the greatest serial number and the rows."""
        last = increments[-1]
        for batch, flags in _pieces(stream, increments):
            living = self.join.method.stores[stream].clocks_of(batch) >= last.closed[stream]
            for floors in last.floors:
                living &= ~floors[stream].buries(batch)
            kept, kept_flags = (batch, flags) if living.all() else (batch.take(living), flags[living])
            if len(kept):
                self.join.method.insert(kept, np.full(len(kept), last.group, np.uint16), kept_flags)
            yield int(batch.serials.max(initial=-1)), len(batch)

    def _check_chain(self, increments: Sequence[Increment], base: RecordNo | None) -> None:
        """Refuse what would lose rows in silence: a gap, another group's increment, a group from before a change."""
        require(len(increments) > 0, "no increment to restore a group from")
        group, join = increments[0].group, self.join
        sinces, tags = [one.since for one in increments], [one.tag for one in increments]
        require(sinces == [base, *tags[:-1]], f"increments of group {group} with tags {tags} were taken since {sinces}")
        require({one.group for one in increments} == {group}, f"increments of other groups beside group {group}")
        require(not join.held[group], f"group {group} is already here")
        newer = len(join.floors) - len(increments[-1].floors)
        fresh = not join.held.any() and not join.floors
        require(
            newer == 0 or fresh,
            f"group {group} is {newer} changes of windows behind: let it catch up in a join of its own",
        )

    def release(self, group: GroupId) -> None:
        """The group has gone elsewhere: drop its rows."""
        self.join.release(group)
        self._tags.pop(group, None)
        self._trim_journal()

    def forget(self, group: GroupId, before: RecordNo) -> None:
        """No increment of the group will be asked for since a tag below `before`."""
        tags = self._tags.get(group, {})
        self._tags[group] = {tag: entry for tag, entry in tags.items() if tag >= before}
        self._trim_journal()

    def _trim_journal(self) -> None:
        self.join.journal.keep_from([entry.journal for tags in self._tags.values() for entry in tags.values()])

    def _known(self, group: GroupId, since: RecordNo | None) -> _Tag:
        if since is None:
            return _Tag((-1,) * self.join.plan.streams, self.join.journal.position())
        try:
            return self._tags[group][since]
        except KeyError:
            have = sorted(self._tags.get(group, {}))
            raise Bug(f"group {group}: an increment since tag {since} was asked for, known are {have}") from None


def _pieces(stream: int, increments: Sequence[Increment]) -> Iterator[tuple[TupleBatch, NDArray[np.uint8]]]:
    """The rows of a stream with their flags at the last tag, oldest first, in pieces of about `_PIECE_ROWS`."""
    matched = np.unique(np.concatenate([increment.matched[stream] for increment in increments]))
    waiting: list[tuple[TupleBatch, NDArray[np.uint8]]] = []
    for increment in increments:
        batch, flags = increment.rows[stream], increment.flags[stream]
        for first in range(0, len(batch), _PIECE_ROWS):
            waiting.append((batch.slice(first, first + _PIECE_ROWS), flags[first : first + _PIECE_ROWS]))
            if sum(len(part) for part, _ in waiting) >= _PIECE_ROWS:
                yield _together(waiting, matched)
                waiting = []
    if waiting:
        yield _together(waiting, matched)


def _together(
    parts: list[tuple[TupleBatch, NDArray[np.uint8]]], matched: I64Array
) -> tuple[TupleBatch, NDArray[np.uint8]]:
    batch, flags = concat([part for part, _ in parts]), np.concatenate([flags for _, flags in parts])
    if matched.size:
        at = np.minimum(np.searchsorted(matched, batch.places), matched.size - 1)
        flags[matched[at] == batch.places] |= MATCHED
    return batch, flags
