"""The hybrid join gives what a nested loop over the recorded rows and their versions gives, whatever it decides."""

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.hybrid.config import HybridConfig, Kind
from joinery.hybrid.hybrid import HybridJoin, Probe, Step
from joinery.hybrid.indexed_nested_loop import indexed_nested_loop
from joinery.hybrid.meshjoin import MeshJoin
from joinery.hybrid.segments import HashCut, Relation, Segment, range_cut, row_bytes, unchanged
from joinery.model.tuples import TupleBatch
from tests.unit.hybrid.relations import SCHEMA, answered, batch_of, cut_rows, naive, rows_of, table, words_of

KEYS = st.one_of(st.sampled_from([3, 3, 3, 7, 500]), st.integers(-1200, 1200), st.none())
"""Skewed, missing (the relation has 0..999) and null."""
SELDOM = st.sampled_from([False, False, False, True])
RELATION_KEYS = st.lists(st.one_of(st.integers(0, 999), st.sampled_from([3, 7]), st.none()), max_size=60)


@st.composite
def configs(draw: st.DrawFn, kind: Kind) -> HybridConfig:
    low = draw(st.integers(0, 2))
    return HybridConfig(
        kind=kind,
        memory_bytes=draw(st.sampled_from([0, 200, 700, 100_000])),
        wait_bytes=draw(st.sampled_from([64, 256, 4096])),
        block_bytes=draw(st.sampled_from([16, 64])),
        invoke_rows=draw(st.integers(1, 20)),
        free_share=draw(st.sampled_from([0.0, 0.4, 0.9])),
        epoch_rows=draw(st.integers(1, 20)),
        rho=draw(st.sampled_from([0.0, 0.25])),
        low_mark_blocks=low,
        high_mark_blocks=low + draw(st.integers(0, 3)),
        max_wait_ns=draw(st.sampled_from([None, 0, 5])),
    )


@dataclass
class World:
    """A relation of several versions on a disk that answers when it likes."""

    data: st.DataObject
    config: HybridConfig
    join: HybridJoin
    store: dict[tuple[int, int], Segment]
    versions: dict[int, pa.RecordBatch]
    relations: dict[int, Relation]
    last: tuple[Relation, tuple[Segment, ...]] | None = None
    pending: list[Probe] | None = None
    found: Counter[tuple[object, ...]] | None = None

    def refresh(self, version: int) -> None:
        rows = table(self.data.draw(RELATION_KEYS, f"version {version}"), f"v{version}-")
        if self.last is not None and self.data.draw(st.booleans(), "small change"):
            old = self.versions[version - 1]
            rows = pa.Table.from_batches([old, rows.slice(0, 1)], SCHEMA).combine_chunks().to_batches()
            rows = rows[0] if rows else table([], "")
        kept = rows.filter(rows.column("key").is_valid())
        cut = HashCut(self.data.draw(st.integers(1, 5))) if self.data.draw(st.booleans(), "hash") else None
        if self.last is not None and isinstance(self.last[0].cut, HashCut) and self.data.draw(st.booleans()):
            cut = self.last[0].cut
        cut = cut or range_cut(words_of(kept), row_bytes(kept), 100)
        made = cut_rows(version, cut, rows)
        if self.last is not None:
            made = unchanged(*self.last, *made)
        self.last, self.versions[version], self.relations[version] = made, rows, made[0]
        self.store |= {(one.stamp, one.number): one for one in made[1]}
        self.join.on_version(made[0])

    def take(self, step: Step) -> None:
        assert self.found is not None
        assert self.pending is not None
        self.found += rows_of(step)
        self.pending += step.probes
        assert sum(self.store[name].size for name in self.join.held) <= self.config.memory_bytes

    def answer(self) -> None:
        assert self.pending is not None
        while self.pending and not self.data.draw(SELDOM, "leave it"):
            at = self.data.draw(st.integers(0, len(self.pending) - 1))
            self.take(self.join.on_segment(self.store[self.pending.pop(at)]))

    def retire(self, below: int) -> None:
        """Versions that no batch names any more and for which no row waits."""
        state = self.join.snapshot()
        waiting = set() if state.waiting is None else set(state.waiting.versions.tolist())
        for relation in state.relations:
            if relation.version < below and relation.version not in waiting:
                self.join.retire(relation.version)

    def restart(self) -> None:
        """The process dies: what was on its way is lost, the snapshot asks again."""
        state = self.join.snapshot()
        self.pending = []
        self.join, step = HybridJoin.restored(state, self.config, SCHEMA)
        self.take(step)


