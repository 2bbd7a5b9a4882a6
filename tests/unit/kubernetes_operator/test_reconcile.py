"""What is done about an object: pure, level-based, and nothing twice."""

from dataclasses import replace
from typing import Any

import pytest

from joinery.operator.reconcile import Apply, Outcome, Seen, TellChange, WantReplicas, reconcile
from tests.unit.kubernetes_operator.queries import SETTINGS, wanted


def applied(outcome: Outcome) -> dict[str, Apply]:
    return {f"{one.key[0]}/{one.key[1]}": one for one in outcome.actions if isinstance(one, Apply)}


def running(**changed: Any) -> Seen:
    """A query that was created with this spec, all of it applied."""
    first = reconcile(wanted(**changed), Seen(), SETTINGS)
    marks = {one.key: one.mark for one in first.actions if isinstance(one, Apply)}
    return Seen(accepted=first.query, replicas=2, applied=marks)


def of(outcome: Outcome, kind: type) -> list[Any]:
    return [one for one in outcome.actions if isinstance(one, kind)]


def test_a_new_object_gets_all_its_children() -> None:
    made = applied(reconcile(wanted(), Seen(), SETTINGS))
    assert {
        "ConfigMap/orders-query", "Secret/orders-access", "Service/orders-gateway", "Deployment/orders-gateway",
        "Service/orders-collector", "Deployment/orders-collector", "Service/orders-worker", "StatefulSet/orders-worker",
        "PodDisruptionBudget/orders-worker", "NetworkPolicy/orders",
    } == set(made)  # fmt: skip
    assert 2 == made["StatefulSet/orders-worker"].manifest["spec"]["replicas"]


def test_when_everything_is_as_it_should_be_nothing_is_done() -> None:
    assert () == reconcile(wanted(), running(), SETTINGS).actions


def test_a_child_that_somebody_changed_or_took_away_is_applied_again() -> None:
    seen = running()
    left = {key: mark for key, mark in seen.applied.items() if key != ("Service", "orders-gateway")}
    outcome = reconcile(wanted(), replace(seen, applied=left), SETTINGS)
    assert ["Service/orders-gateway"] == list(applied(outcome))


def test_the_number_of_workers_is_what_the_rule_asked_for_and_not_the_specs() -> None:
    """Else a spec under version control would fight the β-rule."""
    outcome = reconcile(wanted(), replace(running(), replicas=5), SETTINGS)
    assert 5 == applied(outcome)["StatefulSet/orders-worker"].manifest["spec"]["replicas"]


def test_a_person_who_scales_is_obeyed_within_the_bounds() -> None:
    """What is sent to /scale passes no check of ours."""
    outcome = reconcile(wanted(replicas=70), running(), SETTINGS)
    assert [WantReplicas(8)] == of(outcome, WantReplicas)
    assert outcome.query is not None
    again = reconcile(wanted(replicas=70), replace(running(), accepted=outcome.query), SETTINGS)
    assert [] == of(again, WantReplicas)


def test_a_change_is_told_to_the_gateway_and_not_taken_before_it_has_answered() -> None:
    outcome = reconcile(wanted(streams__0__window="20m"), running(), SETTINGS)
    told = of(outcome, TellChange)
    assert ["20m"] == [one.live.to_dict()["streams"][0]["window"] for one in told]
    assert outcome.query is not None
    assert "10m" == outcome.query.spec.to_dict()["streams"][0]["window"]
    assert {} == applied(outcome)


def test_a_change_that_was_taken_is_in_the_config_map_and_rolls_no_pod() -> None:
    seen = running()
    changed = wanted(streams__0__window="20m")
    outcome = reconcile(changed, replace(seen, accepted=changed.query()), SETTINGS)
    assert ["ConfigMap/orders-query"] == list(applied(outcome))


def test_another_memory_of_the_workers_is_another_limit_of_their_pods_so_these_alone_are_rolled() -> None:
    seen, changed = running(), wanted(worker__memory="1Gi")
    outcome = reconcile(changed, replace(seen, accepted=changed.query()), SETTINGS)
    assert ["ConfigMap/orders-query", "StatefulSet/orders-worker"] == list(applied(outcome))


def test_what_a_process_reads_at_its_start_rolls_the_pods_and_is_not_told() -> None:
    outcome = reconcile(wanted(worker__speed=1000.0), running(), SETTINGS)
    assert [] == of(outcome, TellChange)
    assert {
        "ConfigMap/orders-query",
        "Deployment/orders-gateway",
        "Deployment/orders-collector",
        "StatefulSet/orders-worker",
    } == set(applied(outcome))


@pytest.mark.parametrize(
    ("changed", "field"), [({"join__type": "left"}, "spec.join.type"), ({"partitions": 30}, "spec.partitions")]
)
def test_what_cannot_change_stalls_the_object_and_the_query_goes_on(changed: dict[str, Any], field: str) -> None:
    outcome = reconcile(wanted(**changed), running(), SETTINGS)
    assert outcome.stalled is not None
    assert field in outcome.stalled
    assert () == outcome.actions
    assert outcome.query == running().accepted


def test_an_object_that_cannot_be_read_says_why_and_starts_nothing() -> None:
    outcome = reconcile(wanted(join__on=["nothing_of_this_name"]), Seen(), SETTINGS)
    assert outcome.stalled is not None
    assert "spec.join.on[0]" in outcome.stalled
    assert (None, ()) == (outcome.query, outcome.actions)


def test_a_paused_object_is_left_as_it_is() -> None:
    outcome = reconcile(wanted({"joinery.dev/paused": "true"}, partitions=7, replicas=3), running(), SETTINGS)
    assert ((), None) == (outcome.actions, outcome.stalled)


def test_a_query_that_has_ended_has_no_pods() -> None:
    made = applied(reconcile(wanted(), replace(running(), has_ended=True), SETTINGS))
    assert {"StatefulSet/orders-worker": 0, "Deployment/orders-gateway": 0, "Deployment/orders-collector": 0} == {
        name: one.manifest["spec"]["replicas"] for name, one in made.items()
    }
