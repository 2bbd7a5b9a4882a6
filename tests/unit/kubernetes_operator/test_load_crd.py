"""The definition of LoadTest: structural, bounded, and the one that the chart carries."""

from pathlib import Path

from joinery.operator import load_crd
from joinery.operator.load_reconcile import Driver
from tests.unit.kubernetes_operator.test_crd import nodes
from tests.unit.kubernetes_operator.test_load_reconcile import WORDS, decided

FILE = Path(__file__).parents[3] / "charts/joinery/files/loadtests.yaml"
SPEC = load_crd.spec_schema()


def test_the_chart_carries_the_definition_that_the_models_make() -> None:
    remedy = "run: python -m joinery.operator.load_crd > charts/joinery/files/loadtests.yaml"
    assert FILE.read_text() == load_crd.text(), remedy


def test_every_field_has_one_type_and_lists_and_texts_are_bounded() -> None:
    """What the API server calls structural; and its budget for rules is kept."""
    for path, schema in [*nodes(SPEC), *nodes(load_crd.STATUS, "status")]:
        assert isinstance(schema.get("type"), str), path
        assert not {"anyOf", "$ref", "title", "examples"} & set(schema), path
        if path.startswith("spec"):
            assert schema["type"] != "array" or "maxItems" in schema, path
            assert schema["type"] != "string" or "maxLength" in schema or "enum" in schema, path


def test_the_status_that_is_written_has_a_schema_and_columns_show_it() -> None:
    written = decided(driver=Driver(has_succeeded=True, words=WORDS)).status
    known = set(load_crd.STATUS["properties"])
    assert set(written) <= known
    shown = {one["jsonPath"].split(".")[2] for one in load_crd.COLUMNS if one["jsonPath"].startswith(".status")}
    assert shown <= known


def test_a_load_test_runs_once_so_its_spec_never_changes() -> None:
    assert ["self == oldSelf"] == [one["rule"] for one in SPEC["x-kubernetes-validations"]]
