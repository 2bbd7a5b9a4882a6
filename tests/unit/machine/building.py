"""Short ways to write what the machines are told: specs, rows, batches, exchanges, records, a feed of producers.

Streams are a and b (c ...), keys are integers, times are nanoseconds; a row is written as (key, time).
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
import pyarrow as pa

from joinery.flow import ingest
from joinery.join.plan import JoinPlan
from joinery.join.results import ResultPart
from joinery.join.state import Increment
from joinery.machine import orders
from joinery.machine.intake import Cut, Intake
from joinery.machine.log import LoggedBatch, Record, SpecChange
from joinery.machine.messages import ChangeSpec, Exchange, Holdings, Open, Opened, Push, Refuse, Results, WorkerHello
from joinery.machine.orders import Order
from joinery.machine.placement import Placement
from joinery.machine.workforce import Workforce
from joinery.model.ids import GroupId, MapVersion, Peer, ProducerId, RecordNo, Term, WorkerId
from joinery.model.quantities import TimeWindow, parse_window
from joinery.model.spec import JoinQuerySpec
from joinery.model.time import DEAD, NS_PER_UNIT
from joinery.model.tuples import I64Array, TupleBatch
from joinery.partition.hashing import groups_of, hash_words
from joinery.window.sliding import Floor, Marks
from tests.unit.machine.result_parts import vector

GROUPS = 4
SECOND = NS_PER_UNIT["s"]
T = TypeVar("T")
Pair = tuple[int, int]
"""A row: key and time."""


# --- queries and rows


def spec_of(
    *windows: object,
    lateness: int = 0,
    idle: str = "never",
    arrival: Sequence[int] = (),
    kind: str = "inner",
    partitions: int = GROUPS,
    **more: object,
) -> JoinQuerySpec:
    """A query over streams a, b ...; those in `arrival` have no time column. Nobody waits for alignment."""
    streams: list[dict[str, object]] = []
    for number, window in enumerate(windows or ("100ns", "100ns")):
        stream: dict[str, object] = {"name": "abcd"[number], "schema": {"k": "int64", "ts": "int64"}, "window": window}
        if number not in arrival:
            stream["time"] = {"column": "ts", "unit": "ns", "lateness": f"{lateness}ns", "idleTimeout": idle}
        streams.append(stream)
    join = {"on": ["k"], "type": kind}
    wanted = {"streams": streams, "join": join, "partitions": partitions, "alignment": "24h", **more}
    return JoinQuerySpec.parse(wanted)


def plan_of(*windows: object, **more: Any) -> JoinPlan:
    return JoinPlan.of(spec_of(*windows, **more))


def rows(*pairs: Pair) -> pa.RecordBatch:
    keys, times = zip(*pairs, strict=True) if pairs else ((), ())
    return pa.RecordBatch.from_pydict({"k": pa.array(keys, pa.int64()), "ts": pa.array(times, pa.int64())})


@cache
def key_in(group: int, nth: int = 0, partitions: int = GROUPS) -> int:
    """A key that belongs to a group."""
    keys = np.arange(1000)
    return int(keys[groups_of(hash_words(keys), partitions) == group][nth])


def tuples(plan: JoinPlan, stream: int, *pairs: Pair, place: int = 0) -> TupleBatch:
    return ingest.read(plan.formats[stream], rows(*pairs), first_place=place)


def window(text: object) -> TimeWindow:
    """A time window as a spec writes it."""
    found = parse_window(text)
    assert isinstance(found, TimeWindow)
    return found


# --- records


def logged(
    stream: int,
    *pairs: Pair,
    place: int = 0,
    producer: str = "p",
    session: int = 1,
    sequence: int = 0,
    stamp: int = 0,
    late: Sequence[bool] | None = None,
) -> LoggedBatch:
    found = rows(*pairs)
    flags = None if late is None else np.array(late, np.bool_)
    return LoggedBatch(
        stream, ProducerId(producer), session, sequence, sequence + 1, checksum(found), place, stamp, flags, found
    )


def record(*batches: LoggedBatch, marks: Sequence[int] = (DEAD, DEAD), entries: Iterable[Any] = ()) -> Record:
    return Record(Term(1), batches, tuple(marks), tuple(entries))


def checksum(batch: pa.RecordBatch) -> int:
    return crc32(str(batch.to_pydict()).encode())


def change_of(
    at: int,
    *windows: object,
    version: int = 1,
    floors: Sequence[int] = (DEAD, DEAD),
    upto: Sequence[int] = (-1, -1),
    lateness: int = 0,
) -> SpecChange:
    """A change of the spec as record `at` holds it."""
    own = tuple(parse_window(one) for one in windows or ("100ns", "100ns"))
    return SpecChange(RecordNo(at), version, own, (lateness,) * 2, (7 * SECOND,) * 2, tuple(floors), tuple(upto))


def wish(version: int, *windows: object, lateness: int = 0, idle_ns: int = 7 * SECOND) -> ChangeSpec:
    """A change of the spec as an operator asks for it."""
    own = tuple(parse_window(one) for one in windows or ("100ns", "100ns"))
    return ChangeSpec(version, own, (lateness,) * len(own), (idle_ns,) * len(own))


# --- producers


def push(session: int, sequence: int, *pairs: Pair, end: bool = False, batch: pa.RecordBatch | None = None) -> Push:
    found = rows(*pairs) if batch is None else batch
    return Push(session, sequence, sequence + 1, checksum(found), found, end)


class Feed:
    """An intake and its producers: each opens a session with its first batch and numbers its batches from 0."""

    def __init__(self, spec: JoinQuerySpec | None = None) -> None:
        self.spec = spec or spec_of()
        self.intake = Intake(self.spec, JoinPlan.of(self.spec))
        self.cuts: list[Cut] = []
        self._session: dict[Peer, int] = {}
        self._next: dict[Peer, int] = {}
        self.postponed: list[tuple[Peer, Open]] = []
        """Who may open a session since the last record is durable."""

    def open(self, name: str = "p", stream: int = 0, *, now: int = 0, peer: str = "") -> Opened | Refuse | None:
        at = Peer(peer or f"{stream}/{name}")
        message = Open(stream, ProducerId(name) if name else None)
        answer = self.intake.sessions.open(at, message, self.intake.head, Term(1), now)
        if isinstance(answer, Opened):
            self._session[at] = answer.session
        return answer

    def send(self, stream: int, *pairs: Pair, name: str = "p", end: bool = False, now: int = 0) -> Any:
        """The producer's next batch; the answer that it gets at once."""
        peer = Peer(f"{stream}/{name}")
        if peer not in self._session:
            self.open(name, stream, now=now)
        sequence = self._next.get(peer, 0)
        self._next[peer] = sequence + 1
        return self.push(peer, push(self._session[peer], sequence, *pairs, end=end), now=now)

    def push(self, peer: Peer, message: Push, *, now: int = 0) -> Any:
        return self.intake.sessions.push(peer, message, self.intake.head, now)

    def begin(self, now: int = 0, only: int | None = None) -> Cut | None:
        """Cut a record; it is being written."""
        return self.intake.cut(Term(1), now, only)

    def cut(self, now: int = 0, only: int | None = None) -> Cut:
        """Cut a record that is durable at once."""
        made = self.begin(now, only)
        assert made is not None
        self.intake.head = made.head
        self.postponed = self.intake.sessions.written()
        self.cuts.append(made)
        return made

    def log(self) -> list[tuple[RecordNo, Record]]:
        return [(cut.number, cut.record) for cut in self.cuts]


