"""The README's first screen, and its client as it stands there; its commands are run by tests/documents."""

from collections import Counter
from pathlib import Path

import pyarrow.parquet

from tests.documents.blocks import ROOT, blocks
from tests.documents.session import FULFILMENTS, ORDERS, query_of_the_readme
from tests.support.running import running


def test_the_client_of_the_readme(tmp_path: Path) -> None:
    query = tmp_path / "query.yaml"
    query.write_text(query_of_the_readme())
    (code,) = [block.text for block in blocks("README.md") if block.language == "python"]
    with running(query) as run:
        given = {"orders": ORDERS, "fulfilments": FULFILMENTS}
        exec(compile(code.replace("127.0.0.1:7400", run.gateway), "README.md", "exec"), dict(given))  # noqa: S102 - ours
        assert run.wait(lambda _: None, 0.05)
    table = pyarrow.parquet.read_table(tmp_path / "results.parquet")
    columns = (table.column(name).to_pylist() for name in ("orders_order_id", "fulfilments_clerk"))
    assert Counter({(1, None): 1, (2, "Ann"): 1, (3, "Bo"): 1}) == Counter(zip(*columns, strict=True))


def test_the_readme_says_how_to_begin() -> None:
    text = (ROOT / "README.md").read_text()
    screen = text[: text.index("## ")]
    for wanted in ("make run", "make test", "![", "connect("):
        assert wanted in screen
    (code,) = [block.text for block in blocks("README.md") if block.language == "python"]
    assert len([line for line in code.splitlines() if line.strip() and "import" not in line]) == 5
