"""Values that the contract suites put into stores, and what of them must come back: contents, never identity."""

import numpy as np
import pyarrow as pa

from joinery.join.results import Kind, ResultPart
from joinery.join.state import Increment
from joinery.machine.log import Head, LoggedBatch, ProducerForgotten, ProducerJoined, Record, Session
from joinery.machine.ports import Commit, Receipt
from joinery.machine.totals import Totals
from joinery.model.ids import GroupId, MapVersion, ProducerId, RecordNo, Term, WorkerId
from joinery.model.tuples import TupleBatch
from joinery.partition.map import PartitionMap, StoredMap
from joinery.window.sliding import Marks
from joinery.window.watermark import StreamClock

PRODUCER = ProducerId("p")


def head(next_record: int, stamp: int = 0) -> Head:
    """A head that says where it stands in more than one field."""
    clock = StreamClock(5, watermark=next_record, greatest={PRODUCER: next_record}, live=frozenset({PRODUCER}))
    sessions = {(0, PRODUCER): Session(1, next_record, next_record - 1, 77)}
    return Head(RecordNo(next_record), (clock, StreamClock(0)), (next_record, 0), (9, 9), stamp, sessions)


def rows(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"k": pa.array(values, pa.int64())})


def record(term: int, *values: int) -> Record:
    late = np.array([value % 2 == 0 for value in values])
    batch = LoggedBatch(0, PRODUCER, 1, 4, 5, 77, 10, 20, late, rows(*values))
    entries = (ProducerJoined(0, PRODUCER, 1), ProducerForgotten(0, ProducerId("unnamed-1")))
    return Record(Term(term), (batch,), (3, 4), entries)


def record_seen(kept: Record) -> object:
    """All that a record says, as plain values."""
    batches = [
        (one.stream, one.producer, one.session, one.sequence, one.next_sequence, one.checksum, one.first_place,
         one.stamp_ns, None if one.late is None else one.late.tolist(), one.rows.to_pydict())
        for one in kept.batches
    ]  # fmt: skip
    return kept.term, batches, kept.watermarks, kept.entries


def stored_map(version: int, *owners: str) -> StoredMap:
    workers = [WorkerId(name) for name in sorted(set(owners))]
    places = np.array([workers.index(WorkerId(name)) for name in owners], np.int32)
    terms = np.full(len(owners), version, np.int64)
    return PartitionMap(MapVersion(version), tuple(workers), places, terms).to_dict()


def increment(group: int, since: int, tag: int, *values: int) -> Increment:
    """The increment (since, tag] of a group; since -1: the whole state."""
    own = rows(*values)
    keys = np.array(values, np.int64)
    batch = TupleBatch(0, keys + 100, keys.astype(np.uint64), keys, None, keys, own)
    return Increment(
        GroupId(group), RecordNo(tag), None if since < 0 else RecordNo(since), (batch,),
        (np.full(len(values), 1, np.uint8),), (keys[:1],), Marks((tag, tag)), (tag - 5,), (), (0, 1),
    )  # fmt: skip


def increment_seen(kept: Increment) -> object:
    """All that an increment says, as plain values."""
    [batch], [flags], [matched] = kept.rows, kept.flags, kept.matched
    columns = (batch.times.tolist(), batch.hashes.tolist(), batch.words.tolist(), batch.places.tolist())
    state = (kept.marks, kept.closed, kept.floors, kept.directory)
    return kept.group, kept.since, kept.tag, columns, batch.rows.to_pydict(), flags.tolist(), matched.tolist(), state


def commit(number: int, *committed: int, valid: int = 0) -> Commit:
    receipts = (Receipt("one", valid), Receipt("two", valid + 1))
    return Commit(number, np.array(committed, np.int64), receipts, totals=Totals(10 * number, (0, number)))


def commit_seen(kept: Commit | None) -> object:
    """All that a commit says, as plain values."""
    if kept is None:
        return None
    seen = None if kept.seen is None else kept.seen.tolist()
    return kept.number, kept.committed.tolist(), kept.receipts, seen, kept.before_ns, kept.totals


def result(*values: int, kind: Kind = Kind.RESULT) -> ResultPart:
    places = np.array(values, np.int64)
    return ResultPart(
        kind, rows(*values), np.zeros(len(values), np.uint16), places + 100, 0,
        np.arange(len(values), dtype=np.int32), (places, None),
    )  # fmt: skip