@pytest.mark.parametrize("kind", Kind)
@settings(max_examples=120)
@given(data=st.data())
def test_any_cut_any_memory_any_refresh_and_any_restart_give_the_naive_join(kind: Kind, data: st.DataObject) -> None:
    config = data.draw(configs(kind))
    world = World(data, config, HybridJoin(config, SCHEMA), {}, {}, {}, None, [], Counter())
    world.refresh(0)
    fed: list[tuple[TupleBatch, int]] = []
    place, version = 0, 0
    for now in range(data.draw(st.integers(2, 8), "turns")):
        batch = batch_of(data.draw(st.lists(KEYS, min_size=4, max_size=30)), place)
        lagging = max(0, version - data.draw(st.integers(0, 1), "lag"))
        place += len(batch)
        fed.append((batch, lagging))
        behind = data.draw(st.sampled_from([0, 10, 1000]), "behind")
        world.take(world.join.on_batch(batch, version=lagging, tag=now, now_ns=now * 3, behind_bytes=behind))
        world.answer()
        if data.draw(st.booleans(), "time"):
            world.take(world.join.on_time(now * 3))
        if data.draw(SELDOM, "retire"):
            world.retire(version - 1)
        if data.draw(SELDOM, "restart"):
            world.restart()
        if data.draw(SELDOM, "refresh"):
            version += 1
            world.refresh(version)
    world.take(world.join.on_end())
    assert world.pending is not None
    while world.pending:
        world.take(world.join.on_segment(world.store[world.pending.pop()]))
    assert naive(fed, world.versions, left=kind is Kind.LEFT) == world.found
    assert 0 == world.join.waiting_rows
    assert world.join.oldest_tag is None


@pytest.mark.parametrize("kind", Kind)
@settings(max_examples=60)
@given(data=st.data())
def test_the_baselines_give_the_naive_join_too(kind: Kind, data: st.DataObject) -> None:
    rows = table(data.draw(RELATION_KEYS), "r")
    relation, segments = cut_rows(1, HashCut(data.draw(st.integers(1, 6))), rows)
    store = {(one.stamp, one.number): one for one in segments}
    memory = data.draw(st.sampled_from([1, 300, 5000]))
    mesh = MeshJoin(memory_bytes=memory, schema=SCHEMA, kind=kind)
    indexed = HybridJoin(indexed_nested_loop(kind), SCHEMA)
    fed: list[tuple[TupleBatch, int]] = []
    found: list[Counter[tuple[object, ...]]] = [Counter(), Counter()]
    place = 0
    for join in (mesh, indexed):
        join.on_version(relation)
    for now in range(data.draw(st.integers(1, 5))):
        batch = batch_of(data.draw(st.lists(KEYS, max_size=30)), place)
        place += len(batch)
        fed.append((batch, 1))
        for join, into in zip((mesh, indexed), found, strict=True):
            into += answered(join, join.on_batch(batch, version=1, tag=now, now_ns=now), store)
    for join, into in zip((mesh, indexed), found, strict=True):
        into += answered(join, join.on_end(), store)
    expected = naive(fed, {1: rows}, left=kind is Kind.LEFT)
    assert [expected, expected] == found
    assert [0, 0] == [mesh.waiting_rows, indexed.waiting_rows]
