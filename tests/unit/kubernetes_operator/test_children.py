"""The objects of a query: hardened, owned, and holding no secret where none belongs."""

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from joinery.model.spec import JoinQuery
from joinery.operator.children import Manifest, Parent, children_of
from joinery.operator.settings import OperatorSettings
from tests.unit.kubernetes_operator.queries import SETTINGS, wanted


def children(settings: OperatorSettings = SETTINGS, certificates: Any = None, **changed: Any) -> dict[str, Manifest]:
    one = wanted(**changed)
    parent = Parent(query=one.query(), namespace=one.namespace, uid=one.uid, replicas=3)
    return {
        f"{made['kind']}/{made['metadata']['name']}": made for made in children_of(parent, settings, certificates or {})
    }


def pods(made: dict[str, Manifest]) -> dict[str, Manifest]:
    return {name: one["spec"]["template"] for name, one in made.items() if "template" in one.get("spec", {})}


def test_every_child_belongs_to_the_object() -> None:
    for name, made in children().items():
        assert ["0123456789"] == [owner["uid"] for owner in made["metadata"]["ownerReferences"]], name
        assert "orders" == made["metadata"]["labels"]["joinery.dev/joinquery"], name


def test_a_pod_may_do_as_little_as_possible() -> None:
    found = pods(children())
    assert 3 == len(found)
    for name, pod in found.items():
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["securityContext"]["runAsNonRoot"], name
        assert {"type": "RuntimeDefault"} == spec["securityContext"]["seccompProfile"], name
        for container in spec["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"], name
            assert {"drop": ["ALL"]} == container["securityContext"]["capabilities"], name
            assert not container["securityContext"]["allowPrivilegeEscalation"], name


def test_passwords_and_tokens_are_in_secrets_only() -> None:
    for name, made in children().items():
        if made["kind"] != "Secret":
            assert "hunter2" not in json.dumps(made), name
            assert "sesame" not in json.dumps(made), name


def test_the_query_file_in_the_pods_is_the_query() -> None:
    data = children()["ConfigMap/orders-query"]["data"]
    assert wanted().query() == JoinQuery.parse(yaml.safe_load(data["query.yaml"]))


def test_a_worker_is_called_by_its_ordinal() -> None:
    pod = pods(children())["StatefulSet/orders-worker"]["spec"]["containers"][0]
    assert "worker-$(ORDINAL)" in pod["args"]
    assert "ORDINAL" in [one["name"] for one in pod["env"]]


def test_pods_log_as_the_operator_does() -> None:
    settings = OperatorSettings.read({"JOINERY_LOG": "json", "JOINERY_LOG_LEVEL": "warning"})
    parent = Parent(query=wanted().query(), namespace="shop", uid="u", replicas=1)
    made = {str(number): one for number, one in enumerate(children_of(parent, settings, {}))}
    for pod in pods(made).values():
        told = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}
        assert ("json", "warning") == (told["JOINERY_LOG"], told["JOINERY_LOG_LEVEL"])


def test_another_query_of_the_same_name_has_other_keys_in_redis() -> None:
    def keys(uid: str) -> str:
        parent = Parent(query=wanted().query(), namespace="shop", uid=uid, replicas=1)
        args = next(
            pods({"one": made})["one"] for made in children_of(parent, SETTINGS, {}) if made["kind"] == "StatefulSet"
        )
        flags = args["spec"]["containers"][0]["args"]
        return str(flags[flags.index("--keys") + 1])

    assert keys("aaaaaaaa-1") != keys("bbbbbbbb-1")


def test_a_workers_memory_limit_leaves_room_beside_its_windows() -> None:
    pod = pods(children(worker__memory="1Gi"))["StatefulSet/orders-worker"]["spec"]["containers"][0]
    assert "1.5Gi" == pod["resources"]["limits"]["memory"]


