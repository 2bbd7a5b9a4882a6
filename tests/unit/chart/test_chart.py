"""The chart as helm renders it, with its own values, each preset and what CI adds."""

import base64
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from joinery.model.spec import JoinQuery
from joinery.operator.settings import OperatorSettings
from tests.unit.chart.rendering import (
    CHART,
    DEFAULT,
    FULL,
    NAMESPACE,
    NAMESPACED,
    PRESETS,
    ROOT,
    VALUES,
    Object,
    environment_of,
    helm,
    of_kind,
    pods_of,
    rendered,
    the,
)

every_values = pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
NEEDS_TOKEN = ("-operator", "-uninstall", "-test")
"""Endings of what talks to the API server."""


@every_values
def test_helm_finds_nothing_to_complain_about(values: Path) -> None:
    done = helm("lint", "--strict", str(CHART), "--values", str(values))
    assert 0 == done.returncode, done.stdout + done.stderr


def test_there_is_a_preset_of_each_kind() -> None:
    assert ["dev", "ha", "prod"] == [path.stem for path in PRESETS]


@every_values
def test_every_object_has_a_name_of_its_own_and_the_usual_labels(values: Path) -> None:
    objects = rendered(values)
    names = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects]
    assert sorted(set(map(str, names))) == sorted(map(str, names))
    wanted = {
        f"app.kubernetes.io/{key}" for key in ("name", "instance", "component", "version", "part-of", "managed-by")
    }
    for one in objects:
        assert wanted | {"helm.sh/chart"} <= one["metadata"]["labels"].keys(), one["metadata"]["name"]


@every_values
def test_selectors_choose_the_pods_of_their_object_and_carry_no_version(values: Path) -> None:
    for one in rendered(values):
        if one["kind"] in ("Deployment", "StatefulSet"):
            chosen = one["spec"]["selector"]["matchLabels"]
            assert chosen.items() <= one["spec"]["template"]["metadata"]["labels"].items()
            assert {"name", "instance", "component"} == {key.rpartition("/")[2] for key in chosen}


def test_chart_and_project_have_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == chart["appVersion"]
    assert chart["kubeVersion"].startswith(">=1.28")


def test_the_example_in_the_chart_is_a_query() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    for example in yaml.safe_load(chart["annotations"]["artifacthub.io/crdsExamples"]):
        assert example["metadata"]["name"] == JoinQuery.parse(example).metadata.name


# --- the definition


def test_the_definition_is_the_one_that_the_models_make() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "joinery.operator.crd"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    remedy = "python -m joinery.operator.crd > charts/joinery/files/joinqueries.yaml"
    assert made == (CHART / "files" / "joinqueries.yaml").read_text(), f"the definition is old: {remedy}"


@pytest.mark.parametrize("plural", ["joinqueries", "loadtests"])
def test_helm_changes_no_number_and_no_word_of_the_definitions(plural: str) -> None:
    written = yaml.safe_load((CHART / "files" / f"{plural}.yaml").read_text())
    put_out = the(rendered(), "CustomResourceDefinition", f"{plural}.joinery.dev")
    assert json.dumps(written["spec"]) == json.dumps(put_out["spec"])
    assert written["metadata"]["name"] == put_out["metadata"]["name"]


def test_the_definitions_are_kept_unless_told_otherwise() -> None:
    kept, gone = (of_kind(rendered(values), "CustomResourceDefinition") for values in (DEFAULT, FULL))
    assert [{"helm.sh/resource-policy": "keep"}] * 2 == [one["metadata"]["annotations"] for one in kept]
    assert [False, False] == ["annotations" in one["metadata"] for one in gone]


def test_a_second_release_brings_no_definition() -> None:
    assert [] == of_kind(rendered(DEFAULT, "crds.install=false"), "CustomResourceDefinition")


# --- pods


