"""The join module of a stored table: whatever is served, answered and moved when, every result is told once.

Workers, a gateway and a collector are played here in a few lines: batches end at new versions, a moved group is joined
again from its beginning, and of what was joined again only what follows the collector's last batch counts.
"""

from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.flow import ingest
from joinery.hybrid.grouped import GROUP_SHIFT, group_cut, segments_within, together
from joinery.hybrid.hybrid import Probe
from joinery.hybrid.segments import Relation, Segment, row_bytes
from joinery.join.plan import JoinPlan
from joinery.join.state import Increment
from joinery.machine.facts import BatchJoined, BatchTaken, Fact, GroupRestored, TableRead, TableWanted
from joinery.machine.hybrid_module import HybridModule, stored_schema
from joinery.machine.messages import Exchange
from joinery.machine.orders import DropGroups, JoinBatch, MeasureState, RestoreGroup, TakeIncrements
from joinery.machine.table_orders import LookAfterWaiting, TakeTable
from joinery.model.ids import GroupId, MapVersion, RecordNo, Term
from joinery.model.spec import JoinQuerySpec
from joinery.model.time import FOREVER
from joinery.model.tuples import concat
from joinery.oracle.table_truth import table_truth
from joinery.oracle.truth import RecordedStream
from joinery.partition.hashing import groups_of
from joinery.window.sliding import Marks
from tests.oracle.tables import joined

GROUPS = 3
KEYS = st.one_of(st.sampled_from(["a", "a", "b", "k7"]), st.integers(0, 40).map("k{}".format), st.none())
NUMBERS = st.one_of(st.sampled_from([3, 3, 5]), st.integers(-5, 60), st.none())


def plan_of(kind: str, memory: int, *, texts: bool, **table: object) -> JoinPlan:
    key = "string" if texts else "int64"
    spec = {
        "streams": [
            {"name": "s", "schema": {"key": key, "n": "int64"}, "time": {"column": "n", "unit": "ns"}},
            {"name": "t", "schema": {"id": key, "m": "int64"}, "table": {"path": "t", **table}},
        ],
        "join": {"on": [{"s": "key", "t": "id"}], "type": kind, "where": "s.n + t.m != 7"},
        "filter": "t.version < 3 or s.n > 4",
        "partitions": GROUPS,
    }
    plan = JoinPlan.of(JoinQuerySpec.parse(spec))
    assert plan.table is not None
    return replace(plan, table=plan.table.model_copy(update={"memory": memory}))


def cut(plan: JoinPlan, version: int, rows: pa.RecordBatch) -> tuple[Relation, dict[Probe, Segment]]:
    """A version with its segments, all written by it."""
    key, store = plan.formats[1].key, dict[Probe, Segment]()
    hashes, words, keyed = key.digest(rows)
    kind, of = ("range" if key.is_word else "hash"), groups_of(hashes, GROUPS)
    cuts, sizes = [], []
    for group in range(GROUPS):
        own = np.flatnonzero((of == group) & (np.ones(of.size, bool) if keyed is None else keyed))
        own = own[np.argsort(words[own], kind="stable")]
        part = rows.take(pa.array(own))
        one = group_cut(kind, words[own], hashes[own], row_bytes(part), 100, None)
        at = segments_within(one, words[own], hashes[own])
        for number in range(one.segments):
            chosen = own[at == number]
            name, mine = (group << GROUP_SHIFT) | number, rows.take(pa.array(chosen))
            sizes.append(int(row_bytes(mine).sum()))
            store[Probe(version, name)] = Segment(name, version, words[chosen].copy(), mine, sizes[-1])
        cuts.append(one)
    made = together(kind, cuts)
    return Relation(version, made, np.array(sizes, np.int64), np.full(made.segments, version, np.int64)), store


@dataclass
class Worker:
    module: HybridModule
    free: bool = True
    sent: deque[tuple[Exchange, dict[int, int]]] = field(default_factory=deque)
    wants: list[TableWanted] = field(default_factory=list)


