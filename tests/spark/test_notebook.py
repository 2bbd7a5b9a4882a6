"""The notebook of examples/08-results-in-spark: its cells, one after the other, on a real Spark and a running query."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.running import running

FOLDER = Path(__file__).parents[2] / "examples" / "08-results-in-spark"
PATIENCE_S = 120
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
    pytest.mark.timeout(5 * PATIENCE_S),
]


def cells() -> list[dict[str, Any]]:
    return [cell for cell in json.loads((FOLDER / "results.ipynb").read_text())["cells"] if cell["cell_type"] == "code"]


def test_it_is_checked_in_without_what_somebody_s_run_has_printed() -> None:
    assert [([], None)] * len(cells()) == [(cell["outputs"], cell["execution_count"]) for cell in cells()]


def test_its_table_is_spark_s_own_join_of_the_files(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    del spark  # the notebook finds the one that is there
    names: dict[str, Any] = {}
    with running(FOLDER / "query.yaml") as run:
        monkeypatch.chdir(FOLDER)
        monkeypatch.setenv("JOINERY_GATEWAY", run.gateway)
        for cell in cells():
            exec("".join(cell["source"]), names)  # noqa: S102 - our own notebook
        assert run.wait(lambda _: None), run.failed
    assert 126 == names["total"]
    assert f"{names['total']} results of {names['total']}: 0 clerks differ, 0 are not wanted" in capsys.readouterr().out
