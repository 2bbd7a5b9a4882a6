"""The operator, fact by fact: one decision at a time, drained before fewer workers are asked for."""

import pytest

from joinery.elastic.beta import Grow, Keep, Shrink
from joinery.elastic.guarded import SECOND, replay
from joinery.elastic.load import ClusterLoad
from joinery.machine import facts, messages, orders
from joinery.machine.facts import Fact
from joinery.machine.operator import HISTORY, OperatorMachine
from joinery.machine.orders import Order
from joinery.model.ids import GATEWAY, Peer, Term, WorkerId
from joinery.model.spec import JoinQuerySpec
from tests.unit.elastic.loads import counts

OVERLOADED = counts(2, 0, degree=2)
IDLE = counts(0, 3, u=0.1, degree=3)


class Driver:
    """Tells a machine facts, and checks it after each one."""

    def __init__(self, replicas: int = 2, **scaling: object) -> None:
        streams = [{"name": name, "schema": {"k": "int64"}, "window": "10s"} for name in "ab"]
        spec = {"streams": streams, "join": {"on": ["k"]}, "replicas": replicas, "scaling": scaling}
        self.machine = OperatorMachine(JoinQuerySpec.parse(spec))

    def tell(self, fact: Fact, now_s: int = 0) -> list[Order]:
        made = self.machine.handle(fact, now_s * SECOND)
        self.machine.check_invariants()
        return made

    def report(self, load: ClusterLoad, now_s: int = 0) -> list[Order]:
        return self.tell(facts.Received(GATEWAY, messages.ClusterReport(load)), now_s)

    def empty(self, *workers: str) -> list[Order]:
        return self.tell(facts.Received(GATEWAY, messages.Empty(tuple(WorkerId(worker) for worker in workers))))


def drain(*workers: str) -> orders.Send:
    return orders.Send(GATEWAY, messages.Drain(tuple(WorkerId(worker) for worker in workers)))


def replicas(made: list[Order]) -> list[int]:
    return [one.replicas for one in made if isinstance(one, orders.SetReplicas)]


# --- what it begins with


@pytest.mark.parametrize(("asked", "begun"), [(99, 8), (1, 3), (5, 5)])
def test_nobody_begins_with_workers_outside_the_bounds(asked: int, begun: int) -> None:
    assert begun == Driver(asked, min=3, max=8).machine.replicas


# --- the bare rule


def test_an_overloaded_cluster_grows() -> None:
    assert [3] == replicas(Driver(rule="paper").report(OVERLOADED))


def test_the_degree_is_what_was_asked_for_and_not_who_is_ready() -> None:
    driver = Driver(rule="paper")
    driver.report(OVERLOADED)
    assert [4] == replicas(driver.report(OVERLOADED))


def test_an_idle_cluster_is_drained_from_the_highest_ordinal_first() -> None:
    assert [drain("worker-2")] == Driver(3, rule="paper").report(IDLE)


def test_a_greater_step_drains_several_workers_at_once() -> None:
    assert [drain("worker-1", "worker-2")] == Driver(3, rule="paper", step=2).report(IDLE)


def test_fewer_workers_are_asked_for_when_the_drained_ones_are_empty() -> None:
    driver = Driver(3, rule="paper")
    driver.report(IDLE)
    assert [2] == replicas(driver.empty("worker-2"))


def test_every_drained_worker_must_be_empty() -> None:
    driver = Driver(3, rule="paper", step=2)
    driver.report(IDLE)
    assert [] == driver.empty("worker-2")
    assert [1] == replicas(driver.empty("worker-1"))


def test_while_a_drain_is_under_way_reports_decide_nothing() -> None:
    driver = Driver(3, rule="paper")
    driver.report(IDLE)
    assert [] == driver.report(OVERLOADED) + driver.report(IDLE)
    assert 1 == len(driver.machine.history)


def test_after_a_drain_the_next_report_decides_again() -> None:
    driver = Driver(3, rule="paper")
    driver.report(IDLE)
    driver.empty("worker-2")
    assert [3] == replicas(driver.report(OVERLOADED))


def test_emptiness_that_nobody_asked_for_changes_nothing() -> None:
    assert [] == Driver(3, rule="paper").empty("worker-2")


def test_a_drain_is_told_again_on_a_new_connection() -> None:
    driver = Driver(3, rule="paper")
    driver.report(IDLE)
    assert [drain("worker-2")] == driver.tell(facts.Connected(GATEWAY))


