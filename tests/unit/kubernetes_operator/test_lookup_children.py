"""A query with a stored table in a cluster: the lookup application's objects, and what the others are told of it."""

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from joinery.operator.children import Manifest
from joinery.operator.reconcile import Apply, Outcome, Seen, reconcile
from joinery.operator.settings import OperatorSettings
from joinery.operator.spark_pods import NO_SPARK
from joinery.operator.status import Picture, status_of
from tests.unit.kubernetes_operator.queries import SETTINGS, SPEC, wanted

SPARK = replace(SETTINGS, spark_image="spark:test", spark_role="ClusterRole/x-spark-driver")
SECURED = replace(SPARK, tls=True)
TABLE: dict[str, Any] = {"path": "information", "volume": {"claim": "tables"}}
STREAMS: list[dict[str, Any]] = [
    {key: value for key, value in SPEC["streams"][0].items() if key != "window"},
    {"name": "items", "schema": {"id": "int64", "price": "int64"}, "table": TABLE},
]
OF_LOOKUP = {
    "PersistentVolumeClaim/orders-lookup", "ConfigMap/orders-lookup", "ServiceAccount/orders-lookup",
    "RoleBinding/orders-lookup", "Service/orders-lookup", "StatefulSet/orders-lookup", "NetworkPolicy/orders-lookup",
}  # fmt: skip


def decided(settings: OperatorSettings = SPARK, seen: Seen | None = None, **changed: Any) -> Outcome:
    return reconcile(wanted(**{"streams": STREAMS, **changed}), seen or Seen(), settings)


def applied(outcome: Outcome) -> dict[str, Manifest]:
    return {f"{one.key[0]}/{one.key[1]}": one.manifest for one in outcome.actions if isinstance(one, Apply)}


def driver(made: dict[str, Manifest]) -> Manifest:
    return dict(made["StatefulSet/orders-lookup"]["spec"]["template"]["spec"])


def executor(made: dict[str, Manifest]) -> Manifest:
    return dict(yaml.safe_load(made["ConfigMap/orders-lookup"]["data"]["executor.yaml"]))


def test_only_a_query_with_a_table_has_a_lookup_application_and_it_goes_with_the_query() -> None:
    made = applied(decided())
    without = applied(reconcile(wanted(), Seen(), SPARK))
    assert OF_LOOKUP == set(made) - set(without)
    assert ["0123456789"] * 7 == [made[name]["metadata"]["ownerReferences"][0]["uid"] for name in OF_LOOKUP]


def test_gateway_and_workers_are_told_where_it_is() -> None:
    made = applied(decided())
    for name in ("Deployment/orders-gateway", "StatefulSet/orders-worker"):
        args = made[name]["spec"]["template"]["spec"]["containers"][0]["args"]
        assert "orders-lookup.shop.svc:7402" == args[args.index("--lookup") + 1]
    assert "--lookup" not in json.dumps(applied(reconcile(wanted(), Seen(), SPARK)))


def test_the_table_lies_on_its_volume_which_driver_and_executors_have_and_nobody_writes() -> None:
    made = applied(decided())
    query = yaml.safe_load(made["ConfigMap/orders-query"]["data"]["query.yaml"])
    assert "/volumes/claim-tables/information" == query["spec"]["streams"][1]["table"]["path"]
    for pod in (driver(made), executor(made)["spec"]):
        (mount,) = [one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "claim-tables"]
        assert ("/volumes/claim-tables", True) == (mount["mountPath"], mount["readOnly"])
        assert {"claimName": "tables"} in [one.get("persistentVolumeClaim") for one in pod["volumes"]]
    assert "claim-tables" not in json.dumps(made["Deployment/orders-gateway"])


def test_segments_lie_on_a_claim_that_outlives_the_pod_and_that_executors_write() -> None:
    spark = {"volume": {"size": "5Gi", "storageClass": "fast", "accessMode": "ReadWriteMany"}}
    made = applied(decided(pods={"spark": spark}))
    claim = made["PersistentVolumeClaim/orders-lookup"]["spec"]
    assert (["ReadWriteMany"], "fast") == (claim["accessModes"], claim["storageClassName"])
    assert "5Gi" == claim["resources"]["requests"]["storage"]
    args = driver(made)["containers"][0]["args"]
    assert "/shared/segments" == args[args.index("--segments") + 1]
    for pod in (driver(made), executor(made)["spec"]):
        assert {"name": "shared", "mountPath": "/shared"} in pod["containers"][0]["volumeMounts"]
        assert {"claimName": "orders-lookup"} in [one.get("persistentVolumeClaim") for one in pod["volumes"]]


