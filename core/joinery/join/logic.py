"""Station 6 of 8, join: what happens to a batch (a, b] of a set of groups (docs/design.md §2 and §3).

Rule 1: stream by stream, new rows meet what is kept of the other streams, then are kept themselves. So each
combination appears once, with the member whose batch came last, and where batches are cut does not matter.
Rule 2: a candidate becomes a result if the real keys are equal, count windows hold, and `where` is true; then its
members have matched; then `filter` is tried on what will be shown.
Rule 3: after the rows, the watermarks of b: rows without a partner close (and are told if the join type wants it),
then what is past expires. Nothing here looks at a clock.

`on_batch` is a generator of bounded parts; it must be exhausted before the next call.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joinery.join.first_matches import FirstMatches
from joinery.join.hash import HashMethod
from joinery.join.kernels.chains import BLOCK
from joinery.join.nested_loop import NestedLoopMethod
from joinery.join.plan import JoinPlan, JoinType
from joinery.join.protocol import Method, Probes
from joinery.join.results import Combination, Kind, ResultPart
from joinery.join.state import MatchJournal
from joinery.model.errors import require
from joinery.model.ids import GroupId
from joinery.model.quantities import CountWindow, Window
from joinery.model.time import DEAD
from joinery.model.tuples import I64Array, TupleBatch
from joinery.partition.hashing import groups_of
from joinery.partition.keys import equal_keys
from joinery.window import sliding
from joinery.window.layout import RowLayout
from joinery.window.sliding import Floor, Marks
from joinery.window.store import KEYLESS, MATCHED, RowStore

_CLOSED_ROWS: Final = 1 << 15
"""Rows of a part that tells what closed."""


class WindowJoin:
    """The windows of all groups that a worker holds, and the join over them."""

    def __init__(self, plan: JoinPlan, groups: Iterable[GroupId] | None = None) -> None:
        self.plan = plan
        self.windows = plan.windows
        self.method = _method(plan)
        self.journal = MatchJournal(plan.streams)
        self._held = np.zeros(plan.partitions, np.bool_)
        self._held[list(range(plan.partitions) if groups is None else groups)] = True
        self._watermarks = np.full((plan.streams, plan.partitions), DEAD, np.int64)
        self._counts = np.zeros((plan.streams, plan.partitions), np.int64)
        self._closed = np.full((plan.streams, plan.partitions), DEAD, np.int64)
        self.floors: tuple[tuple[Floor, ...], ...] = ()
        """Of every change of the windows, one per stream; whoever takes a group over must know them."""

    @property
    def held(self) -> NDArray[np.bool_]:
        """Which groups are here."""
        return self._held

    def marks_of(self, group: GroupId) -> Marks:
        """Watermarks and counts that a group has reached."""
        counts = tuple(self._counts[:, group].tolist()) if self.plan.runs_in_order else ()
        return Marks(tuple(self._watermarks[:, group].tolist()), counts)

    def closed_of(self, group: GroupId) -> tuple[int, ...]:
        """Per stream: the clock below which the group's rows have closed under the windows in force."""
        return tuple(self._closed[:, group].tolist())

    def bytes_held(self) -> int:
        """Memory of windows and index."""
        return self.method.bytes_held()

    def census(self) -> tuple[I64Array, int]:
        """How many living rows each group has, and the time of the oldest that may still match; FOREVER: none."""
        found = np.zeros(self.plan.partitions, np.int64)
        stores = zip(self.method.stores, self._closed, strict=True)
        oldest = min(store.count_groups(found, closed) for store, closed in stores)
        return np.where(self._held, found, 0), oldest

    # --- groups come and go

    def assign(self, group: GroupId, marks: Marks, closed: tuple[int, ...]) -> None:
        """The group is here from now on, at these marks; its rows have closed up to these clocks."""
        self._held[group] = True
        self._closed[:, group] = closed
        self._watermarks[:, group] = marks.watermarks
        self._counts[:, group] = marks.counts or 0

    def assign_empty(self, group: GroupId) -> None:
        """The group is here from now on, as it was before the first record."""
        counts = (0,) * self.plan.streams if self.plan.runs_in_order else ()
        nothing = (DEAD,) * self.plan.streams
        self.assign(group, Marks(nothing, counts), nothing)

    def release(self, group: GroupId) -> None:
        """The group is no longer here; its rows are dead."""
        wanted = np.zeros_like(self._held)
        wanted[group] = True
        for store in self.method.stores:
            store.kill_groups(wanted)
        self.method.drop(group)
        self._held[group] = False

    # --- a batch

    def on_batch(
        self, batches: Sequence[TupleBatch], marks: Marks, groups: NDArray[np.bool_] | None = None
    ) -> Iterator[ResultPart]:
        """The results of a batch of these groups (default: all that are held), whose records end with these marks."""
        wanted = self._held if groups is None else groups
        self._check(batches, marks)
        for batch in batches:
            yield from self._on_rows(batch)
        self._watermarks[:, wanted] = np.array(marks.watermarks)[:, None]
        if marks.counts:
            self._counts[:, wanted] = np.array(marks.counts)[:, None]
        for stream, window in enumerate(self.windows):
            self._closed[stream, wanted] = sliding.past_before(stream, window, marks)
        yield from self._close(marks, wanted)
        self._expire()

    def _check(self, batches: Sequence[TupleBatch], marks: Marks) -> None:
        """Stop before anything changes if what was handed over does not fit the query."""
        streams, in_order = self.plan.streams, self.plan.runs_in_order
        require(len(marks.watermarks) == streams, f"{len(marks.watermarks)} watermarks for {streams} streams")
        require(
            len(marks.counts) == (streams if in_order else 0), f"{len(marks.counts)} counts; a count window needs all"
        )
        ordered = all((batch.order is not None) == in_order for batch in batches)
        require(ordered, "a query with a count window, and only it, gets its rows through flow.release")

    def _on_rows(self, batch: TupleBatch) -> Iterator[ResultPart]:
        if batch.late is not None and batch.late.any():
            yield self._late(batch.take(batch.late))
            batch = batch.take(~batch.late)
        if len(batch) == 0:
            return
        groups = groups_of(batch.hashes, self.plan.partitions)
        matched = np.zeros(len(batch), np.bool_)
        yield from self._meet(batch, groups, matched)
        self._keep(batch, groups, matched)

    def _late(self, batch: TupleBatch) -> ResultPart:
        groups = groups_of(batch.hashes, self.plan.partitions)
        places = tuple(batch.places if stream == batch.stream else None for stream in range(self.plan.streams))
        return ResultPart(Kind.LATE, batch.rows, groups, batch.times, batch.stream, None, places)

    def _keep(self, batch: TupleBatch, groups: NDArray[np.uint16], matched: NDArray[np.bool_]) -> None:
        """Store what may still be asked for: a row without a key only if it is told when it closes unmatched."""
        flags = np.where(matched, MATCHED, 0).astype(np.uint8)
        needed = np.ones(len(batch), np.bool_)
        if batch.keyed is not None:
            flags[~batch.keyed] |= KEYLESS
            if batch.stream not in self.plan.type.kept_unmatched:
                needed = batch.keyed
        if batch.stream == 0 and not self.plan.type.tells_pairs:
            needed = needed & ~matched  # a semi or anti join has heard enough of it
        if not needed.all():
            batch, groups, flags = batch.take(needed), groups[needed], flags[needed]
        if len(batch):
            self.method.insert(batch, groups, flags)

    # --- partners

    def _meet(self, batch: TupleBatch, groups: NDArray[np.uint16], matched: NDArray[np.bool_]) -> Iterator[ResultPart]:
        stream = batch.stream
        by = np.flatnonzero(np.ones(len(batch)) if batch.keyed is None else batch.keyed).astype(np.int32)
        start = Combination(self.method.stores, {}, batch, by, groups)
        times = batch.times if start.is_whole_batch else batch.times[by]
        others = [other for other in range(self.plan.streams) if other != stream]
        reach = (times, sliding.deadline(times, self.windows[stream]))
        key = self.plan.formats[stream].key
        keys = [] if key.is_word else key.canonical(batch.rows)
        first = FirstMatches(self.method.stores) if self.plan.type is JoinType.SEMI else None
        for found in self._expand(start, groups, reach, others):
            for piece in found.pieces():
                part = self._proven(piece, keys).holding(self.plan.where, self.plan)
                if first is not None:
                    first.add(part)
                else:
                    yield from self._tell(part, matched)
        for part in first.parts() if first is not None else ():
            yield from self._show(self._note_matches(part, matched))

    def _expand(
        self, part: Combination, groups: NDArray[np.uint16], reach: tuple[I64Array, I64Array], streams: list[int]
    ) -> Iterator[Combination]:
        """Grow combinations by one stream after the other; `reach` is latest time and deadline of each."""
        batch, by = part.origin()
        (latest, deadline), stream, window = reach, streams[0], self.windows[streams[0]]
        words, hashes, own = batch.words, batch.hashes, groups
        if not part.is_whole_batch:
            words, hashes, own = words[by], hashes[by], own[by]
        probes = Probes(words, hashes, own, sliding.earliest(latest, window), deadline)
        for found in self.method.candidates(stream, probes):
            grown = part.with_member(stream, found)
            if len(streams) == 1:
                yield grown
                continue
            ends = sliding.deadline(found.time, window)
            further = (np.maximum(latest[found.probe], found.time), np.minimum(deadline[found.probe], ends))
            yield from self._expand(grown, groups, further, streams[1:])

    def _proven(self, part: Combination, keys: list[pa.Array]) -> Combination:
        """Those whose real keys are equal, not only their hashes, and whose members are in their count windows.

        `keys` are the batch's canonical key columns; none if the word is the key.
        """
        for stream in list(part.rows) if keys else ():
            mine = [column.take(pa.array(part.origin()[1])) for column in keys]
            columns = {name: part.column(stream, number) for name, number in self._key_columns(stream)}
            theirs = self.plan.formats[stream].key.canonical(pa.RecordBatch.from_pydict(columns))
            part = part.keep_if(equal_keys(mine, theirs))
        batch, by = part.origin()
        if batch.order is not None and self.plan.runs_in_order:
            members = [(stream, self.method.stores[stream].order_of(rows)) for stream, rows in part.rows.items()]
            part = part.keep_if(
                sliding.in_count_windows(self.windows, [*members, (batch.stream, batch.order.take(by))])
            )
        return part

    def _key_columns(self, stream: int) -> list[tuple[str, int]]:
        form = self.plan.formats[stream]
        return [(name, form.schema.get_field_index(name)) for name in form.key.columns]

    # --- results

    def _tell(self, part: Combination, matched: NDArray[np.bool_]) -> Iterator[ResultPart]:
        """Note who has matched, then show what the join type shows."""
        if len(part) == 0:
            return
        kind = self.plan.type
        if kind is not JoinType.INNER:
            part = self._note_matches(part, matched)
        if kind is not JoinType.ANTI:
            yield from self._show(part)

    def _note_matches(self, part: Combination, matched: NDArray[np.bool_]) -> Combination:
        """Set matched bits on both sides."""
        _, by = part.origin()
        matched[by] = True
        for stream, rows in part.rows.items():
            store = self.method.stores[stream]
            fresh = store.mark_matched(rows)
            if fresh.size:
                self.journal.note(stream, store.lane(rows[fresh], 2), store.groups[rows[fresh]])
        return part

    def _show(self, part: Combination) -> Iterator[ResultPart]:
        """What is left after `filter`, with the columns of the output."""
        shown = part.holding(self.plan.filter, self.plan)
        if len(shown) == 0:
            return
        columns = [shown.column(column.stream, column.number) for column in self.plan.output]
        rows = pa.RecordBatch.from_arrays(columns, schema=self.plan.schema)
        stream = shown.batch.stream if shown.batch is not None else next(iter(shown.rows))
        when = shown.times() if shown.batch is not None else sliding.closing(shown.times(), self.windows[stream])
        yield ResultPart(Kind.RESULT, rows, shown.groups(), when, stream, shown.by, shown.places())

    # --- watermarks

    def _close(self, marks: Marks, wanted: NDArray[np.bool_]) -> Iterator[ResultPart]:
        for stream in self.plan.type.kept_unmatched:
            store = self.method.stores[stream]
            before = sliding.past_before(stream, self.windows[stream], marks)
            rows = store.rows_before(before, wanted, MATCHED)
            for first in range(0, rows.size, _CLOSED_ROWS):
                for piece in Combination(self.method.stores, {stream: rows[first : first + _CLOSED_ROWS]}).pieces():
                    yield from self._show(piece)
            store.kill(rows)

    def change_windows(self, windows: tuple[Window, ...], floors: tuple[int, ...], upto: tuple[int, ...]) -> None:
        """New windows from the next record on; rows up to now with a clock below their stream's floor match no more.

        `upto` is each stream's last serial number now (position; rank in order), known where the change was recorded.
        The floor is up to where the old windows had closed (docs/design.md §3): a window that grows wakes no dead.
        """
        left = []
        for stream, (floor, window) in enumerate(zip(floors, windows, strict=True)):
            store = self.method.stores[stream]
            left.append(Floor(upto[stream], floor, store.clock_lane))
            store.kill(store.rows_before(floor, np.ones_like(self._held)))
            store.use_clock(_clock_lane(stream, window))
        self.windows, self.floors = windows, (*self.floors, tuple(left))
        # by the new windows nothing has closed yet; what the old ones closed lies below the floors
        self._closed[:] = DEAD

    def _expire(self) -> None:
        """Free what is past for every group that is here: one that lags behind still needs its rows."""
        held = self._held
        if not held.any():
            return
        counts = tuple(self._counts[:, held].min(axis=1).tolist()) if self.plan.runs_in_order else ()
        slowest = Marks(tuple(self._watermarks[:, held].min(axis=1).tolist()), counts)
        for stream, window in enumerate(self.windows):
            self.method.expire(stream, sliding.past_before(stream, window, slowest))


def _clock_lane(stream: int, window: Window) -> int | None:
    """A row in a count window is as old as the rows after it are many: its clock is its own count (rank is lane 0)."""
    return 1 + stream if isinstance(window, CountWindow) else None


def _method(plan: JoinPlan) -> Method:
    lanes = 1 + plan.streams if plan.runs_in_order else 0
    stores = []
    for stream, form in enumerate(plan.formats):
        layout = RowLayout.of(form)
        rows = BLOCK if plan.method == "hash" else NestedLoopMethod.block_rows(layout, plan.block_bytes)
        clock = _clock_lane(stream, plan.windows[stream])
        stores.append(RowStore(layout, rows, order_lanes=lanes, clock_lane=clock))
    return HashMethod(stores) if plan.method == "hash" else NestedLoopMethod(stores, plan)
