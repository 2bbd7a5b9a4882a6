"""What every checkpoint store keeps (`ports.CheckpointStore`): heads, claims, fencing by map version, trims."""

from collections.abc import Callable

import pytest

from joinery.machine.ports import CheckpointStore, Stale
from joinery.model.errors import Bug
from joinery.model.ids import GroupId, MapVersion, RecordNo
from tests.contract.conftest import Shelf
from tests.contract.samples import increment, increment_seen

Connect = Callable[[], CheckpointStore]
G, H = GroupId(3), GroupId(4)


def write(
    store: CheckpointStore, since: int, tag: int, *values: int, group: int = G, version: int = 1, instance: str = "w/1"
) -> tuple[GroupId, ...]:
    """An increment with its head; the groups whose head was refused."""
    store.write_blocks(instance, [increment(group, since, tag, *values)])
    return heads(store, since, tag, group=group, version=version, instance=instance)


def heads(
    store: CheckpointStore, since: int, tag: int, *, group: int = G, version: int = 1, instance: str = "w/1"
) -> tuple[GroupId, ...]:
    at = GroupId(group)
    return store.write_heads(instance, {at: MapVersion(version)}, {at: (RecordNo(since), RecordNo(tag))})


def known(*tags: int) -> list[RecordNo]:
    return [RecordNo(tag) for tag in tags]


def tags(store: CheckpointStore, group: int = G) -> tuple[int, ...]:
    return store.read(GroupId(group), None, ()).tags


def contents(store: CheckpointStore, group: int = G) -> list[object]:
    return [increment_seen(one) for one in store.read(GroupId(group), None, ()).increments]


def test_a_group_that_was_never_written_has_an_empty_chain(connect_checkpoints: Connect) -> None:
    chain = connect_checkpoints().read(G, MapVersion(1), ())
    assert ((), (), None) == (chain.tags, chain.increments, chain.base)


