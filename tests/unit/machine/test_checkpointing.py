"""A worker's checkpoints: increments, blocks, heads, one at a time; and which increments are dead."""

import numpy as np
import pytest

from joinery.join.state import Age, Increment, dead_before
from joinery.machine.checkpointing import Checkpointing
from joinery.machine.facts import HeadsWritten
from joinery.machine.messages import Checkpointed
from joinery.machine.orders import Order, TakeIncrements, TrimCheckpoint, WriteBlocks, WriteHeads
from joinery.model.errors import Bug
from joinery.model.ids import GATEWAY, GroupId, MapVersion, RecordNo
from joinery.model.quantities import CountWindow
from joinery.model.time import DEAD
from tests.unit.machine.building import change_of, increment, of, plainly, sent, spec_of, window

G0, G1, G2 = GroupId(0), GroupId(1), GroupId(2)
WINDOWS = (window("100ns"), window("100ns"))


class Desk:
    """All groups are here under version 1."""

    def __init__(self) -> None:
        self.checkpointing, self.now_ns = Checkpointing(spec_of()), 0
        self.versions = np.ones(4, np.int64)

    def begin(self, *groups: GroupId) -> list[Order]:
        return self.checkpointing.begin(list(groups), self.versions, self.now_ns)

    def now(self, *groups: GroupId) -> list[Order]:
        return self.checkpointing.now(list(groups), self.versions, self.now_ns)

    def taken(self, *increments: Increment) -> list[Order]:
        return self.checkpointing.taken(increments, self.versions, self.now_ns)

    def blocks(self, number: int = 1) -> list[Order]:
        return self.checkpointing.blocks_written(number, self.versions, self.now_ns)

    def heads(self, number: int = 1, refused: tuple[GroupId, ...] = ()) -> tuple[list[GroupId], list[Order]]:
        return self.checkpointing.heads_written(HeadsWritten(number, refused), self.versions, self.now_ns)

    def whole(self, number: int, *increments: Increment) -> list[Order]:
        """A checkpoint from its begin to its end."""
        self.begin(*(one.group for one in increments))
        self.taken(*increments)
        self.blocks(number)
        return self.heads(number)[1]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def told(made: list[Order]) -> list[tuple[str, list[int], list[int], list[int]]]:
    return [(peer, plainly(m.groups), plainly(m.versions), plainly(m.tags)) for peer, m in sent(made, Checkpointed)]


# --- the steps


def test_a_checkpoint_begins_with_the_increments(desk: Desk) -> None:
    assert [TakeIncrements((G0, G1))] == desk.begin(G0, G1)


def test_what_a_checkpoint_took_is_counted_if_something_was_written(desk: Desk) -> None:
    desk.now_ns = 100
    desk.begin(G0)
    desk.now(G1)  # waits for the end of the first, and begins then
    desk.taken(increment(0, 4, None))
    desk.blocks()
    desk.now_ns = 107
    desk.heads()
    durations = desk.checkpointing.durations
    assert (1, 7) == (durations.rows, durations.total_ns)
    desk.now_ns = 120
    desk.taken(increment(1, 4, None))
    desk.blocks(2)
    desk.heads(2)
    durations = desk.checkpointing.durations
    assert (2, 7 + 13) == (durations.rows, durations.total_ns)
    desk.begin(G0)
    desk.taken()  # nothing was new
    desk.begin(G0)
    desk.taken(increment(0, 5, 4))
    desk.blocks(3)
    desk.heads(3, refused=(G0,))  # it is another's by now
    assert 2 == desk.checkpointing.durations.rows


def test_blocks_are_written_before_heads(desk: Desk) -> None:
    desk.begin(G0)
    one = increment(0, 4, None)
    (write,) = desk.taken(one)
    assert isinstance(write, WriteBlocks)
    assert (1, (one,)) == (write.number, write.increments)


def test_heads_name_version_since_and_tag(desk: Desk) -> None:
    desk.begin(G0, G1)
    desk.taken(increment(0, 4, None), increment(1, 4, 2))
    assert [WriteHeads(1, ((G0, 1, -1, 4), (G1, 1, 2, 4)))] == desk.blocks()


def test_the_gateway_hears_of_a_checkpoint_when_its_heads_are_written(desk: Desk) -> None:
    made = desk.whole(1, increment(0, 4, None), increment(1, 5, 2))
    assert [(GATEWAY, [0, 1], [1, 1], [4, 5])] == told(made)


def test_a_tag_counts_when_its_head_is_written(desk: Desk) -> None:
    desk.begin(G0)
    desk.taken(increment(0, 4, None))
    desk.blocks()
    before = desk.checkpointing.tag_of(G0)
    desk.heads()
    assert (-1, 4) == (before, desk.checkpointing.tag_of(G0))


