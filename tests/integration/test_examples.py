"""The examples run as their pages say, and give what the oracle, DuckDB and the page itself say."""

import re
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from tests.documents.blocks import ROOT, blocks, page_commands
from tests.documents.session import Session

EXAMPLES = ROOT / "examples"
PAGES = [f"examples/{one.parent.name}/README.md" for one in sorted(EXAMPLES.glob("0[1-9]*/query.yaml"))]
TRUTH = """
select o.order_id, o.cost, f.clerk_id
from '{folder}/orders.csv' o left join '{folder}/fulfilments.csv' f
on o.order_id = f.order_id and o.cost > 10 and o.ts between f.ts - 600000000 and f.ts
"""
SUMMARY = re.compile(r"^(?:checked|missing) .*$|^  (?:results|rows in|late)  .*$", re.MULTILINE)
"""What a page shows of a run that is the same in every run."""


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_an_examples_page(page: str, tmp_path: Path) -> None:
    told = "\n".join(block.text for block in blocks(page) if block.language == "text")
    with Session(tmp_path) as person:
        said = "\n".join(person.perform(f"{command} 2>&1") for _, command in page_commands(page))
    assert "missing 0, extra 0, duplicate 0" in said
    assert "checked 0 results" not in said
    for line in SUMMARY.findall(told):
        assert line in said, f"{page} shows {line!r}, the run said\n{said}"


def test_orders_and_fulfilments_are_what_duckdb_makes_of_them(tmp_path: Path) -> None:
    with Session(tmp_path) as person:
        person.perform("joinery run examples/01-orders-fulfilments/query.yaml")
    folder = tmp_path / "examples" / "01-orders-fulfilments"
    with duckdb.connect() as connection:
        expected = connection.execute(TRUTH.format(folder=folder)).fetchall()
        found = connection.execute(f"select * from '{folder}/results.csv'").fetchall()
    assert Counter(expected) == Counter(found)
