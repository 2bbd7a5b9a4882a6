"""The examples that are queries run as their README says, and give what DuckDB gives.

Of 08-results-in-spark the notebook is run: `tests/spark/test_notebook.py`.
"""

import shutil
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from tests.support.running import called

EXAMPLES = Path(__file__).parents[2] / "examples"
TRUTH = """
select o.order_id, o.cost, f.clerk_id
from '{folder}/orders.csv' o left join '{folder}/fulfilments.csv' f
on o.order_id = f.order_id and o.cost > 10 and o.ts between f.ts - 600000000 and f.ts
"""


def test_orders_and_fulfilments(tmp_path: Path) -> None:
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLES / "01-orders-fulfilments", folder, ignore=shutil.ignore_patterns("results.*"))
    done = called("run", str(folder / "query.yaml"))
    assert 0 == done.returncode, done.stderr
    with duckdb.connect() as connection:
        expected = connection.execute(TRUTH.format(folder=folder)).fetchall()
        found = connection.execute(f"select * from '{folder}/results.csv'").fetchall()
    assert Counter(expected) == Counter(found)


@pytest.mark.parametrize("name", ["06-trades-information", "07-surrogate-keys"])
@pytest.mark.skipif(shutil.which("java") is None, reason="found no Java, wanted 17 or newer for Spark; install a JRE")
def test_an_example_with_a_stored_table_is_exact(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLES / name, folder)
    done = called("run", str(folder / "query.yaml"), "--verify")
    assert 0 == done.returncode, done.stderr
    assert "missing 0, extra 0, duplicate 0" in done.stdout
    assert "checked 0 results" not in done.stdout


@pytest.mark.parametrize(
    "name", ["02-network-links", "03-auction-bids", "04-temperature-humidity", "05-three-way-trades"]
)
def test_a_generated_example_is_exact(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLES / name, folder)
    done = called("run", str(folder / "query.yaml"), "--verify")
    assert 0 == done.returncode, done.stderr
    assert "missing 0, extra 0, duplicate 0" in done.stdout
    assert "checked 0 results" not in done.stdout
