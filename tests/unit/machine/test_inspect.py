"""A machine's state as plain data: everything that JSON can hold, nothing that it cannot."""

import json
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pytest

from joinery.join.plan import JoinPlan
from joinery.machine import facts, messages, orders
from joinery.machine.collector import CollectorMachine
from joinery.machine.gateway import GatewayMachine
from joinery.machine.inspect import plain
from joinery.machine.intake import first_head
from joinery.machine.join_module import JoinModule
from joinery.machine.operator import OperatorMachine
from joinery.machine.producer import ProducerMachine
from joinery.machine.retention import Retention
from joinery.machine.worker import WorkerMachine
from joinery.model.ids import COLLECTOR, GATEWAY, GroupId, MapVersion, Peer, ProducerId, RecordNo, Term, WorkerId
from tests.unit.machine.building import (
    GROUPS,
    exchange,
    hello,
    holdings,
    key_in,
    plan_of,
    push,
    results,
    rows,
    spec_of,
    tuples,
)
from tests.unit.machine.result_parts import part, vector


class Colour(StrEnum):
    RED = "red"


@dataclass
class Pair:
    left: object
    right: object = 2


# --- values


@pytest.mark.parametrize("value", [None, True, 3, 2.5, "text"])
def test_plain_values_stay_as_they_are(value: object) -> None:
    assert value == plain(value)


def test_an_enum_is_its_value() -> None:
    assert "red" == json.loads(json.dumps(plain(Colour.RED)))


def test_arrays_are_lists() -> None:
    assert ([1, 2], 3) == (plain(np.array([1, 2])), plain(np.int64(3)))


def test_rows_are_shown_row_by_row() -> None:
    assert [{"k": 1, "ts": 2}] == plain(rows((1, 2)))


def test_a_dataclass_is_a_mapping_of_its_fields() -> None:
    assert {"left": [1], "right": 2} == plain(Pair((1,)))


def test_keys_become_texts() -> None:
    assert {"a": 1, "0/p": 2, "7": 3} == plain({"a": 1, (0, "p"): 2, 7: 3})


def test_a_set_is_in_order() -> None:
    assert ["a", "b", "c"] == plain({"c", "a", "b"})


def test_a_set_of_numbers_is_in_order_whatever_their_types() -> None:
    assert plain({1, 2}) == plain(frozenset({2, 1}))


@pytest.mark.parametrize(("value", "name"), [(spec_of(), "<JoinQuerySpec>"), (plan_of(), "<JoinPlan>")])
def test_settings_are_left_out(value: object, name: str) -> None:
    assert name == plain(value)


def test_what_stands_in_itself_is_named_where_it_comes_again() -> None:
    loop: list[object] = [1]
    loop.append(loop)
    assert [1, "<list>"] == plain(loop)


def test_what_stands_twice_beside_itself_is_shown_twice() -> None:
    one = [1]
    assert [[1], [1]] == plain([one, one])


def test_a_part_of_a_machine_shows_its_attributes() -> None:
    kept = Retention(2, 100)
    kept.begin(GroupId(1), MapVersion(3), RecordNo(-1))
    kept.keep(results((1,), -1, 4, part([(7, 1, 0)])), may_drop=True)
    shown = plain(kept)
    assert (8, [0, 3], [4]) == (shown["nbytes"], shown["_versions"], [one["upto"] for one in shown["_kept"]])


def test_stored_windows_are_summed_up() -> None:
    module = JoinModule(plan_of())
    list(module.perform(orders.RestoreGroup(GroupId(0), MapVersion(1), (), None, ())))
    assert "<WindowJoin>" == plain(module)["_lanes"]["0"]["join"]


# --- whole machines


