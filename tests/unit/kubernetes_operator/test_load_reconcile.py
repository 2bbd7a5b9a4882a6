"""What is done about a LoadTest: pure, once, and exact in what it tells."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import yaml

from joinery.model.spec import JoinQuery
from joinery.operator.events import Reason
from joinery.operator.load_reconcile import Driver, LoadOutcome, LoadSeen, reconcile_load
from joinery.operator.reconcile import Wanted
from tests.unit.kubernetes_operator.queries import SETTINGS, SPEC

SPARK = replace(SETTINGS, spark_image="spark:test", spark_role="ClusterRole/x-spark-driver")
NOW = 1_800_000_000_000_000_000
LOAD: dict[str, Any] = {
    "query": "orders", "profile": {"constant": {"rate": 1000}}, "duration": "10s", "producers": 3, "executors": 2,
}  # fmt: skip
READY = {"conditions": [{"type": "Ready", "status": "True"}], "readyReplicas": 2, "phase": "Running"}


def wanted(**changed: Any) -> Wanted:
    spec = {**copy.deepcopy(LOAD), **changed}
    return Wanted(namespace="shop", name="evening", uid="0123456789ab", generation=1, spec=spec)


def query() -> JoinQuery:
    metadata = {"name": "orders", "namespace": "shop"}
    return JoinQuery.parse(
        {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": metadata, "spec": copy.deepcopy(SPEC)}
    )


def seen(**changed: Any) -> LoadSeen:
    return LoadSeen(**{"query": query(), "query_status": READY, **changed})


def decided(load: Wanted | None = None, settings: Any = SPARK, **changed: Any) -> LoadOutcome:
    return reconcile_load(load or wanted(), seen(**changed), settings, NOW)


def condition(outcome: LoadOutcome, kind: str) -> tuple[str, str]:
    (found,) = [one for one in outcome.status["conditions"] if one["type"] == kind]
    return found["status"], found["reason"]


def test_a_load_waits_for_its_query_and_says_so_once() -> None:
    for changed in ({"query": None, "query_status": {}}, {"query_status": {}}):
        outcome = decided(**changed)
        assert ("Pending", ()) == (outcome.status["phase"], outcome.applies)
        assert [Reason.LOAD_WAITING] == [one.reason for one in outcome.said]
        assert () == decided(**changed, status=outcome.status).said


def test_a_load_whose_query_is_ready_gets_all_its_objects_the_job_last() -> None:
    outcome = decided()
    assert ["ConfigMap", "ServiceAccount", "RoleBinding", "Job"] == [one.key[0] for one in outcome.applies]
    for one in outcome.applies:
        (owner,) = one.manifest["metadata"]["ownerReferences"]
        assert ("LoadTest", "evening", "0123456789ab") == (owner["kind"], owner["name"], owner["uid"])
    assert ("Starting", 6) == (outcome.status["phase"], outcome.status["producers"])
    assert [Reason.LOAD_STARTED] == [one.reason for one in outcome.said]


def test_there_is_a_slot_for_every_producer_and_no_second_try() -> None:
    config, _, binding, job = [one.manifest for one in decided().applies]
    conf = dict(line.split(" ", 1) for line in config["data"]["spark.conf"].splitlines())
    slots = int(conf["spark.executor.instances"]) * int(conf["spark.executor.cores"])
    assert ("2", "3", 6) == (conf["spark.executor.instances"], conf["spark.executor.cores"], slots)
    assert ("1", "1", 0) == (
        conf["spark.task.maxFailures"], conf["spark.stage.maxConsecutiveAttempts"], job["spec"]["backoffLimit"],
    )  # fmt: skip
    assert {"kind": "ClusterRole", "name": "x-spark-driver", "apiGroup": "rbac.authorization.k8s.io"} == binding[
        "roleRef"
    ]
    assert "--master k8s://https://kubernetes.default.svc" in " ".join(
        job["spec"]["template"]["spec"]["containers"][0]["args"]
    )


def test_more_executors_than_producers_are_not_started() -> None:
    config = decided(wanted(producers=1, executors=9)).applies[0].manifest
    assert "spark.executor.instances 2\n" in config["data"]["spark.conf"]


def test_the_pods_are_hardened_and_only_the_driver_has_a_token_of_the_api() -> None:
    config, *_, job = [one.manifest for one in decided(settings=replace(SPARK, tls=True)).applies]
    driver, executor = job["spec"]["template"]["spec"], yaml.safe_load(config["data"]["executor.yaml"])["spec"]
    assert (True, False) == (driver["automountServiceAccountToken"], executor["automountServiceAccountToken"])
    for pod in (driver, executor):
        assert (True, 10001) == (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"])
        (container,) = pod["containers"]
        held = container["securityContext"]
        assert (True, False) == (held["readOnlyRootFilesystem"], held["allowPrivilegeEscalation"])
        assert {"name": "tls", "mountPath": "/etc/joinery-tls", "readOnly": True} in container["volumeMounts"]
        assert "orders-access" == container["env"][0]["valueFrom"]["secretKeyRef"]["name"]


def test_once_the_job_is_there_nothing_is_applied_again() -> None:
    outcome = decided(driver=Driver())
    assert ("Starting", ()) == (outcome.status["phase"], outcome.applies)


def test_while_it_runs_it_tells_the_querys_rate_delay_and_workers() -> None:
    streams = [
        {"name": "orders", "rowsPerSecond": 700.0, "rows": 900}, {"name": "items", "rowsPerSecond": 50.0, "rows": 7},
    ]  # fmt: skip
    told = {**READY, "streams": streams, "delayP50": "20ms", "delayP99": "90ms"}
    outcome = decided(
        wanted(streams=["orders"]), driver=Driver(is_running=True), executors=2, query_status=told,
        status={"peakWorkers": 5, "rowsBefore": 100},
    )  # fmt: skip
    assert ("True", "Sending") == condition(outcome, "Running")
    wants = {
        "phase": "Running", "executors": 2, "rate": 700.0, "recorded": 800, "delayP99": "90ms", "workers": 2,
        "peakWorkers": 5,
    }  # fmt: skip
    assert wants.items() <= outcome.status.items()


WORDS = {"sent": 60_000, "acknowledged": 60_000, "rate": 5990.25, "seconds": 10.016, "behind": 0.016}


def test_at_its_end_it_tells_what_the_driver_said_and_then_nothing_more_happens() -> None:
    outcome = decided(driver=Driver(has_succeeded=True, words=WORDS), status={"startedAt": "then"})
    assert {
        "phase": "Succeeded",
        "sent": 60_000,
        "acknowledged": 60_000,
        "rate": 5990.2,
    }.items() <= outcome.status.items()
    assert ("True", "AllRecorded") == condition(outcome, "Complete")
    assert ("then", True) == (outcome.status["startedAt"], outcome.has_ended)
    again = decided(driver=None, query=None, status=outcome.status)
    assert (outcome.status, (), ()) == (again.status, again.applies, again.said)


@pytest.mark.parametrize(
    "driver",
    [Driver(has_failed=True, text="found no gateway"), Driver(has_failed=True), Driver(has_succeeded=True)],
    ids=["told", "gone", "without words"],
)
def test_a_driver_that_failed_is_not_started_again(driver: Driver) -> None:
    outcome = decided(driver=driver)
    assert ("Failed", (), True) == (outcome.status["phase"], outcome.applies, outcome.has_ended)
    (said,) = outcome.said
    assert (Reason.LOAD_FAILED, driver.text or "the driver's pod is gone") == (said.reason, said.text)


@pytest.mark.parametrize(
    ("changed", "settings", "query_status", "word"),
    [
        ({"streams": ["order"]}, SPARK, READY, "spec.streams[0]"),
        ({"streams": ["orders", "orders"]}, SPARK, READY, "spec.streams[1]"),
        ({"profile": {"sine": {"mean": 1, "amplitude": 2, "period": "1s"}}}, SPARK, READY, "spec.profile.sine"),
        ({}, SETTINGS, READY, "spark.enabled=true"),
        ({}, SPARK, {"phase": "Finished"}, "which has ended"),
    ],
)
def test_what_cannot_run_is_told_once_by_a_condition(
    changed: dict[str, Any], settings: Any, query_status: dict[str, Any], word: str
) -> None:
    outcome = decided(wanted(**changed), settings, query_status=query_status)
    assert ("Stalled", ()) == (outcome.status["phase"], outcome.applies)
    assert "True" == condition(outcome, "Stalled")[0]
    (said,) = outcome.said
    assert word in said.text
    assert () == decided(wanted(**changed), settings, query_status=query_status, status=outcome.status).said


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    first = decided(driver=Driver()).status
    later = reconcile_load(wanted(), seen(driver=Driver(), status=first), SPARK, NOW + 10**10).status
    assert first["conditions"] == later["conditions"]
