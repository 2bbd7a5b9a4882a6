"""The CustomResourceDefinition: structural, complete, and the one that the chart carries."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from joinery.model.spec import JoinQuerySpec
from joinery.operator import crd

ROOT = Path(__file__).parents[3]
SPEC = crd.spec_schema()


def nodes(schema: dict[str, Any], path: str = "spec") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, held in schema.get("properties", {}).items():
        yield from nodes(held, f"{path}.{name}")
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from nodes(schema[word], f"{path}[]")


def test_the_chart_carries_the_definition_that_the_models_make() -> None:
    held = (ROOT / "charts/joinery/files/joinqueries.yaml").read_text()
    assert held == crd.text(), "run: python -m joinery.operator.crd > charts/joinery/files/joinqueries.yaml"


@pytest.mark.parametrize(("path", "schema"), [*nodes(SPEC), *nodes(crd.STATUS, "status")])
def test_every_field_has_one_type_or_is_left_open(path: str, schema: dict[str, Any]) -> None:
    """What the API server calls structural."""
    is_open = "x-kubernetes-preserve-unknown-fields" in schema or "x-kubernetes-int-or-string" in schema
    assert isinstance(schema.get("type"), str) != is_open, path
    assert not {"anyOf", "$ref", "title", "examples"} & set(schema), path
    assert all({"required"} == set(one) for one in schema.get("oneOf", ())), path
    if schema.get("type") == "array":
        assert "items" in schema, path
        assert "maxLength" not in schema, path


def test_every_field_of_the_models_is_there_with_its_default() -> None:
    """Pruning would silently take away what is not."""
    for model, schema in walk(JoinQuerySpec, SPEC):
        for name, field in model.model_fields.items():
            assert (field.alias or name) in schema["properties"], f"{model.__name__}.{name}"
        for name, default in (
            model.defaults().items() if not any(f.is_required() for f in model.model_fields.values()) else ()
        ):
            assert default == schema["properties"][name].get("default"), f"{model.__name__}.{name}"


def walk(model: Any, schema: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    yield model, schema
    for name, field in model.model_fields.items():
        held = schema["properties"][field.alias or name]
        held = held.get("items", held)
        kinds = [one for one in getattr(field.annotation, "__args__", (field.annotation,)) if isinstance(one, type)]
        for kind in kinds:
            if hasattr(kind, "model_fields") and "properties" in held:
                yield from walk(kind, held)


def test_a_bare_on_is_known_by_the_name_that_yaml_gives_it() -> None:
    join = SPEC["properties"]["join"]
    assert {"on", "true"} <= set(join["properties"])
    assert "on" not in join["required"]
    assert join["properties"]["on"]["items"] == join["properties"]["true"]["items"]


def test_people_can_scale_it_and_autoscalers_can_find_its_pods() -> None:
    version = crd.definition()["spec"]["versions"][0]
    scale = version["subresources"]["scale"]
    assert (".spec.replicas", ".status.replicas", ".status.selector") == (
        scale["specReplicasPath"],
        scale["statusReplicasPath"],
        scale["labelSelectorPath"],
    )


def test_every_printer_column_shows_a_field_of_the_status() -> None:
    for column in crd.COLUMNS:
        path = column["jsonPath"].removeprefix(".").split(".")
        if path[0] == "metadata":
            continue
        held = crd.STATUS
        for name in path[1:]:
            name = name.partition("[")[0]
            assert name in held["properties"], column
            held = held["properties"][name]
            if "[" in column["jsonPath"] and "items" in held:
                break


@pytest.mark.parametrize("field", ["partitions", "engine"])
def test_what_a_running_query_cannot_change_is_refused_by_the_api_server(field: str) -> None:
    assert ["self == oldSelf"] == [one["rule"] for one in SPEC["properties"][field]["x-kubernetes-validations"]]


def test_texts_and_lists_are_bounded() -> None:
    """Or the API server's budget for rules is exceeded."""
    for path, schema in nodes(SPEC):
        if schema.get("type") == "array":
            assert "maxItems" in schema, path


def test_a_stored_table_needs_a_volume_or_a_url() -> None:
    table = SPEC["properties"]["streams"]["items"]["properties"]["table"]
    (rule,) = table["x-kubernetes-validations"]
    assert "has(self.volume) || self.path.contains('://')" == rule["rule"]
    assert "x-kubernetes-validations" in table["properties"]["volume"]
