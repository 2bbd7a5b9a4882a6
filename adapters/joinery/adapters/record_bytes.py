"""Records of the log, and its head, as bytes for a store (`framed`).

    story    JSON: whatever is said once per record, batch or entry
    blobs    of each batch in turn: its late flags if there are some, eight rows to a byte, and its rows as an
             Arrow IPC message; before them each stream's schema, once per record

A head is its story alone.
"""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from joinery.adapters.framed import Reader, Writer, item_size
from joinery.machine.log import (
    Entry,
    Head,
    LoggedBatch,
    ProducerEnded,
    ProducerForgotten,
    ProducerIdle,
    ProducerJoined,
    Record,
    Session,
    SpecChange,
    StreamEnded,
    TableVersion,
)
from joinery.model.errors import Bug, UserMustAct
from joinery.model.ids import ProducerId, RecordNo, Term
from joinery.model.quantities import CountWindow, Nanoseconds, TimeWindow, Window
from joinery.window.watermark import StreamClock

FORMAT: Final = 1
"""Raised with every change of the layout; each version reads its own only."""
_RECORD: Final = b"JOINERYR"
_HEAD: Final = b"JOINERYH"


class BadRecord(UserMustAct):
    """A stored record or head that cannot be read: written by another version, or damaged."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"log: found {found}, wanted format {FORMAT} as it was written; "
            "run the version of Joinery that wrote it, or restore the store"
        )


# --- records


def encode_record(record: Record) -> memoryview:
    """The record as bytes."""
    schemas = {batch.stream: batch.rows.schema for batch in record.batches}
    story = {
        "term": int(record.term),
        "watermarks": [int(mark) for mark in record.watermarks],
        "entries": [_entry_story(entry) for entry in record.entries],
        "schemas": sorted(schemas),
        "batches": [_batch_story(batch) for batch in record.batches],
    }
    texts = [json.dumps(story).encode(), *(schemas[stream].serialize().to_pybytes() for stream in sorted(schemas))]
    late = [None if batch.late is None else np.packbits(np.asarray(batch.late, np.bool_)) for batch in record.batches]
    sizes = [pa.ipc.get_record_batch_size(batch.rows) for batch in record.batches]
    items = sum(item_size(len(text)) for text in texts) + sum(item_size(size) for size in sizes)
    writer = Writer(_RECORD, FORMAT, items + sum(item_size(flags.nbytes) for flags in late if flags is not None))
    for text in texts:
        writer.put(text)
    for batch, flags, size in zip(record.batches, late, sizes, strict=True):
        if flags is not None:
            writer.put(flags)
        writer.put_with(size, partial(_write_rows, batch.rows))
    return writer.sealed()


def _write_rows(rows: pa.RecordBatch, file: pa.NativeFile) -> None:
    file.write(rows.serialize())


def decode_record(pieces: Sequence[bytes | memoryview]) -> Record:
    """The record of these bytes, in whatever pieces they come."""
    reader = Reader(pieces, _RECORD, FORMAT, BadRecord)
    story = json.loads(bytes(reader.next()))
    schemas = {stream: pa.ipc.read_schema(pa.py_buffer(reader.next())) for stream in story["schemas"]}
    batches = [_batch(one, reader, schemas[one["stream"]]) for one in story["batches"]]
    entries = [_entry(kind, fields) for kind, fields in story["entries"]]
    return Record(Term(story["term"]), tuple(batches), tuple(story["watermarks"]), tuple(entries))


def _batch_story(batch: LoggedBatch) -> dict[str, Any]:
    return {
        "stream": batch.stream,
        "producer": batch.producer,
        "session": batch.session,
        "sequence": batch.sequence,
        "next": batch.next_sequence,
        "checksum": batch.checksum,
        "place": batch.first_place,
        "stamp": batch.stamp_ns,
        "late": batch.late is not None,
    }


def _batch(story: dict[str, Any], reader: Reader, schema: pa.Schema) -> LoggedBatch:
    late = np.unpackbits(reader.column("u1")).view(np.bool_) if story["late"] else None
    rows = pa.ipc.read_record_batch(pa.py_buffer(reader.next()), schema)
    return LoggedBatch(
        stream=story["stream"],
        producer=ProducerId(story["producer"]),
        session=story["session"],
        sequence=story["sequence"],
        next_sequence=story["next"],
        checksum=story["checksum"],
        first_place=story["place"],
        stamp_ns=story["stamp"],
        late=None if late is None else late[: rows.num_rows],
        rows=rows,
    )


# --- entries


def _entry_story(entry: Entry) -> tuple[str, dict[str, Any]]:
    match entry:
        case ProducerJoined():
            return "joined", {"stream": entry.stream, "producer": entry.producer, "session": entry.session}
        case ProducerIdle():
            return "idle", {"stream": entry.stream, "producer": entry.producer}
        case ProducerEnded():
            return "ended", {"stream": entry.stream, "producer": entry.producer}
        case ProducerForgotten():
            return "forgotten", {"stream": entry.stream, "producer": entry.producer}
        case StreamEnded():
            return "over", {"stream": entry.stream}
        case SpecChange():
            return "change", change_story(entry)
        case TableVersion():
            return "table", {"record": entry.record, "version": entry.version}


def _entry(kind: str, fields: dict[str, Any]) -> Entry:
    match kind:
        case "joined":
            return ProducerJoined(**fields)
        case "idle":
            return ProducerIdle(**fields)
        case "ended":
            return ProducerEnded(**fields)
        case "forgotten":
            return ProducerForgotten(**fields)
        case "over":
            return StreamEnded(**fields)
        case "change":
            return change_of(fields)
        case "table":
            return TableVersion(**fields)
        case _:
            raise Bug(f"a record holds an entry {kind!r}, which format {FORMAT} does not know")


def change_story(change: SpecChange) -> dict[str, Any]:
    """A change as JSON holds it."""
    return {
        "record": change.record,
        "version": change.version,
        "windows": [window_story(window) for window in change.windows],
        "lateness": change.lateness_ns,
        "idle": change.idle_timeout_ns,
        "floors": [int(floor) for floor in change.floors],
        "upto": [int(serial) for serial in change.upto],
    }


def change_of(story: dict[str, Any]) -> SpecChange:
    """The change again."""
    return SpecChange(
        record=RecordNo(story["record"]),
        version=story["version"],
        windows=tuple(window_of(*window) for window in story["windows"]),
        lateness_ns=tuple(story["lateness"]),
        idle_timeout_ns=tuple(story["idle"]),
        floors=tuple(story["floors"]),
        upto=tuple(story["upto"]),
    )


def window_story(window: Window) -> tuple[str, int]:
    """A window as JSON holds it."""
    return ("rows", window.rows) if isinstance(window, CountWindow) else ("ns", window.length_ns)


def window_of(kind: str, size: int) -> Window:
    """The window again."""
    return CountWindow(size) if kind == "rows" else TimeWindow(Nanoseconds(size))


# --- heads


def encode_head(head: Head) -> memoryview:
    """The head as bytes."""
    story = {
        "next": head.next_record,
        "clocks": [_clock_story(clock) for clock in head.clocks],
        "positions": [int(position) for position in head.positions],
        "idle": head.idle_timeout_ns,
        "stamp": head.stamp_ns,
        "sessions": [[*key, *_session_story(session)] for key, session in head.sessions.items()],
        "changes": [change_story(change) for change in head.changes],
        "counts": [int(count) for count in head.counts],
        "tables": [[table.record, table.version] for table in head.tables],
    }
    text = json.dumps(story).encode()
    writer = Writer(_HEAD, FORMAT, item_size(len(text)))
    writer.put(text)
    return writer.sealed()


def decode_head(data: bytes) -> Head:
    """The head of these bytes."""
    story = json.loads(bytes(Reader([data], _HEAD, FORMAT, BadRecord).next()))
    return Head(
        next_record=RecordNo(story["next"]),
        clocks=tuple(_clock(clock) for clock in story["clocks"]),
        positions=tuple(story["positions"]),
        idle_timeout_ns=tuple(story["idle"]),
        stamp_ns=story["stamp"],
        sessions={(stream, ProducerId(name)): Session(*told) for stream, name, *told in story["sessions"]},
        changes=tuple(change_of(change) for change in story["changes"]),
        counts=tuple(story["counts"]),
        tables=tuple(TableVersion(RecordNo(record), version) for record, version in story.get("tables", ())),
    )


def _session_story(session: Session) -> tuple[Any, ...]:
    return session.number, session.expected, session.sequence, session.checksum, session.ended


def _clock_story(clock: StreamClock) -> dict[str, Any]:
    return {
        "lateness": clock.lateness_ns,
        "watermark": int(clock.watermark),
        "greatest": {name: int(time) for name, time in clock.greatest.items()},
        "live": sorted(clock.live),
        "ended": clock.ended,
    }


def _clock(story: dict[str, Any]) -> StreamClock:
    greatest = {ProducerId(name): time for name, time in story["greatest"].items()}
    live = frozenset(ProducerId(name) for name in story["live"])
    return StreamClock(story["lateness"], story["watermark"], greatest, live, story["ended"])
