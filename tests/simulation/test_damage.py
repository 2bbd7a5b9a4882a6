"""Blocks of checkpoints are damaged under random schedules: exact, or the loss is told and nothing wrong comes out."""

import random

import pytest

from joinery.machine import messages, orders
from joinery.model.ids import GroupId
from joinery.simulate.recovery import Recovery
from joinery.simulate.schedule import MS
from joinery.simulate.world import World
from tests.simulation.check import verify
from tests.simulation.schedules import random_schedule

CHUNKS, SEEDS = 6, 60
WRONG = ("extra", "duplicate", "late extra", "late duplicate", "failed", "stuck", "log")
"""What may not even happen when state is lost; then rows may be missing, or not recorded because it had ended."""


class Harmed(World):
    """At some moments a block of each group is damaged, by the toss of a coin."""

    def _plan_all(self) -> None:
        super()._plan_all()
        self._coin, self.harmed = random.Random(self.schedule.seed), 0
        for _ in range(4):
            self.timeline.at(self._coin.randrange(5, 600) * MS, self._harm)

    def _harm(self) -> None:
        for group in range(self.spec.partitions):
            tags, _ = self.stores.checkpoints.tags(GroupId(group))
            if tags and self._coin.random() < 0.5:
                self.stores.checkpoints.damage(GroupId(group), self._coin.choice(tags), "found a wrong checksum")
                self.harmed += 1

    @property
    def lost(self) -> bool:
        """Whether a gateway has said that the state of a group is lost."""
        stops = [what for *_, what in self.shell.story._events if isinstance(what, orders.Stop)]
        return any(stop.because.startswith("StateLost: group ") for stop in stops)

    @property
    def written_anew(self) -> int:
        """How often an owner was asked for a whole state."""
        sends = [what.message for *_, what in self.shell.story._events if isinstance(what, orders.Send)]
        return sum(isinstance(one, messages.CheckpointNow) and one.whole for one in sends)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_damaged_block_never_makes_a_wrong_result(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recovery, "_check", lambda *_: None)  # a group that has stopped cannot be recovered
    ends = {"exact": 0, "lost": 0, "anew": 0, "harmed": 0}
    for seed in range(chunk, SEEDS, CHUNKS):
        schedule = random_schedule(seed)
        world = Harmed(schedule)
        complaints = verify(schedule, world.run())
        if world.lost:
            complaints = [text for text in complaints if text.startswith(WRONG)]
        assert [] == complaints, f"seed {seed}"
        ends["lost" if world.lost else "exact"] += 1
        ends["anew"] += world.written_anew
        ends["harmed"] += world.harmed
    assert min(ends["exact"], ends["harmed"]) > 0, ends
