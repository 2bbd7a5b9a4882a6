from joinery.elastic.load import Role
from joinery.elastic.pairing import Pair, pair
from joinery.model.ids import WorkerId
from tests.unit.elastic.loads import cluster, group, report

SUP, CON, NEU = Role.SUPPLIER, Role.CONSUMER, Role.NEUTRAL


def pairs(*names: str) -> tuple[Pair, ...]:
    return tuple(Pair(WorkerId(name[0]), WorkerId(name[1])) for name in names)


def test_one_scan_pairs_suppliers_and_consumers_in_their_order() -> None:
    load = cluster(
        (report("a"), CON),
        (report("b", group(1), group(2)), SUP),
        (report("c"), NEU),
        (report("d", group(3), group(4)), SUP),
        (report("e"), CON),
    )
    assert pairs("ba", "de") == pair(load).pairs


def test_there_are_as_many_pairs_as_of_the_rarer_kind() -> None:
    load = cluster((report("a", group(1), group(2)), SUP), (report("b", group(3), group(4)), SUP), (report("c"), CON))
    assert pairs("ac") == pair(load).pairs
    assert ("b is not paired: no consumer is left",) == pair(load).notes


def test_a_supplier_with_a_single_group_leaves_its_consumer_to_the_next() -> None:
    load = cluster((report("a", group(1)), SUP), (report("b"), CON), (report("c", group(2), group(3)), SUP))
    assert pairs("cb") == pair(load).pairs
    assert ("a is not paired: it has 1 group",) == pair(load).notes


def test_groups_on_their_way_do_not_count() -> None:
    load = cluster((report("a", group(1), group(2)), SUP), (report("b"), CON))
    assert () == pair(load, group_counts={WorkerId("a"): 1, WorkerId("b"): 1}).pairs
