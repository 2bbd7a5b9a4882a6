"""Who may do what: rights of the operator, of the check before an uninstall, and of people."""

from pathlib import Path

import pytest

from joinery.operator.settings import OperatorSettings
from tests.unit.chart.rendering import (
    DEFAULT,
    FULL,
    NAMESPACE,
    NAMESPACED,
    VALUES,
    Object,
    environment_of,
    of_kind,
    pods_of,
    rendered,
    the,
)


def rights_of(role: Object) -> set[tuple[str, str]]:
    """(resource, verb)."""
    return {(name, verb) for rule in role["rules"] for name in rule["resources"] for verb in rule["verbs"]}


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_no_right_is_a_star(values: Path) -> None:
    for role in [*of_kind(rendered(values), "Role"), *of_kind(rendered(values), "ClusterRole")]:
        for rule in role["rules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]], role["metadata"]["name"]


@pytest.mark.parametrize("settings", [(), ("tls.enabled=true",), ("redis.bundled=true", "redis.existingSecret=")])
def test_with_namespaces_nothing_is_for_the_whole_cluster(settings: tuple[str, ...]) -> None:
    objects = rendered(NAMESPACED, *settings)
    assert [] == of_kind(objects, "ClusterRole") + of_kind(objects, "ClusterRoleBinding")


def test_with_namespaces_there_is_a_role_in_each_for_the_operators_account() -> None:
    objects = rendered(NAMESPACED)
    for kind in ("Role", "RoleBinding"):
        spaces = [one["metadata"]["namespace"] for one in of_kind(objects, kind, "-operator")]
        assert ["team-a", "team-b"] == spaces
    account = {"kind": "ServiceAccount", "name": "one-joinery-operator", "namespace": NAMESPACE}
    assert [[account], [account]] == [one["subjects"] for one in of_kind(objects, "RoleBinding", "-operator")]


def test_the_operator_has_the_same_rights_in_a_namespace_as_everywhere_but_for_looking_at_definitions() -> None:
    in_namespace = rights_of(of_kind(rendered(NAMESPACED), "Role", "-operator")[0])
    everywhere = rights_of(the(rendered(), "ClusterRole", "-operator"))
    definitions = {("customresourcedefinitions", "list"), ("customresourcedefinitions", "watch")}
    assert everywhere == in_namespace | definitions


def test_the_operator_cannot_look_for_secrets_nor_read_any_without_certificates() -> None:
    verbs = {verb for name, verb in rights_of(the(rendered(), "ClusterRole", "-operator")) if name == "secrets"}
    assert {"create", "patch"} == verbs
    verbs = {verb for name, verb in rights_of(the(rendered(FULL), "ClusterRole", "-operator")) if name == "secrets"}
    assert {"create", "patch", "get"} == verbs


def test_with_certificates_the_operator_may_read_the_ca() -> None:
    (rule,) = the(rendered(FULL), "Role", "-operator-ca")["rules"]
    assert (["one-joinery-ca"], ["get"]) == (rule["resourceNames"], rule["verbs"])


def test_every_binding_names_a_role_and_an_account_that_are_there() -> None:
    for values in VALUES:
        objects = rendered(values)
        there = {(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects}
        for kind in ("RoleBinding", "ClusterRoleBinding"):
            for one in of_kind(objects, kind):
                space = one["metadata"].get("namespace")
                assert (one["roleRef"]["kind"], space, one["roleRef"]["name"]) in there
                (subject,) = one["subjects"]
                assert (subject["kind"], subject["namespace"], subject["name"]) in there
        for name, pod in pods_of(objects):
            account = pod.get("serviceAccountName")
            assert account is None or ("ServiceAccount", NAMESPACE, account) in there, name


def test_people_who_may_view_or_edit_may_do_so_with_queries() -> None:
    view, edit = (the(rendered(), "ClusterRole", ending) for ending in ("-view", "-edit"))
    assert "true" == view["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"]
    assert "true" == edit["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"]
    assert {"get", "list", "watch"} == {verb for _, verb in rights_of(view)}
    assert ("joinqueries/scale", "patch") in rights_of(edit)
    assert [] == of_kind(rendered(DEFAULT, "rbac.aggregateRoles=false"), "ClusterRole", "-view")


# --- Spark

SPARK_ONLY = {
    ("joinqueries", "get"), ("jobs", "get"), ("jobs", "create"), ("jobs", "patch"), ("jobs", "delete"),
    ("serviceaccounts", "create"),
    ("serviceaccounts", "patch"), ("rolebindings", "create"), ("rolebindings", "patch"),
    ("persistentvolumeclaims", "create"), ("persistentvolumeclaims", "patch"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("values", "kind", "named"), [(DEFAULT, "ClusterRole", "clusterroles"), (NAMESPACED, "Role", "roles")]
)
def test_only_with_spark_the_operator_may_start_drivers_and_bind_their_role_alone(
    values: Path, kind: str, named: str
) -> None:
    without = rights_of(of_kind(rendered(values), kind, "-operator")[0])
    role = of_kind(rendered(values, "spark.enabled=true"), kind, "-operator")[0]
    assert SPARK_ONLY | {(named, "bind")} == rights_of(role) - without
    (bind,) = [rule for rule in role["rules"] if "bind" in rule["verbs"]]
    (driver,) = {
        one["metadata"]["name"] for one in of_kind(rendered(values, "spark.enabled=true"), kind, "-spark-driver")
    }
    assert [driver] == bind["resourceNames"]


def test_a_driver_has_rights_on_pods_and_nothing_else() -> None:
    role = the(rendered(DEFAULT, "spark.enabled=true"), "ClusterRole", "-spark-driver")
    assert {"pods"} == {name for name, _ in rights_of(role)}
    assert [] == of_kind(rendered(), "ClusterRole", "-spark-driver")


@pytest.mark.parametrize(("values", "kind"), [(DEFAULT, "ClusterRole"), (NAMESPACED, "Role")])
def test_the_operator_is_told_the_image_of_spark_and_a_role_that_is_there(values: Path, kind: str) -> None:
    objects = rendered(values, "spark.enabled=true", "spark.image.tag=x")
    pod = the(objects, "Deployment", "-operator")["spec"]["template"]["spec"]
    settings = OperatorSettings.read({key: str(value) for key, value in environment_of(pod).items()})
    assert "joinery-spark:x" == settings.spark_image
    told, _, name = settings.spark_role.partition("/")
    assert kind == told
    assert of_kind(objects, kind, name)
    plain = the(rendered(values), "Deployment", "-operator")["spec"]["template"]["spec"]
    assert not [name for name in environment_of(plain) if "SPARK" in name]


# --- the check before an uninstall


def test_an_uninstall_is_checked_with_rights_that_come_before_and_go_after() -> None:
    hooks = [one for one in rendered() if one["metadata"]["name"].endswith("-uninstall")]
    weights = {one["kind"]: int(one["metadata"]["annotations"]["helm.sh/hook-weight"]) for one in hooks}
    assert {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job"} == weights.keys()
    assert weights["Job"] > max(weight for kind, weight in weights.items() if kind != "Job")
    for one in hooks:
        told = one["metadata"]["annotations"]
        assert "pre-delete" == told["helm.sh/hook"]
        assert {"before-hook-creation", "hook-succeeded"} <= set(told["helm.sh/hook-delete-policy"].split(","))


def test_a_failed_check_stays_so_that_its_message_can_be_read() -> None:
    job = the(rendered(), "Job")
    assert "hook-failed" not in job["metadata"]["annotations"]["helm.sh/hook-delete-policy"]
    assert 0 == job["spec"]["backoffLimit"]


@pytest.mark.parametrize(("values", "removes"), [(DEFAULT, False), (NAMESPACED, True)])
def test_queries_may_be_deleted_only_where_that_was_asked_for(values: Path, removes: bool) -> None:
    objects = rendered(values)
    job = the(objects, "Job")["spec"]["template"]["spec"]["containers"][0]
    roles = of_kind(objects, "Role", "-uninstall") + of_kind(objects, "ClusterRole", "-uninstall")
    wanted = {("joinqueries", "list")} | ({("joinqueries", "delete")} if removes else set())
    assert {"name": "JOINERY_REMOVE_QUERIES", "value": "true" if removes else "false"} in job["env"]
    assert [wanted] * len(roles) == [rights_of(role) for role in roles]
    assert roles


def test_without_the_check_nothing_of_it_is_there() -> None:
    objects = rendered(DEFAULT, "uninstall.check=false")
    assert [] == [one for one in objects if one["metadata"]["name"].endswith("-uninstall")]