@every_values
def test_every_pod_is_hardened(values: Path) -> None:
    for name, pod in pods_of(rendered(values)):
        held = pod["securityContext"]
        assert (True, 10001, 10001) == (held["runAsNonRoot"], held["runAsUser"], held["runAsGroup"]), name
        assert {"type": "RuntimeDefault"} == held["seccompProfile"], name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys(), name
        assert pod["enableServiceLinks"] is False, name
        for container in [*pod["containers"], *pod.get("initContainers", ())]:
            wanted: Object = {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
            }  # fmt: skip
            assert wanted == container["securityContext"], name
            assert {"cpu", "memory"} == container["resources"]["requests"].keys(), name
            assert "/tmp" in [mount["mountPath"] for mount in container["volumeMounts"]], name  # noqa: S108


@every_values
def test_only_pods_that_talk_to_the_api_server_have_its_token(values: Path) -> None:
    for name, pod in pods_of(rendered(values)):
        assert name.endswith(NEEDS_TOKEN) == pod["automountServiceAccountToken"], name
        if not name.endswith(NEEDS_TOKEN):
            assert "serviceAccountName" not in pod, name


@every_values
def test_what_runs_for_long_has_probes(values: Path) -> None:
    for one in rendered(values):
        if one["kind"] in ("Deployment", "StatefulSet"):
            (container,) = one["spec"]["template"]["spec"]["containers"]
            assert {"livenessProbe", "readinessProbe"} <= container.keys()


def test_there_is_one_operator_at_any_time() -> None:
    spec = the(rendered(), "Deployment", "-operator")["spec"]
    assert (1, {"type": "Recreate"}) == (spec["replicas"], spec["strategy"])


def test_an_image_may_be_named_by_its_digest() -> None:
    images = {pod["containers"][0]["image"] for name, pod in pods_of(rendered(FULL)) if name.endswith(NEEDS_TOKEN)}
    assert {f"joinery@sha256:{'0' * 64}"} == images
    assert "joinery:0.1.0" == dict(pods_of(rendered()))["Deployment one-joinery-operator"]["containers"][0]["image"]


# --- what the operator is told


def operator_environment(values: Path, *settings: str) -> dict[str, Any]:
    return environment_of(the(rendered(values, *settings), "Deployment", "-operator")["spec"]["template"]["spec"])


def read_by_operator(values: Path, *settings: str) -> OperatorSettings:
    """As the operator would read it, with Secrets looked up among what is rendered."""
    secrets = {one["metadata"]["name"]: one["data"] for one in of_kind(rendered(values, *settings), "Secret")}
    told = dict[str, str]()
    for name, value in operator_environment(values, *settings).items():
        match value:
            case {"secretKeyRef": {"name": secret, "key": key}}:
                told[name] = base64.b64decode(secrets[secret][key]).decode() if secret in secrets else secret
            case {"fieldRef": {"fieldPath": "metadata.namespace"}}:
                told[name] = NAMESPACE
            case _:
                told[name] = value
    return OperatorSettings.read(told)


def test_the_operator_reads_what_the_values_say() -> None:
    wanted = OperatorSettings(
        image=f"joinery@sha256:{'0' * 64}", pull_secrets=("one", "two"), own_namespace=NAMESPACE,
        redis_url="redis://:a-password-of-the-ci@one-joinery-redis.of-joinery.svc:6379/0",
        tls=True, ca_secret="one-joinery-ca", token="a-token-of-the-ci", hold_s=77, delete_s=88,  # noqa: S106
            logs=(("JOINERY_LOG", "json"), ("JOINERY_LOG_LEVEL", "info")),
    )  # fmt: skip
    assert wanted == read_by_operator(FULL, "operator.holdSeconds=77", "operator.deleteSeconds=88")


def test_the_operator_reads_namespaces_and_secrets_of_the_user() -> None:
    told = read_by_operator(NAMESPACED)
    assert (("team-a", "team-b"), "my-redis", "my-token") == (told.namespaces, told.redis_url, told.token)