def entries(cut: Cut, kind: type) -> list[object]:
    """The entries of a record, of one kind."""
    return [entry for entry in cut.record.entries if isinstance(entry, kind)]


def late_of(cut: Cut) -> list[list[bool]]:
    """The late flags of a record, batch by batch."""
    return [
        [False] * batch.rows.num_rows if batch.late is None else batch.late.tolist() for batch in cut.record.batches
    ]


def told(batches: Iterable[TupleBatch]) -> list[tuple[Any, ...]]:
    """Everything that workers learn about rows, row by row."""
    found: list[tuple[Any, ...]] = []
    for batch in batches:
        late = [False] * len(batch) if batch.late is None else batch.late.tolist()
        order = batch.order
        ranks = [None] * len(batch) if order is None else order.ranks.tolist()
        counts = [None] * len(batch) if order is None else order.counts.tolist()
        columns = (batch.times.tolist(), batch.places.tolist(), batch.hashes.tolist(), batch.rows.to_pylist())
        found += [(batch.stream, *row) for row in zip(*columns, late, ranks, counts, strict=True)]
    return found


# --- workers


def exchange(
    groups: Sequence[int],
    after: int | Sequence[int],
    upto: int,
    *batches: TupleBatch,
    marks: Sequence[int] = (DEAD, DEAD),
    changes: tuple[SpecChange, ...] = (),
    term: int = 1,
) -> Exchange:
    ends = [after] * len(groups) if isinstance(after, int) else after
    return Exchange(
        Term(term), MapVersion(1), vector(*groups), vector(*ends), RecordNo(upto), Marks(tuple(marks)), batches, changes
    )


