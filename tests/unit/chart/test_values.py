"""What may be said to the chart: the schema, refusals that name the field, and the README's table."""

import importlib.util
import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.unit.chart.rendering import CHART, FULL, ROOT, Object, refusal


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("operater.holdSeconds=1", "operater"),
        ("operator.holdSecond=1", "holdSecond"),
        ("operator.holdSeconds=soon", "operator.holdSeconds"),
        ("operator.holdSeconds=0", "operator.holdSeconds"),
        ("operator.resources.limit.cpu=1", "limit"),
        ("operator.resources.limits.memory=much", "operator.resources.limits.memory"),
        ('operator.extraEnv=[{"value": "x"}]', "operator.extraEnv.0"),
        ("watchNamespaces=one", "watchNamespaces"),
        ('watchNamespaces=["Not A Name"]', "watchNamespaces.0"),
        ('watchNamespaces=["a", "a"]', "watchNamespaces"),
        ("image.pullPolicy=Sometimes", "image.pullPolicy"),
        ("image.digest=sha256:12", "image.digest"),
        ("spark.enabled=perhaps", "spark.enabled"),
        ("spark.image.tags=x", "tags"),
        ("redis.bundled=maybe", "redis.bundled"),
        ("redis.url=http://host", "redis.url"),
        ("redis.password=a#b@c:d/e", "redis.password"),
        ("redis.image.tag=", "redis.image.tag"),
        ("redis.persistence.size=big", "redis.persistence.size"),
        ("redis.persistence.hostPath=relative", "redis.persistence.hostPath"),
        ("redis.persistence.whenDeleted=Keep", "redis.persistence.whenDeleted"),
        ("tls.mode=magic", "tls.mode"),
        ("logs.format=yaml", "logs.format"),
        ("tls.certManager.issuerRef.kind=Issuer", "tls.certManager.issuerRef"),
        ("metrics.serviceMonitor.interval=often", "metrics.serviceMonitor.interval"),
        ("uninstall.timeoutSeconds=1", "uninstall.timeoutSeconds"),
    ],
)
def test_a_value_that_is_wrong_is_refused_by_its_name(setting: str, named: str) -> None:
    assert named in refusal(setting)


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        (["redis.bundled=false"], "set redis.url, or redis.existingSecret"),
        (["redis.url=redis://host"], "set redis.bundled=false to use yours"),
        (["redis.bundled=false", "redis.url=redis://host", "redis.existingSecret=x"], "wanted one of them"),
        (["auth.token=x", "auth.existingSecret=x"], "wanted one of them"),
        (["redis.persistence.hostPath=/a", "redis.persistence.existingClaim=b"], "wanted one of them"),
        (["redis.persistence.enabled=false", "redis.persistence.hostPath=/a"], "set it to true"),
        (["serviceAccount.create=false"], "name the account that the operator runs as"),
    ],
)
def test_values_that_contradict_each_other_are_refused_with_a_remedy(settings: list[str], remedy: str) -> None:
    assert remedy in refusal(*settings)


def test_a_refusal_shows_no_secret() -> None:
    assert "a-secret-word" not in refusal("redis.url=redis://:a-secret-word@host")
    assert "a-secret-word" not in refusal("auth.existingSecret=x", "auth.token=a-secret-word")
    assert "a-password-of-the-ci" not in refusal("operator.holdSeconds=soon", values=FULL)


# --- one list of values


def table() -> ModuleType:
    spec = importlib.util.spec_from_file_location("values_table", ROOT / "charts" / "values_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def leaves_of(schema: Object, path: str = "") -> Iterator[str]:
    """Paths of the schema, down to where a value is one thing."""
    for name, held in schema["properties"].items():
        here = f"{path}.{name}" if path else name
        if "properties" in held and name not in ("affinity", "issuerRef"):
            yield from leaves_of(held, here)
        else:
            yield here


def objects_of(schema: Any) -> Iterator[Object]:
    if isinstance(schema, dict):
        if "properties" in schema and isinstance(schema.get("properties"), dict) and "type" in schema:
            yield schema
        for held in schema.values():
            yield from objects_of(held)
    elif isinstance(schema, list):
        for held in schema:
            yield from objects_of(held)


def test_schema_and_values_have_the_same_names_and_each_is_explained() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    explained = [one.path for one in table().values_of((CHART / "values.yaml").read_text())]
    assert sorted({*leaves_of(schema)} - {"global"}) == sorted(explained)


def test_the_schema_knows_every_name() -> None:
    found = list(objects_of(json.loads((CHART / "values.schema.json").read_text())))
    assert len(found) > 10
    assert [] == [held for held in found if held.get("additionalProperties") is not False]


def test_the_readme_lists_the_values_as_they_are() -> None:
    readme, values = (CHART / "README.md").read_text(), (CHART / "values.yaml").read_text()
    assert table().readme_of(readme, values) == readme, "the table is old: python charts/values_table.py"


def test_the_table_has_name_default_and_sentence() -> None:
    text = "a:\n  # -- What b is\n  b: 1\n  c:\n    # -- What d is\n    d: {x: y}\n# -- What e is\ne: []\n"
    wanted = [("a.b", 1, "What b is"), ("a.c.d", {"x": "y"}, "What d is"), ("e", [], "What e is")]
    assert wanted == [tuple(one) for one in table().values_of(text)]