def test_one_checkpoint_is_under_way_at_a_time(desk: Desk) -> None:
    desk.begin(G0)
    assert [] == desk.begin(G1)


def test_the_next_checkpoint_may_begin_when_one_has_ended(desk: Desk) -> None:
    desk.whole(1, increment(0, 4, None))
    assert [TakeIncrements((G0,))] == desk.begin(G0)


def test_a_checkpoint_of_no_group_does_not_begin(desk: Desk) -> None:
    assert ([], [TakeIncrements((G0,))]) == (desk.begin(), desk.begin(G0))


def test_a_checkpoint_in_which_nothing_is_new_ends_at_once(desk: Desk) -> None:
    desk.begin(G0)
    assert ([], [TakeIncrements((G0,))]) == (desk.taken(), desk.begin(G0))


def test_blocks_of_another_checkpoint_are_a_bug(desk: Desk) -> None:
    desk.begin(G0)
    desk.taken(increment(0, 4, None))
    with pytest.raises(Bug, match="blocks 9 were written"):
        desk.blocks(9)


# --- asked for by the gateway


def test_the_gateway_can_ask_for_a_checkpoint_now(desk: Desk) -> None:
    assert [TakeIncrements((G0,))] == desk.now(G0)


def test_who_asked_hears_of_the_newest_tag_even_if_nothing_is_new(desk: Desk) -> None:
    desk.whole(1, increment(0, 4, None))
    desk.now(G0)
    assert [(GATEWAY, [0], [1], [4])] == told(desk.taken())


def test_who_asked_for_a_group_without_a_checkpoint_hears_that_there_is_none(desk: Desk) -> None:
    desk.now(G0)
    assert [(GATEWAY, [0], [1], [-1])] == told(desk.taken())


def test_what_is_asked_for_while_one_is_under_way_comes_next(desk: Desk) -> None:
    desk.begin(G0)
    asked = desk.now(G1)
    desk.taken(increment(0, 4, None))
    desk.blocks()
    assert ([], [TakeIncrements((G1,))]) == (asked, of(desk.heads()[1], TakeIncrements))


def test_a_group_that_left_meanwhile_is_not_taken(desk: Desk) -> None:
    desk.begin(G0)
    desk.now(G1)
    desk.versions[1] = 0
    desk.checkpointing.leave(G1)
    assert [] == desk.taken()


# --- rule 2: versions that change on the way


@pytest.mark.parametrize("step", ["taken", "blocks", "heads"])
def test_a_group_whose_version_changed_on_the_way_is_left_out(desk: Desk, step: str) -> None:
    desk.begin(G0, G1)
    steps = [
        ("taken", lambda: desk.taken(increment(0, 4, None), increment(1, 4, None))),
        ("blocks", desk.blocks),
        ("heads", lambda: desk.heads()[1]),
    ]
    made: list[Order] = []
    for name, go in steps:
        if name == step:
            desk.versions[0] = 2
            desk.checkpointing.leave(G0)
        made = go()
    assert [(GATEWAY, [1], [1], [4])] == told(made)


def test_a_checkpoint_of_which_nothing_is_left_ends(desk: Desk) -> None:
    desk.begin(G0)
    desk.taken(increment(0, 4, None))
    desk.versions[0] = 2
    assert ([], [TakeIncrements((G1,))]) == (desk.blocks(), desk.begin(G1))


def test_a_group_whose_head_was_refused_is_another_owners(desk: Desk) -> None:
    desk.begin(G0, G1)
    desk.taken(increment(0, 4, None), increment(1, 4, None))
    desk.blocks()
    stale, made = desk.heads(refused=(G0,))
    assert ([G0], [(GATEWAY, [1], [1], [4])], -1) == (stale, told(made), desk.checkpointing.tag_of(G0))


def test_a_refusal_under_an_older_version_says_nothing_about_the_newer_one(desk: Desk) -> None:
    desk.begin(G0)
    desk.taken(increment(0, 4, None))
    desk.blocks()
    desk.versions[0] = 2
    assert [] == desk.heads(refused=(G0,))[0]


def test_a_group_that_was_loaded_has_the_tag_that_it_was_loaded_at(desk: Desk) -> None:
    desk.checkpointing.loaded(G0, RecordNo(7), ())
    assert 7 == desk.checkpointing.tag_of(G0)


def test_a_group_that_left_has_no_tag(desk: Desk) -> None:
    desk.checkpointing.loaded(G0, RecordNo(7), ())
    desk.checkpointing.leave(G0)
    assert -1 == desk.checkpointing.tag_of(G0)