def increment(
    group: int,
    tag: int,
    since: int | None,
    *times: int,
    closed: Sequence[int] = (DEAD, DEAD),
    changes: int = 0,
) -> Increment:
    """The state of a group: rows of stream a with these times; so many changes of the windows lie before it."""
    plan = plan_of()
    each = (tuples(plan, 0, *((key_in(group), time) for time in times), place=tag), tuples(plan, 1))
    floors = ((Floor(-1, DEAD, None),) * 2,) * changes
    return Increment(
        GroupId(group), RecordNo(tag), None if since is None else RecordNo(since), each,
        tuple(np.zeros(len(one), np.uint8) for one in each), (vector(), vector()), Marks((tag, tag)), tuple(closed),
        floors, (),
    )  # fmt: skip


def results(
    groups: Sequence[int],
    after: int,
    upto: int,
    *parts: ResultPart,
    version: int = 1,
    part: int = 0,
    last: bool = True,
) -> Results:
    """The results of the batch (after, upto]."""
    same = [after] * len(groups)
    return Results(
        vector(*groups), vector(*same), vector(*[version] * len(groups)), RecordNo(upto), Marks((0, 0)), part, last,
        parts,
    )  # fmt: skip


def holdings(*groups: int, version: int = 1, tag: int = -1, received: int = -1, silent: int = -1) -> Holdings:
    same = [vector(*[value] * len(groups)) for value in (version, tag, received, silent, -1)]
    return Holdings(vector(*groups), *same)


def hello(worker: str = "worker-0", *groups: int, instance: str = "one", **more: int) -> WorkerHello:
    return WorkerHello(WorkerId(worker), instance, holdings(*groups, **more))


def workforce_of(*workers: str, buffer: int = 1000, lost_after: int = 100) -> Workforce:
    """These workers are up; each one's peer has its name."""
    made = Workforce(buffer, lost_after)
    for worker in workers:
        assert made.hello(Peer(worker), hello(worker), now_ns=0)
    return made


COLLECTOR_PEER = Peer("collector/1")


def placed(*workers: str, groups: int = GROUPS, served: bool = True, **more: int) -> Placement:
    """A placement whose first map is durable; if `served`, every owner has its groups, empty and before record 0."""
    place = Placement(groups, workforce_of(*workers, **more))
    place.restore(None, Term(1))
    place.collector = COLLECTOR_PEER
    place.found([WorkerId(worker) for worker in workers])
    place.written(MapVersion(1), now_ns=0)
    if served:
        for worker in workers:
            place.holding(WorkerId(worker), holdings(*place.groups_of(WorkerId(worker)).tolist()), now_ns=0)
    return place


# --- orders


def sent(made: Iterable[Order], kind: type[T]) -> list[tuple[Peer, T]]:
    """The messages of one kind, and to whom."""
    carriers = (orders.Send, orders.SendAcknowledge, orders.SendExchange, orders.Emit)
    return [(one.to, one.message) for one in made if isinstance(one, carriers) and isinstance(one.message, kind)]


def of(made: Iterable[Order], kind: type[T]) -> list[T]:
    return [one for one in made if isinstance(one, kind)]


def plainly(values: I64Array) -> list[int]:
    found: list[int] = values.tolist()
    return found