@dataclass
class World:
    data: st.DataObject
    plan: JoinPlan
    workers: list[Worker]
    records: list[tuple[Any, int]] = field(default_factory=list)
    """Rows of each record (None: it has none) and the version that they meet."""
    tables: dict[int, pa.RecordBatch] = field(default_factory=dict)
    relations: dict[int, Relation] = field(default_factory=dict)
    store: dict[Probe, Segment] = field(default_factory=dict)
    owner: list[int] = field(default_factory=lambda: [0] * GROUPS)
    term: list[int] = field(default_factory=lambda: [1] * GROUPS)
    at: list[int] = field(default_factory=lambda: [-1] * GROUPS)
    taken: list[int] = field(default_factory=lambda: [-1] * GROUPS)
    found: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    now: int = 0

    def refresh(self, keys: st.SearchStrategy[Any]) -> None:
        version = len(self.tables) + 1
        ids = self.data.draw(st.lists(keys, max_size=25), f"version {version}")
        columns = [pa.array(ids, self.plan.formats[1].schema.field("id").type), pa.array(range(len(ids)), pa.int64())]
        self.tables[version] = pa.record_batch(columns, schema=stored_schema(self.plan))
        self.relations[version], more = cut(self.plan, version, self.tables[version])
        self.store |= more

    def record(self, keys: list[Any] | None) -> None:
        rows = None
        if keys is not None:
            first = sum(len(one) for one, _ in self.records if one is not None)
            form = self.plan.formats[0]
            columns = [pa.array(keys, form.schema.field("key").type), pa.array(range(first, first + len(keys)))]
            rows = ingest.read(form, pa.record_batch(columns, schema=form.schema), first_place=first)
        self.records.append((rows, len(self.tables)))

    def serve(self, number: int, marks: int = 0) -> None:
        worker = self.workers[number]
        behind = [g for g in range(GROUPS) if self.owner[g] == number and self.at[g] < len(self.records) - 1]
        if not worker.free or not behind:
            return
        after = self.at[self.data.draw(st.sampled_from(behind))]
        groups = [g for g in behind if self.at[g] == after]
        version, upto = self.records[after + 1][1], after + 1
        while upto + 1 < len(self.records) and self.records[upto + 1][1] == version and self.data.draw(st.booleans()):
            upto += 1
        last = upto == len(self.records) - 1
        parts = [rows for rows, _ in self.records[after + 1 : upto + 1] if rows is not None]
        batches = tuple([concat(parts)] if parts else [])
        batches = tuple(one.take(np.isin(groups_of(one.hashes, GROUPS), groups)) for one in batches)
        exchange = Exchange(
            Term(1), MapVersion(1), np.array(groups), np.full(len(groups), after), RecordNo(upto),
            Marks((marks if last else 0, FOREVER)), batches, (), table=version,
        )  # fmt: skip
        worker.free = False
        worker.sent.append((exchange, {g: self.term[g] for g in groups}))
        for group in groups:
            self.at[group] = upto
        behind_bytes = self.data.draw(st.sampled_from([0, 10_000]))
        self.hear(worker, worker.module.perform(JoinBatch(exchange, self.now, behind_bytes)))

    def hear(self, worker: Worker, facts: Any) -> None:
        for fact in facts:
            self.heard(worker, fact)

    def heard(self, worker: Worker, fact: Fact) -> None:
        match fact:
            case BatchTaken():
                worker.free = True
            case TableWanted():
                worker.wants.append(fact)
            case BatchJoined():
                exchange, terms = worker.sent.popleft()
                assert fact.exchange is exchange
                for group, after in zip(exchange.groups.tolist(), exchange.after.tolist(), strict=True):
                    if terms[group] == self.term[group] and exchange.upto > self.taken[group]:
                        assert after == self.taken[group] or self.taken[group] >= exchange.upto
                        self.taken[group] = exchange.upto
                        self.take(fact, group)
            case GroupRestored():
                pass
            case _:
                assert type(fact).__name__ in ("IncrementsTaken", "StateMeasured")

    def take(self, fact: BatchJoined, group: int) -> None:
        for part in fact.parts:
            own = part.take(part.groups == group)
            self.found += Counter(tuple(row.values()) for row in own.rows.to_pylist())

    def answer(self, worker: Worker) -> None:
        if worker.wants:
            wanted = worker.wants.pop(self.data.draw(st.integers(0, len(worker.wants) - 1)))
            relation = None if wanted.version is None else self.relations[wanted.version]
            read = TableRead(relation, tuple(self.store[probe] for probe in wanted.probes))
            self.hear(worker, worker.module.perform(TakeTable(read, self.now)))

    def move(self, group: int, to: int) -> None:
        """The group is joined again, from its last batch that the collector took."""
        source, self.owner[group] = self.workers[self.owner[group]], to
        self.term[group] += 1
        self.at[group] = self.taken[group]
        self.hear(source, source.module.perform(DropGroups((GroupId(group),))))
        self.restore(group)

    def restore(self, group: int) -> None:
        module = self.workers[self.owner[group]].module
        tag, marks = RecordNo(self.taken[group]), Marks((0, FOREVER))
        state = Increment(GroupId(group), tag, None, (), (), (), marks, (), (), ())
        order = RestoreGroup(GroupId(group), MapVersion(self.term[group]), (state,) if tag >= 0 else (), None, ())
        self.hear(self.workers[self.owner[group]], module.perform(order))

    def expected(self) -> Counter[tuple[Any, ...]]:
        rows = [(row, version) for one, version in self.records if one is not None for row in one.rows.to_pylist()]
        tables = {version: table.to_pylist() for version, table in self.tables.items()}
        left = self.plan.type.value == "left"
        pairs = joined(rows, tables, {"key": "id"}, left=left, where=lambda s, t: s["n"] + t["m"] != 7)
        shown = [
            (s["key"], s["n"], None if t is None else t["id"], None if t is None else t["m"], version)
            for s, t, version in pairs
            if version < 3 or s["n"] > 4
        ]
        return Counter(shown)

    def shipped(self) -> Counter[tuple[Any, ...]]:
        """By the oracle of `joinery verify`."""
        batches = [(place, one) for place, (one, _) in enumerate(self.records) if one is not None and len(one)]
        if not batches:
            return Counter()
        numbers = np.concatenate([np.full(len(one), place) for place, one in batches])
        rows = pa.Table.from_batches([one.rows for _, one in batches])
        stream = RecordedStream(rows, np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.bool_), numbers)
        entries, known = [], 0
        for place, (_, version) in enumerate(self.records):
            if version != known:
                entries.append((place - 1, version))
                known = version
        tables = {version: pa.Table.from_batches([table]) for version, table in self.tables.items()}
        made = table_truth(self.plan, stream, entries, tables)
        return Counter(tuple(row.values()) for table in made for row in table.to_pylist())


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_result_is_told_once_whatever_is_served_answered_and_moved_when(data: st.DataObject) -> None:
    texts = data.draw(st.booleans(), "texts")
    plan = plan_of(
        data.draw(st.sampled_from(["inner", "left"])), data.draw(st.sampled_from([0, 300, 10_000])), texts=texts,
        waitBuffer="4Ki", invokeRows=data.draw(st.integers(1, 20)), maxWait="5ns", epochRows=10,
    )  # fmt: skip
    keys = KEYS if texts else NUMBERS
    world = World(data, plan, [Worker(HybridModule(plan)) for _ in range(2)])
    for group in range(GROUPS):
        world.restore(group)
    world.refresh(keys)
    for world.now in range(data.draw(st.integers(3, 12), "steps")):
        world.record(data.draw(st.lists(keys, max_size=20)))
        for _ in range(data.draw(st.integers(0, 3))):
            world.serve(data.draw(st.integers(0, 1)))
            world.answer(world.workers[data.draw(st.integers(0, 1))])
        worker = world.workers[data.draw(st.integers(0, 1))]
        match data.draw(st.sampled_from(["look", "move", "refresh", "measure", "tags"])):
            case "look":
                world.hear(worker, worker.module.perform(LookAfterWaiting(world.now)))
            case "move":
                world.move(data.draw(st.integers(0, GROUPS - 1)), data.draw(st.integers(0, 1)))
            case "refresh" if len(world.tables) < 4:
                world.refresh(keys)
            case "measure":
                world.hear(worker, worker.module.perform(MeasureState()))
            case "tags":
                groups = tuple(GroupId(g) for g in range(GROUPS) if world.workers[world.owner[g]] is worker)
                world.hear(worker, worker.module.perform(TakeIncrements(groups)))
    world.record(None)
    for _ in range(200):
        if all(taken == len(world.records) - 1 for taken in world.taken):
            break
        for number, one in enumerate(world.workers):
            world.serve(number, FOREVER)
            while one.wants:
                world.answer(one)
    assert [len(world.records) - 1] * GROUPS == world.taken
    assert world.expected() == world.found
    assert world.expected() == world.shipped()