def test_a_new_connection_without_a_drain_tells_nothing() -> None:
    assert [] == Driver().tell(facts.Connected(GATEWAY))


def test_the_last_worker_stays() -> None:
    driver = Driver(1, rule="paper")
    assert [] == driver.report(counts(0, 1, u=0.0))
    assert isinstance(driver.machine.last_decision, Keep)


def test_a_report_of_nobody_decides_nothing() -> None:
    driver = Driver(3, rule="paper")
    assert [] == driver.report(counts(0, 0, degree=3))
    assert driver.machine.last_decision is None


# --- the guarded rule


def test_the_guarded_rule_grows_only_after_its_time() -> None:
    driver = Driver(rule="guarded")
    assert [[], [], [3]] == [replicas(driver.report(OVERLOADED, now_s)) for now_s in (0, 9, 10)]


def test_the_guarded_rule_waits_for_workers_that_are_not_ready() -> None:
    driver = Driver(rule="guarded")
    driver.report(OVERLOADED)
    driver.report(OVERLOADED, 10)
    assert [[], []] == [replicas(driver.report(OVERLOADED, now_s)) for now_s in (11, 60)]
    assert ("workers not ready",) == getattr(driver.machine.last_decision, "blocked_by", None)


def test_the_guarded_rule_shrinks_only_after_its_time() -> None:
    driver = Driver(3, rule="guarded")
    assert [[], [], [drain("worker-2")]] == [driver.report(IDLE, now_s) for now_s in (0, 59, 60)]


# --- what is kept, what is left alone


def test_the_last_decision_can_be_made_again_from_its_inputs() -> None:
    driver = Driver(rule="guarded", scaleUp={"stabilization": "0s"})
    driver.report(OVERLOADED)
    decision = driver.machine.last_decision
    assert isinstance(decision, Grow)
    assert decision == replay(decision)


def test_the_history_holds_decisions_in_order_and_is_bounded() -> None:
    driver = Driver(3, rule="paper", min=3)
    for _ in range(HISTORY + 5):
        driver.report(IDLE)
    assert HISTORY == len(driver.machine.history)


def test_a_shrink_is_kept_as_the_last_decision() -> None:
    driver = Driver(3, rule="paper")
    driver.report(IDLE)
    assert isinstance(driver.machine.last_decision, Shrink)


@pytest.mark.parametrize("load", [OVERLOADED, IDLE])
def test_with_manual_scaling_nothing_is_decided(load: ClusterLoad) -> None:
    driver = Driver(3, mode="Manual", rule="paper")
    assert [] == driver.report(load)
    assert driver.machine.last_decision is None


def test_reports_of_others_than_the_gateway_are_ignored() -> None:
    driver = Driver(rule="paper")
    assert [] == driver.tell(facts.Received(Peer("worker-0"), messages.ClusterReport(OVERLOADED)))


def test_the_end_of_the_query_stops_the_operator() -> None:
    made = Driver().tell(facts.Received(GATEWAY, messages.Finished()))
    assert [orders.Stop("the query has ended")] == made


# --- a person


def wanted(replicas: int, until_s: int = 0) -> facts.ReplicasWanted:
    return facts.ReplicasWanted(replicas, until_s * SECOND, "a person asked")


def test_a_person_who_wants_more_gets_them_at_once() -> None:
    assert [4] == replicas(Driver(1).tell(wanted(4)))


def test_a_person_who_wants_fewer_gets_them_when_they_are_empty() -> None:
    driver = Driver(3)
    assert [drain("worker-1", "worker-2")] == driver.tell(wanted(1))
    assert [1] == replicas(driver.empty("worker-1", "worker-2"))


def test_until_the_time_is_over_reports_decide_nothing() -> None:
    driver = Driver(2, rule="paper")
    driver.tell(wanted(3, until_s=10))
    assert [] == driver.report(OVERLOADED, 9)
    assert [4] == replicas(driver.report(OVERLOADED, 11))


def test_a_wish_during_a_drain_waits_for_its_end() -> None:
    driver = Driver(3)
    driver.tell(wanted(2))
    assert [] == driver.tell(wanted(4))
    assert [2, 4] == replicas(driver.empty("worker-2"))


def test_in_a_cluster_the_gateways_spec_does_not_say_how_many_there_should_be() -> None:
    spec = Driver(2).machine.spec
    machine = OperatorMachine(spec, replicas=3)
    told = messages.SpecNow(Term(1), spec.model_copy(update={"replicas": 7}))
    assert [] == machine.handle(facts.Received(GATEWAY, told), 0)