# --- rule 3: trim


def ages(*increments: Increment) -> list[Age]:
    return [Age.of(one) for one in increments]


def aged(desk: Desk) -> Desk:
    """Rows at 10, 20, 30; when the last tag was taken rows below 15 had closed."""
    chain = [increment(0, 1, None, 10), increment(0, 2, 1, 20), increment(0, 3, 2, 30, closed=(15, 15))]
    desk.checkpointing.loaded(G0, RecordNo(3), tuple(ages(*chain)))
    return desk


def trim(desk: Desk, tag: int, *changes: object) -> list[Order]:
    return desk.checkpointing.trim(G0, MapVersion(1), RecordNo(tag), changes)


def test_increments_in_which_nothing_is_alive_are_dropped(desk: Desk) -> None:
    assert [TrimCheckpoint(G0, MapVersion(1), RecordNo(1))] == trim(aged(desk), 3)


def test_increments_are_dropped_once(desk: Desk) -> None:
    trim(aged(desk), 3)
    assert [] == trim(desk, 3)


def test_a_trim_at_a_tag_before_anything_closed_drops_nothing(desk: Desk) -> None:
    assert [] == trim(aged(desk), 2)


def test_a_trim_at_a_tag_that_is_not_known_drops_nothing(desk: Desk) -> None:
    assert [] == trim(aged(desk), 9)


def test_a_trim_of_a_group_that_is_not_here_drops_nothing(desk: Desk) -> None:
    assert [] == trim(desk, 3)


def test_a_trim_uses_the_windows_in_force_at_its_tag(desk: Desk) -> None:
    chain = [increment(0, 1, None, 10), increment(0, 3, 1, 30, closed=(1, 1))]
    desk.checkpointing.loaded(G0, RecordNo(3), tuple(ages(*chain)))
    counted = change_of(2, {"count": 5}, {"count": 5})
    assert ([], [TrimCheckpoint(G0, MapVersion(1), RecordNo(1))]) == (trim(desk, 3), trim(desk, 3, counted))


def test_a_change_in_the_record_of_the_tag_is_not_yet_in_force(desk: Desk) -> None:
    chain = [increment(0, 1, None, 10), increment(0, 3, 1, 30, closed=(1, 1))]
    desk.checkpointing.loaded(G0, RecordNo(3), tuple(ages(*chain)))
    assert [] == trim(desk, 3, change_of(3, {"count": 5}, {"count": 5}))


# --- join.state.dead_before


def dead(tag: int, *increments: Increment) -> int | None:
    return dead_before(ages(*increments), RecordNo(tag), WINDOWS)


def test_an_increment_is_dead_when_all_its_rows_have_closed() -> None:
    assert 1 == dead(2, increment(0, 1, None, 10, 14), increment(0, 2, 1, closed=(15, DEAD)))


def test_an_increment_lives_while_one_of_its_rows_has_not_closed() -> None:
    assert dead(2, increment(0, 1, None, 10, 15), increment(0, 2, 1, closed=(15, DEAD))) is None


def test_an_increment_without_rows_is_dead() -> None:
    assert 1 == dead(2, increment(0, 1, None), increment(0, 2, 1))


def test_the_increment_of_the_tag_itself_stays() -> None:
    assert dead(1, increment(0, 1, None, 10, closed=(99, 99))) is None


def test_increments_are_dropped_oldest_first_without_a_gap() -> None:
    chain = [increment(0, 1, None, 10), increment(0, 2, 1, 99), increment(0, 3, 2, 10)]
    assert 1 == dead(4, *chain, increment(0, 4, 3, closed=(15, 15)))


def test_only_what_had_closed_at_the_tag_counts() -> None:
    chain = [increment(0, 1, None, 10), increment(0, 2, 1), increment(0, 3, 2, closed=(99, 99))]
    assert dead(2, *chain) is None


def test_everything_before_a_whole_state_is_dead() -> None:
    assert 2 == dead(3, increment(0, 1, None, 10), increment(0, 2, 1, 99), increment(0, 3, None, 99))


def test_a_whole_state_after_the_tag_kills_nothing() -> None:
    assert dead(2, increment(0, 1, None, 10), increment(0, 2, 1, 99), increment(0, 3, None, 99)) is None


def test_a_row_in_a_count_window_is_as_old_as_the_rows_after_it() -> None:
    old = Age(RecordNo(1), True, ((10, 7), None), (DEAD, DEAD))
    last = Age(RecordNo(2), False, (None, None), (8, DEAD))
    windows = (CountWindow(3), window("100ns"))
    assert (1, None) == (dead_before([old, last], RecordNo(2), windows), dead_before([old, last], RecordNo(2), WINDOWS))