def test_blocks_without_a_head_do_not_count(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    store.write_blocks("w/1", [increment(G, -1, 5, 1)])
    assert () == tags(store)


def test_a_chain_comes_back_in_the_order_of_its_tags(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1, 2)
    write(store, 5, 7, 3)
    write(store, 7, 30)
    chain = connect_checkpoints().read(G, None, ())
    wanted = [increment(G, -1, 5, 1, 2), increment(G, 5, 7, 3), increment(G, 7, 30)]
    assert (5, 7, 30) == chain.tags
    assert list(map(increment_seen, wanted)) == list(map(increment_seen, chain.increments))
    assert None is chain.base


def test_known_increments_are_left_out_but_named(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    write(store, 7, 9, 3)
    chain = store.read(G, None, known(5, 7, 99))
    assert ((5, 7, 9), [9]) == (chain.tags, [one.tag for one in chain.increments])


def test_groups_are_written_together_and_kept_apart(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    store.write_blocks("w/1", [increment(G, -1, 5, 1), increment(H, -1, 6, 2)])
    of = {G: (RecordNo(-1), RecordNo(5)), H: (RecordNo(-1), RecordNo(6))}
    assert () == store.write_heads("w/1", {G: MapVersion(1), H: MapVersion(2)}, of)
    assert ((5,), (6,)) == (tags(store, G), tags(store, H))


def test_a_repeated_write_has_no_effect(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1)
    for _ in range(2):
        write(store, 5, 7, 2)
    assert [increment_seen(increment(G, -1, 5, 1)), increment_seen(increment(G, 5, 7, 2))] == contents(store)


def test_a_repeated_whole_state_has_no_effect(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    for _ in range(2):
        write(store, -1, 5, 1)
    assert [increment_seen(increment(G, -1, 5, 1))] == contents(store)


def test_what_stands_before_a_whole_state_stays_until_it_is_trimmed(connect_checkpoints: Connect) -> None:
    #  5 -> 7, then the whole state at 9: who is committed at 8 is still loaded at 7
    store = connect_checkpoints()
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    write(store, -1, 9, 1, 2, 3)
    assert (5, 7, 9) == store.read(G, None, ()).tags
    store.trim(G, MapVersion(1), RecordNo(7))
    assert [increment_seen(increment(G, -1, 9, 1, 2, 3))] == contents(store)
    write(store, 9, 11, 4)
    assert (9, 11) == store.read(G, None, ()).tags


def test_a_whole_state_drops_what_a_former_owner_wrote_at_its_tag_and_after(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    write(store, 7, 9, 3)
    write(store, -1, 7, 4, version=2, instance="w/2")
    assert [increment_seen(increment(G, -1, 5, 1)), increment_seen(increment(G, -1, 7, 4))] == contents(store)


def test_a_new_owner_s_increment_drops_what_the_former_one_wrote_after_it(connect_checkpoints: Connect) -> None:
    #  former owner: 5 -> 7 -> 9; the new one starts at 5 and writes (5, 8]
    store = connect_checkpoints()
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    write(store, 7, 9, 3)
    store.read(G, MapVersion(2), ())
    write(store, 5, 8, 4, version=2, instance="w/2")
    assert [increment_seen(increment(G, -1, 5, 1)), increment_seen(increment(G, 5, 8, 4))] == contents(store)


def test_the_same_tag_of_two_instances_is_two_increments(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1)
    store.write_blocks("w/2", [increment(G, -1, 5, 2)])
    assert [increment_seen(increment(G, -1, 5, 1))] == contents(store)
    store.read(G, MapVersion(2), ())
    heads(store, -1, 5, version=2, instance="w/2")
    assert [increment_seen(increment(G, -1, 5, 2))] == contents(store)


def test_the_same_tag_since_another_one_is_another_increment(connect_checkpoints: Connect) -> None:
    #  the head names (5, 7]; an instance that writes the whole state at 7 and dies before its head changes nothing
    store = connect_checkpoints()
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    store.write_blocks("w/1", [increment(G, -1, 7, 1, 2)])
    assert [increment_seen(increment(G, -1, 5, 1)), increment_seen(increment(G, 5, 7, 2))] == contents(store)


def test_a_claim_fences_the_former_owner(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1)
    connect_checkpoints().read(G, MapVersion(2), ())
    assert (G,) == write(store, 5, 7, 2)
    assert (5,) == tags(store)


def test_a_refused_group_does_not_hold_up_the_others(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    store.read(G, MapVersion(2), ())
    store.write_blocks("w/1", [increment(G, -1, 5, 1), increment(H, -1, 5, 2)])
    of = {G: (RecordNo(-1), RecordNo(5)), H: (RecordNo(-1), RecordNo(5))}
    assert (G,) == store.write_heads("w/1", {G: MapVersion(1), H: MapVersion(1)}, of)
    assert ((), (5,)) == (tags(store, G), tags(store, H))


def test_a_claim_below_a_newer_one_is_stale(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    store.read(G, MapVersion(3), ())
    with pytest.raises(Stale) as refused:
        store.read(G, MapVersion(2), ())
    assert (3, 2) == (refused.value.held, refused.value.own)
    assert () == write(store, -1, 5, 1, version=3)


def test_a_claim_can_be_repeated(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1, version=3)
    assert (5,) == store.read(G, MapVersion(3), ()).tags
    assert (5,) == store.read(G, MapVersion(3), ()).tags


def test_a_claim_of_one_group_is_no_claim_of_another(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    store.read(G, MapVersion(9), ())
    assert () == write(store, -1, 5, 1, group=H)


def test_a_preload_claims_nothing(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1, version=4)
    store.read(G, None, ())
    assert () == write(store, 5, 7, 2, version=4)


def test_a_head_of_a_newer_version_is_a_claim(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1, version=4)
    assert (G,) == write(store, 5, 7, 2, version=3)
    with pytest.raises(Stale):
        store.read(G, MapVersion(3), ())


def test_an_increment_that_continues_nothing_is_refused_loudly(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1)
    with pytest.raises(Bug, match="6"):
        write(store, 6, 7, 2)
    assert (5,) == tags(store)


def test_trimmed_increments_are_gone_and_the_base_says_so(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    write(store, 7, 9, 3)
    store.trim(G, MapVersion(1), RecordNo(7))
    chain = store.read(G, None, ())
    assert ((9,), [9], 7) == (chain.tags, [one.tag for one in chain.increments], chain.base)


def test_a_trimmed_chain_grows_on(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    store.trim(G, MapVersion(1), RecordNo(5))
    write(store, 7, 9, 3)
    chain = store.read(G, None, ())
    assert ((7, 9), 5) == (chain.tags, chain.base)


def test_a_new_owner_can_go_on_from_the_base(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    store.trim(G, MapVersion(1), RecordNo(5))
    write(store, 5, 6, 3, version=2, instance="w/2")
    chain = store.read(G, None, ())
    assert ((6,), 5) == (chain.tags, chain.base)


def test_a_trim_between_tags_makes_the_last_one_that_went_the_base(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1)
    write(store, 5, 9, 2)
    store.trim(G, MapVersion(1), RecordNo(7))
    chain = store.read(G, None, ())
    assert ((9,), 5) == (chain.tags, chain.base)


def test_a_repeated_or_lower_trim_has_no_effect(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    write(store, 7, 9, 3)
    for base in (7, 7, 5):
        store.trim(G, MapVersion(1), RecordNo(base))
    chain = store.read(G, None, ())
    assert ((9,), 7) == (chain.tags, chain.base)


def test_a_former_owner_trims_nothing(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    store.read(G, MapVersion(2), ())
    store.trim(G, MapVersion(1), RecordNo(5))
    chain = store.read(G, None, ())
    assert ((5, 7), None) == (chain.tags, chain.base)


def test_a_trim_of_one_group_leaves_the_others(connect_checkpoints: Connect) -> None:
    store = connect_checkpoints()
    write(store, -1, 5, 1)
    write(store, -1, 5, 1, group=H)
    write(store, 5, 7, 1)
    store.trim(G, MapVersion(1), RecordNo(5))
    assert ((7,), (5,)) == (tags(store, G), tags(store, H))


# --- what is not what was written


def test_a_damaged_increment_is_named_by_its_key_and_the_others_are_read(shelf: Shelf) -> None:
    store = shelf.store
    write(store, -1, 5, 1)
    write(store, 5, 7, 2, 3)
    write(store, 7, 9, 4)
    key = shelf.harm(G, 7)
    chain = store.read(G, MapVersion(2), ())
    [damage] = chain.damaged
    assert ((5, 7, 9), [5, 9]) == (chain.tags, [one.tag for one in chain.increments])
    assert (7, True, 2) == (damage.tag, damage.key.startswith(key), damage.rows)
    assert "checksum" in damage.reason


def test_a_damaged_increment_that_is_known_is_not_looked_at(shelf: Shelf) -> None:
    write(shelf.store, -1, 5, 1)
    write(shelf.store, 5, 7, 2)
    shelf.harm(G, 5)
    assert () == shelf.store.read(G, None, known(5)).damaged


def test_the_damage_of_one_group_is_none_of_another(shelf: Shelf) -> None:
    write(shelf.store, -1, 5, 1)
    write(shelf.store, -1, 5, 1, group=H)
    shelf.harm(G, 5)
    assert ((), 1) == (shelf.store.read(H, None, ()).damaged, len(shelf.store.read(G, None, ()).damaged))


def test_a_chain_goes_on_behind_a_damaged_increment_and_a_whole_state_mends_it(shelf: Shelf) -> None:
    store = shelf.store
    write(store, -1, 5, 1)
    shelf.harm(G, 5)
    assert () == write(store, 5, 7, 2)
    assert () == write(store, -1, 9, 1, 2, 3)
    assert [5] == [one.tag for one in store.read(G, None, ()).damaged]
    store.trim(G, MapVersion(1), RecordNo(7))
    chain = store.read(G, None, ())
    assert ((9,), (), [9]) == (chain.tags, chain.damaged, [one.tag for one in chain.increments])


def test_a_whole_state_at_the_tag_of_a_damaged_increment_replaces_it(shelf: Shelf) -> None:
    store = shelf.store
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    shelf.harm(G, 7)
    assert () == write(store, -1, 7, 1, 2)
    chain = store.read(G, None, ())
    assert ((5, 7), (), [None, None]) == (chain.tags, chain.damaged, [one.since for one in chain.increments])


def test_a_new_owner_that_begins_before_the_damage_drops_it(shelf: Shelf) -> None:
    store = shelf.store
    write(store, -1, 5, 1)
    write(store, 5, 7, 2)
    shelf.harm(G, 7)
    store.read(G, MapVersion(2), ())
    assert () == write(store, 5, 8, 3, version=2, instance="w/2")
    chain = store.read(G, None, ())
    assert ((5, 8), ()) == (chain.tags, chain.damaged)
