"""A query that Spark runs in a cluster: begun once, refused by name, told exactly at its end."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from joinery.operator.children import Manifest
from joinery.operator.crd_status import STATUS
from joinery.operator.engine_children import job_of
from joinery.operator.engine_reconcile import CHANGED, EngineOutcome, EngineSeen, reconcile_engine
from joinery.operator.events import Reason
from joinery.operator.reconcile import Wanted
from joinery.operator.spark_jobs import Driver, driver_of
from joinery.operator.spark_pods import NO_SPARK
from tests.unit.kubernetes_operator.queries import SETTINGS, SPEC, wanted
from tests.unit.kubernetes_operator.test_status import check

SPARK = replace(SETTINGS, spark_image="spark:test", spark_role="Role/spark-driver")
NOW = 1_800_000_000_000_000_000
WORDS = {"rows": {"orders": 10, "items": 20}, "late": {"orders": 1, "items": 0}, "results": 7, "seconds": 1.5}


def query(**changed: Any) -> Wanted:
    streams = copy.deepcopy(SPEC["streams"])
    for stream in streams:
        stream["source"] = {"file": {"path": f"{stream['name']}.csv", "volume": {"configMap": "files"}}}
    sinks = [{"file": {"path": "out.parquet", "volume": {"claim": "results"}}}]
    return wanted(**{"streams": streams, "sinks": sinks, "engine": "spark", **changed})


def decided(one: Wanted | None = None, settings: Any = SPARK, **seen: Any) -> EngineOutcome:
    return reconcile_engine(one or query(), EngineSeen(**seen), settings, NOW)


def applied(outcome: EngineOutcome) -> dict[str, Manifest]:
    return {f"{one.key[0]}/{one.key[1]}": one.manifest for one in outcome.applies}


def condition(outcome: EngineOutcome, kind: str) -> tuple[str, str]:
    (found,) = [one for one in outcome.status["conditions"] if one["type"] == kind]
    return found["status"], found["message"]


def test_it_gets_a_driver_and_nothing_of_the_service() -> None:
    outcome = decided()
    assert [
        "ConfigMap/orders-query", "PersistentVolumeClaim/orders-spark", "ConfigMap/orders-spark",
        "ServiceAccount/orders-spark", "RoleBinding/orders-spark", "NetworkPolicy/orders-spark", "Job/orders-spark",
    ] == list(applied(outcome))  # fmt: skip
    assert ("Pending", [Reason.CREATED]) == (outcome.status["phase"], [one.reason for one in outcome.said])
    for name, made in applied(outcome).items():
        assert ["0123456789"] == [owner["uid"] for owner in made["metadata"]["ownerReferences"]], name


def test_the_driver_has_the_files_and_executors_share_a_claim_with_it() -> None:
    made = applied(decided())
    pod = made["Job/orders-spark"]["spec"]["template"]["spec"]
    mounts = {one["mountPath"] for one in pod["containers"][0]["volumeMounts"]}
    assert {"/volumes/map-files", "/volumes/claim-results", "/shared", "/etc/joinery"} <= mounts
    executor = yaml.safe_load(made["ConfigMap/orders-spark"]["data"]["executor.yaml"])["spec"]
    assert {"/tmp", "/shared"} == {one["mountPath"] for one in executor["containers"][0]["volumeMounts"]}  # noqa: S108
    assert "hunter2" not in json.dumps(made)


def test_a_driver_that_dies_is_started_again_and_one_that_cannot_run_is_not() -> None:
    job = applied(decided())["Job/orders-spark"]["spec"]
    assert (3, "Never") == (job["backoffLimit"], job["template"]["spec"]["restartPolicy"])
    (rule,) = job["podFailurePolicy"]["rules"]
    assert ("FailJob", [2]) == (rule["action"], rule["onExitCodes"]["values"])


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"join": {"on": ["id"], "type": "anti"}}, "spec.join.type"),
        ({"streams": SPEC["streams"]}, "spec.streams[0].source"),
        ({"output": {"order": "time"}}, "spec.output.order"),
        ({"partitions": "many"}, "spec.partitions"),
    ],
)
def test_what_spark_cannot_do_is_refused_by_name_before_anything_is_started(
    changed: dict[str, Any], field: str
) -> None:
    outcome = decided(query(**changed))
    assert ("Stalled", ()) == (outcome.status["phase"], outcome.applies)
    assert field in condition(outcome, "Stalled")[1]
    assert [Reason.VALIDATION_ERROR] == [one.reason for one in outcome.said]
    assert () == decided(query(**changed), status=outcome.status).said, "told once"


def test_without_spark_it_says_so() -> None:
    assert ("True", NO_SPARK) == condition(decided(settings=SETTINGS), "Stalled")


def test_it_runs_when_driver_and_executors_do() -> None:
    begun = {"accepted": query().query(), "driver": Driver(is_running=True)}
    assert "Pending" == decided(**begun).status["phase"]
    runs = decided(**begun, executors=2)
    assert ("Running", "True") == (runs.status["phase"], condition(runs, "Ready")[0])
    assert () == runs.applies


def test_a_query_that_spark_runs_cannot_be_changed_and_goes_on() -> None:
    begun = {"accepted": query().query(), "driver": Driver(is_running=True), "executors": 1}
    changed = decided(query(filter="orders.id > 3"), **begun)
    assert ("Running", ("True", CHANGED)) == (changed.status["phase"], condition(changed, "Stalled"))
    assert "False" == condition(decided(query(replicas=5), **begun), "Stalled")[0], "Spark has no workers"


def test_at_its_end_it_tells_exactly_what_the_driver_counted() -> None:
    outcome = decided(driver=Driver(has_succeeded=True, words=WORDS))
    assert ("Finished", 7, 1) == tuple(outcome.status[name] for name in ("phase", "results", "late"))
    assert {"name": "items", "rows": 20, "late": 0} in outcome.status["streams"]
    assert [Reason.FINISHED] == [one.reason for one in outcome.said]
    check(outcome.status, STATUS, "status")
    again = decided(query(filter="orders.id > 3"), status=outcome.status)
    assert (outcome.status, (), ()) == (again.status, again.applies, again.said)


def test_a_driver_that_failed_is_told_with_its_reason() -> None:
    outcome = decided(driver=Driver(has_failed=True, text="spec.sinks: no room"))
    assert ("Failed", ("True", "spec.sinks: no room")) == (outcome.status["phase"], condition(outcome, "Stalled"))
    assert [Reason.FAILED] == [one.reason for one in outcome.said]


def test_a_paused_query_is_not_begun() -> None:
    outcome = decided(replace(query(), annotations={"joinery.dev/paused": "true"}))
    assert ("Paused", ()) == (outcome.status["phase"], outcome.applies)


def pod(made: int, **terminated: Any) -> Manifest:
    status = {"containerStatuses": [{"state": {"terminated": terminated}}], "phase": "Failed"}
    return {"metadata": {"creationTimestamp": f"2026-01-01T00:00:0{made}Z"}, "status": status}


def test_a_job_that_is_tried_again_has_not_failed_and_its_newest_pod_has_the_last_word() -> None:
    pods = [pod(1, exitCode=137, reason="OOMKilled"), pod(2, exitCode=0, message=json.dumps(WORDS))]
    job: Manifest = {"metadata": {"name": job_of("orders")}, "spec": {"backoffLimit": 3}, "status": {"failed": 1}}
    tried = driver_of(job, pods[:1], "results")
    assert tried is not None
    assert (False, "exit code 137 (OOMKilled)") == (tried.has_failed, tried.text)
    done = driver_of(job | {"status": {"failed": 1, "succeeded": 1}}, pods, "results")
    assert done is not None
    assert (True, WORDS) == (done.has_succeeded, done.words)
    given_up = job | {"status": {"failed": 4, "conditions": [{"type": "Failed", "status": "True"}]}}
    assert (found := driver_of(given_up, pods[:1], "results")) is not None
    assert found.has_failed