def test_every_variable_that_the_chart_sets_is_read() -> None:
    """One that is misspelt would be ignored without a word."""
    asked = set[str]()

    class Noting(dict[str, str]):
        def get(self, key: str, default: Any = None) -> Any:
            asked.add(key)
            return default

    OperatorSettings.read(Noting())
    told = {name for name in operator_environment(FULL) if name.startswith("JOINERY_")}
    assert set() == told - asked


# --- secrets


def test_no_secret_is_anywhere_but_in_secrets() -> None:
    for values, secrets in (
        (FULL, ("a-password-of-the-ci", "a-token-of-the-ci")),
        (CHART / "ci" / "external-values.yaml", ("a-password-in-a-url",)),
    ):
        elsewhere = json.dumps([one for one in rendered(values) if one["kind"] != "Secret"])
        for secret in secrets:
            assert secret not in elsewhere
            assert base64.b64encode(secret.encode()).decode() not in elsewhere


def test_a_password_is_made_for_the_bundled_redis() -> None:
    data = the(rendered(), "Secret", "-redis")["data"]
    password = base64.b64decode(data["password"]).decode()
    assert 32 == len(password)
    assert f"requirepass {password}\n" == base64.b64decode(data["auth.conf"]).decode()
    assert f"redis://:{password}@one-joinery-redis.{NAMESPACE}.svc:6379/0" == base64.b64decode(data["url"]).decode()


def test_what_was_made_up_does_not_restart_the_pods() -> None:
    """Two renderings make up two passwords and two CAs; no pod may change with them."""
    passwords, authorities, pods = set[str](), set[str](), set[str]()
    for described in ("once", "again"):
        settings = "tls.enabled=true", f"serviceAccount.annotations.n={described}"
        objects = rendered(DEFAULT, *settings)
        passwords.add(the(objects, "Secret", "-redis")["data"]["password"])
        authorities.add(the(objects, "Secret", "-ca")["data"]["tls.crt"])
        pods.add(json.dumps([one["spec"] for one in objects if one["kind"] in ("Deployment", "StatefulSet")]))
    assert (2, 2, 1) == (len(passwords), len(authorities), len(pods))


@pytest.mark.parametrize("setting", ["redis.password=another-one", "auth.token=another", "tls.enabled=true"])
def test_what_the_user_changes_restarts_the_operator(setting: str) -> None:
    before, after = (
        the(rendered(DEFAULT, *settings), "Deployment")["spec"]["template"]["metadata"]["annotations"]
        for settings in ((), (setting,))
    )
    assert before != after


def test_the_ca_signs_and_says_so() -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    data = the(rendered(FULL), "Secret", "-ca")["data"]
    certificate = x509.load_pem_x509_certificate(base64.b64decode(data["tls.crt"]))
    key = load_pem_private_key(base64.b64decode(data["tls.key"]), None)
    assert certificate.public_key() == key.public_key()
    assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert 3650 == (certificate.not_valid_after_utc - certificate.not_valid_before_utc).days


def test_cert_manager_makes_the_ca_into_the_secret_that_the_operator_reads() -> None:
    settings = "tls.enabled=true", "tls.mode=certManager"
    objects = rendered(DEFAULT, *settings)
    certificate = the(objects, "Certificate")["spec"]
    assert certificate["isCA"] is True
    assert operator_environment(DEFAULT, *settings)["JOINERY_CA_SECRET"] == certificate["secretName"]
    assert the(objects, "Issuer")["metadata"]["name"] == certificate["issuerRef"]["name"]
    assert [] == of_kind(objects, "Secret", "-ca")


def test_an_issuer_of_the_user_takes_the_place_of_ours() -> None:
    objects = rendered(CHART / "ci" / "external-values.yaml")
    assert "company" == the(objects, "Certificate")["spec"]["issuerRef"]["name"]
    assert [] == of_kind(objects, "Issuer")