def gateway() -> GatewayMachine:
    """With a worker, a collector and a producer that has recorded rows, and more that wait."""
    machine = GatewayMachine(spec_of())
    peer, producer = Peer("worker-0"), Peer("producer")
    told: list[facts.Fact] = [
        facts.Started("one"),
        facts.GatewayOpened(Term(1), first_head(machine.spec), (), None),
        facts.Received(peer, hello()),
        facts.MapWritten(MapVersion(1)),
        facts.Received(Peer("c"), messages.CollectorHello(Term(1))),
        facts.Received(peer, messages.Holding(holdings(*range(GROUPS)))),
        facts.Received(producer, messages.Open(0, ProducerId("p"))),
        facts.Appended(RecordNo(0)),
        facts.Received(producer, push(1, 0, (1, 1))),
        facts.Received(producer, push(1, 1, (2, 2))),
    ]
    for fact in told:
        machine.handle(fact, 0)
    return machine


def worker() -> WorkerMachine:
    """With a group, kept results and a batch in its buffer."""
    machine, module = WorkerMachine(spec_of(), WorkerId("worker-0")), JoinModule(JoinPlan.of(spec_of()))
    batches = [tuples(plan_of(), stream, (key_in(0), 1)) for stream in range(2)]
    taken = vector(*[-1] * GROUPS)
    assign = messages.Assign(Term(1), vector(0), vector(1), vector(-1), vector(-1), ())
    told: list[facts.Fact] = [
        facts.Started("one"),
        facts.Connected(GATEWAY),
        facts.Connected(COLLECTOR),
        facts.Received(COLLECTOR, messages.Resume(Term(1), taken)),
        facts.Received(GATEWAY, assign),
        facts.GroupRestored(GroupId(0), MapVersion(1), RecordNo(-1)),
    ]
    for fact in told:
        machine.handle(fact, 0)
    list(module.perform(orders.RestoreGroup(GroupId(0), MapVersion(1), (), None, ())))
    (join,) = machine.handle(facts.Received(GATEWAY, exchange([0], -1, 0, *batches)), 0)
    assert isinstance(join, orders.JoinBatch)
    for fact in module.perform(join):
        machine.handle(fact, 0)
    machine.handle(facts.Received(GATEWAY, exchange([0], 0, 1)), 0)
    return machine


def collector() -> CollectorMachine:
    """With results that are being staged."""
    machine = CollectorMachine(spec_of())
    told: list[facts.Fact] = [
        facts.Started("one"),
        facts.CollectorOpened(Term(1), None),
        facts.SinksReady(),
        facts.Connected(GATEWAY),
        facts.Received(GATEWAY, messages.Owners(Term(1), vector(*[1] * GROUPS))),
        facts.Connected(Peer("worker-0")),
        facts.Received(Peer("worker-0"), hello()),
        facts.Received(Peer("worker-0"), results((0,), -1, 4, part([(7, 0, 0)]))),
    ]
    for fact in told:
        machine.handle(fact, 0)
    return machine


def producer() -> ProducerMachine:
    machine = ProducerMachine(0, ProducerId("p"))
    machine.handle(facts.Connected(GATEWAY), 0)
    machine.handle(facts.Offered(rows((1, 1))), 0)
    return machine


MACHINES = [gateway, worker, collector, producer, lambda: OperatorMachine(spec_of())]


@pytest.mark.parametrize("make", MACHINES)
def test_a_running_machines_whole_state_goes_through_json(make: object) -> None:
    machine = make()  # type: ignore[operator]
    shown = plain(machine)
    assert (set(vars(machine)), shown) == (set(shown), json.loads(json.dumps(shown)))


@pytest.mark.parametrize("make", MACHINES)
def test_two_equal_runs_show_the_same_state(make: object) -> None:
    assert json.dumps(plain(make())) == json.dumps(plain(make()))  # type: ignore[operator]


def test_a_gateways_state_shows_what_waits_and_what_is_recorded() -> None:
    shown = plain(gateway())
    waiting = shown["intake"]["sessions"]["waiting"]
    assert (1, [1], "worker-0") == (
        shown["intake"]["head"]["next_record"],
        [one["push"]["sequence"] for one in waiting],
        shown["_peers"]["worker-0"],
    )


def test_a_workers_state_shows_its_groups_and_its_buffer() -> None:
    shown = plain(worker())
    assert ([True, False, False, False], [1, -1, -1, -1], 1) == (
        shown["here"],
        shown["received"],
        shown["_joining"]["exchange"]["upto"],
    )