def test_executors_are_on_the_drivers_node_if_their_volume_is_for_one() -> None:
    term = executor(applied(decided()))["spec"]["affinity"]["podAffinity"]
    (rule,) = term["requiredDuringSchedulingIgnoredDuringExecution"]
    labels = applied(decided())["StatefulSet/orders-lookup"]["spec"]["template"]["metadata"]["labels"]
    assert rule["labelSelector"]["matchLabels"].items() <= labels.items()
    many = {"spark": {"volume": {"accessMode": "ReadWriteMany"}}}
    assert "affinity" not in executor(applied(decided(pods=many)))["spec"]


def test_there_is_one_driver_and_none_when_the_query_has_ended() -> None:
    made = applied(decided())["StatefulSet/orders-lookup"]["spec"]
    assert (1, "orders-lookup") == (made["replicas"], made["serviceName"])
    ended = applied(decided(seen=Seen(accepted=decided().query, has_ended=True)))
    assert 0 == ended["StatefulSet/orders-lookup"]["spec"]["replicas"]


def test_driver_and_executors_may_do_as_little_as_possible() -> None:
    made = applied(decided(SECURED))
    for pod in (driver(made), executor(made)["spec"]):
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
    assert driver(made)["automountServiceAccountToken"]
    assert not executor(made)["spec"]["automountServiceAccountToken"]
    assert "tls" not in json.dumps(executor(made)), "executors talk to nobody of ours"


def test_with_certificates_it_serves_with_them_and_new_ones_roll_it() -> None:
    args = driver(applied(decided(SECURED)))["containers"][0]["args"]
    assert "/etc/joinery-tls" == args[args.index("--tls") + 1]
    marks = [
        applied(decided(SECURED, Seen(certificates={"tls.crt": text})))["StatefulSet/orders-lookup"]["spec"]["template"]
        for text in ("one", "two")
    ]
    assert marks[0]["metadata"] != marks[1]["metadata"]
    assert marks[0]["spec"] == marks[1]["spec"]


def test_spark_starts_as_the_query_says() -> None:
    made = applied(decided(pods={"spark": {"executors": 3, "cores": 4, "memory": "2Gi"}}))
    conf = dict(line.split(" ", 1) for line in made["ConfigMap/orders-lookup"]["data"]["spark.conf"].splitlines())
    assert ("3", "4", "2048m") == tuple(conf[f"spark.executor.{name}"] for name in ("instances", "cores", "memory"))
    told = {one["name"]: one.get("value", "") for one in driver(made)["containers"][0]["env"]}
    assert "spark.kubernetes.driver.pod.name=$(POD_NAME)" in told["PYSPARK_SUBMIT_ARGS"]
    assert told["PYSPARK_SUBMIT_ARGS"].endswith(" pyspark-shell")


def test_only_the_querys_own_pods_reach_it() -> None:
    policy = applied(decided())["NetworkPolicy/orders-lookup"]["spec"]
    own, spark = policy["ingress"]
    assert ({"joinery.dev/joinquery": "orders"}, 7402) == (
        own["from"][0]["podSelector"]["matchLabels"], own["ports"][0]["port"],
    )  # fmt: skip
    assert policy["podSelector"] == spark["from"][0]["podSelector"]
    ports = applied(decided())["NetworkPolicy/orders"]["spec"]["ingress"][0]["ports"]
    assert 7402 not in [one["port"] for one in ports]


def test_without_spark_it_is_not_begun_and_says_so() -> None:
    outcome = decided(SETTINGS)
    assert (None, NO_SPARK, {}) == (outcome.query, outcome.stalled, applied(outcome))


def test_a_query_that_runs_is_left_as_it_is_when_spark_is_switched_off() -> None:
    running = Seen(accepted=decided().query, replicas=2)
    for changed in ({}, {"partitions": "many"}):
        outcome = decided(SETTINGS, running, **changed)
        assert ({}, running.accepted) == (applied(outcome), outcome.query)
        assert outcome.stalled is not None


@pytest.mark.parametrize(("lookup", "truth"), [(1, "True"), (0, "False")])
def test_the_status_says_whether_the_table_is_there(lookup: int, truth: str) -> None:
    ready = {"gateway": 1, "collector": 1, "worker": 1, "lookup": lookup}
    query = decided().query
    picture = Picture(name="orders", generation=1, now_ns=1, query=query, desired=1, ready=ready, is_attended=True)
    told = {one["type"]: one for one in status_of(picture, {})["conditions"]}
    assert (truth, truth) == (told["Ready"]["status"], told["TableAvailable"]["status"])
    if not lookup:
        assert "no ready pod: lookup" == told["Ready"]["message"]


def test_executors_of_a_driver_that_died_are_in_nobodys_way_and_long_names_are_no_trouble() -> None:
    """Spark refuses a prefix of more than 47 letters, and the same name twice."""
    assert "podNamePrefix" not in applied(decided())["ConfigMap/orders-lookup"]["data"]["spark.conf"]