def test_resources_are_settable() -> None:
    resources = {"requests": {"cpu": "2"}, "limits": {"memory": "8Gi"}}
    pod = pods(children(worker__resources=resources))["StatefulSet/orders-worker"]["spec"]["containers"][0]
    assert ("2", "8Gi") == (pod["resources"]["requests"]["cpu"], pod["resources"]["limits"]["memory"])


def test_a_file_lies_on_its_volume() -> None:
    sink = {"file": {"path": "out/results.parquet", "volume": {"claim": "results"}}}
    made = children(sinks=[sink])
    query = yaml.safe_load(made["ConfigMap/orders-query"]["data"]["query.yaml"])
    assert "/volumes/claim-results/out/results.parquet" == query["spec"]["sinks"][0]["file"]["path"]
    pod = pods(made)["Deployment/orders-collector"]["spec"]
    assert {"claimName": "results"} in [one.get("persistentVolumeClaim") for one in pod["volumes"]]
    assert "/volumes/claim-results" in [one["mountPath"] for one in pod["containers"][0]["volumeMounts"]]
    worker = pods(made)["StatefulSet/orders-worker"]["spec"]
    assert {one["name"] for one in worker["volumes"]} >= {
        one["name"] for one in worker["containers"][0]["volumeMounts"]
    }


def test_with_certificates_every_process_uses_them() -> None:
    made = children(replace(SETTINGS, tls=True), {"ca.crt": "a", "tls.crt": "b", "tls.key": "c"})
    assert "Secret/orders-tls" in made
    for name, pod in pods(made).items():
        assert "--tls" in pod["spec"]["containers"][0]["args"], name
        assert "tls" in [one["name"] for one in pod["spec"]["volumes"]], name


@pytest.mark.parametrize("role", ["gateway", "collector", "worker"])
def test_every_role_is_probed_over_plain_http(role: str) -> None:
    pod = next(pod for name, pod in pods(children()).items() if name.endswith(role))["spec"]["containers"][0]
    assert {"/livez", "/readyz"} == {pod[one]["httpGet"]["path"] for one in ("livenessProbe", "readinessProbe")}


def test_the_pods_of_a_query_are_placed_labelled_and_sized_as_it_says() -> None:
    asked = {
        "labels": {"team": "sales"}, "annotations": {"a/b": "c"}, "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "dedicated", "value": "streams", "effect": "NoSchedule"}], "priorityClassName": "high",
        "gateway": {"resources": {"limits": {"memory": "128Mi"}}},
        "collector": {"resources": {"requests": {"cpu": 1}}},
    }  # fmt: skip
    found = pods(children(pods=asked))
    for name, pod in found.items():
        assert ("sales", "joinery") == (
            pod["metadata"]["labels"]["team"], pod["metadata"]["labels"]["app.kubernetes.io/name"],
        ), name  # fmt: skip
        assert "c" == pod["metadata"]["annotations"]["a/b"], name
        assert ({"disk": "fast"}, "high") == (pod["spec"]["nodeSelector"], pod["spec"]["priorityClassName"]), name
        assert [
            {"key": "dedicated", "operator": "Equal", "value": "streams", "effect": "NoSchedule"}
        ] == pod["spec"]["tolerations"], name  # fmt: skip
    resources = {name: pod["spec"]["containers"][0]["resources"] for name, pod in found.items()}
    # a limit below what is usually reserved takes the reservation with it: the API server would refuse it else
    gateway = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}}
    assert gateway == resources["Deployment/orders-gateway"]
    assert {"requests": {"cpu": "1", "memory": "256Mi"}} == resources["Deployment/orders-collector"]


def test_the_token_comes_from_the_secret_that_the_query_names() -> None:
    for name, pod in pods(children(access={"secretName": "my-token"})).items():
        found = {one["name"]: one.get("valueFrom") for one in pod["spec"]["containers"][0]["env"]}
        assert {"secretKeyRef": {"name": "my-token", "key": "token"}} == found["JOINERY_TOKEN"], name
