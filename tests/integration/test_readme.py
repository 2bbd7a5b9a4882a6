"""The README's query, commands and client code, as they stand there."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from joinery.cli.local import LocalRun
from tests.integration.test_run import joinery
from tests.support.running import running

README = (Path(__file__).parents[2] / "README.md").read_text()
ORDERS = pa.table(
    {"order_id": [1, 2, 3], "cost": [10.0, 20.0, 30.0], "ts": pa.array([0, 1000, 2000], pa.timestamp("us"))}
)
FULFILMENTS = pa.table({"order_id": [2, 3], "clerk": ["Ann", "Bo"], "ts": pa.array([5000, 9000], pa.timestamp("us"))})
EXPECTED = Counter({(1, None): 1, (2, "Ann"): 1, (3, "Bo"): 1})


def block(language: str, having: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    (found,) = [one for one in blocks if having in one]
    return str(found)


@pytest.fixture(name="query")
def the_query_of_the_readme(tmp_path: Path) -> Path:
    path = tmp_path / "query.yaml"
    path.write_text(block("yaml", "kind: JoinQuery"))
    return path


def results(query: Path) -> Counter[object]:
    table = pa.parquet.read_table(query.parent / "results.parquet")
    columns = (table.column(name).to_pylist() for name in ("orders_order_id", "fulfilments_clerk"))
    return Counter(zip(*columns, strict=True))


def ended(run: LocalRun) -> bool:
    return run.wait(lambda _: None, 0.05)


def test_the_client_of_the_readme(query: Path) -> None:
    with running(query) as run:
        code = block("python", "joinery.client").replace("127.0.0.1:7400", run.gateway)
        given = {"orders": ORDERS, "fulfilments": FULFILMENTS}
        exec(compile(code, "README.md", "exec"), dict(given))  # noqa: S102 - the code is ours
        assert ended(run)
    assert EXPECTED == results(query)


def test_the_pipes_of_the_readme(query: Path) -> None:
    folder = query.parent
    for name, table in (("orders", ORDERS), ("fulfilments", FULFILMENTS)):
        pa.csv.write_csv(table, folder / f"{name}.csv")
    lines = [line.split("#")[0].split() for line in block("console", "joinery push").splitlines()]
    pushes = [line[1:] for line in lines if "push" in line]
    assert 2 == len(pushes)
    with running(query) as run:
        for words in pushes:
            done = joinery(*(str(folder / word) if word.endswith((".yaml", ".csv")) else word for word in words))
            assert 0 == done.returncode, done.stderr
        assert ended(run)
    assert EXPECTED == results(query)


def test_the_readme_says_how_to_begin() -> None:
    screen = README[: README.index("## ")]
    assert "make run" in screen
    assert "make test" in screen


def test_commands_of_the_readme_are_there() -> None:
    named = set(re.findall(r"\.venv/bin/joinery ([a-z]+)", README))
    assert {"run", "push", "tail", "verify", "simulate"} <= named
    for name in named:
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "joinery.cli.main", name, "--help"], capture_output=True, text=True, check=False
        )
        assert 0 == done.returncode, done.stderr
