"""`joinery run --sql`: files of a folder, joined by a statement."""

import os
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tests.support.running import called

JOIN = "SELECT * FROM orders o JOIN ships s ON o.id = s.id"
ENVIRONMENT = {**os.environ, "PYTHONHASHSEED": "0"}


def run(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603
        [str(Path(sys.executable).with_name("joinery")), "run", *words],
        cwd=folder, capture_output=True, text=True, timeout=120, env=ENVIRONMENT, check=False,
    )  # fmt: skip


def test_a_statement_over_files_is_exact_and_written_where_it_is_told(tmp_path: Path) -> None:
    ids = list(range(100))
    parquet.write_table(pa.table({"id": ids, "ts": [n * 10**6 for n in ids]}), tmp_path / "orders.parquet")
    csv.write_csv(
        pa.table({"order_id": ids, "clerk": ["x"] * 100, "at": [n * 10**6 + 5 for n in ids]}), tmp_path / "s.csv"
    )
    sql = "SELECT o.id AS number, clerk FROM orders o JOIN ships s ON o.id = s.order_id AND o.id >= 10 WITHIN 1 MINUTE"
    told = run(
        tmp_path, "--sql", sql, "--source", "ships=s.csv", "--time", "ts", "--time", "ships=at", "--out", "out.parquet",
        "--verify",
    )  # fmt: skip
    assert 0 == told.returncode, told.stderr
    assert "missing 0, extra 0, duplicate 0" in told.stdout
    assert {"number": ids[10:], "clerk": ["x"] * 90} == parquet.read_table(tmp_path / "out.parquet").sort_by(
        "number"
    ).to_pydict()


def test_a_statement_that_cannot_be_run_is_refused_with_its_place(tmp_path: Path) -> None:
    told = run(tmp_path, "--sql", "SELECT * FROM orders JOIN ON x")
    assert 2 == told.returncode
    assert "^" in told.stderr
    told = run(tmp_path, "--sql", "SELECT * FROM orders o JOIN ships s ON o.id = s.id")
    assert 2 == told.returncode
    assert "orders.parquet" in told.stderr


def test_two_files_of_one_name_are_not_chosen_from(tmp_path: Path) -> None:
    for name in ("orders.csv", "orders.ndjson", "ships.csv"):
        (tmp_path / name).write_text("id,ts\n1,100\n")
    told = run(tmp_path, "--sql", f"{JOIN} WITHIN 1 MINUTE")
    assert 2 == told.returncode
    assert (
        "found orders.csv and orders.ndjson for orders, wanted one file; say --source orders=orders.csv" in told.stderr
    )


def test_flags_of_a_statement_are_refused_beside_a_file(tmp_path: Path) -> None:
    told = run(tmp_path, "query.yaml", "--out", "x.csv")
    assert 2 == told.returncode
    assert "--out" in told.stderr


def write_unsorted(folder: Path) -> None:
    (folder / "orders.csv").write_text("id,cost,ts\n1,2.5,100\n2,3.5,50\n3,1,200\n")
    (folder / "ships.csv").write_text("id,clerk,ts\n1,x,110\n2,y,160\n3,z,210\n")


def test_rows_out_of_order_are_a_warning_until_lateness_allows_for_them(tmp_path: Path) -> None:
    write_unsorted(tmp_path)
    words = ("--sql", f"{JOIN} WITHIN 10 MINUTES", "--time", "ts", "--unit", "s", "--quiet", "--dashboard", "off")
    told = run(tmp_path, *words)
    assert 0 == told.returncode, told.stderr
    assert "WARNING: found late rows, which are in no result: 1 of 3 of orders;" in told.stderr
    assert 2 == len(told.stdout.splitlines())
    told = run(tmp_path, *words, "--lateness", "orders=1m")
    assert (0, 3, "") == (told.returncode, len(told.stdout.splitlines()), told.stderr)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((JOIN,), "--sql: found nothing in stream orders, wanted how long a row of this stream can be matched; "
         "write WITHIN 10 MINUTES after ON"),
        ((f"{JOIN} WITHIN 1 s", "--time", "tss"), "--time: found tss, wanted a column of orders; did you mean ts?"),
        ((f"{JOIN} WITHIN 1 s", "--time", "orders=cost"), "say --time orders=COLUMN"),
        ((f"{JOIN} WITHIN 1 s", "--time", "ts", "--unit", "x"), "--unit: found 'x'"),
        ((f"{JOIN} WITHIN 1 s", "--time", "ts", "--lateness", "x"), "--lateness: found 'x'"),
        ((f"{JOIN} WITHIN 1 s", "--lateness", "5s"), "--lateness: found no time column of orders"),
        ((f"{JOIN} WITHIN 1 s", "--time", "ship=ts"), "--time: found ship, wanted a stream of the statement"),
        ((f"{JOIN} WITHIN 1 s", "--time", "ts", "--out", "orders.csv"), "--out: found"),
        (("SELECT * FROM orders o JOIN ships s ON o.id = s.clerk WITHIN 1 s",), "--sql: ON: found int64 with string"),
        (("SELECT * FROM orders",), "--sql: found a SELECT without a JOIN"),
        ((f"{JOIN} WITHIN 1 s", "--source", "ships=header.csv"), "found a column id without a value"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_the_words_of_the_statement(tmp_path: Path, words: list[str], said: str) -> None:
    write_unsorted(tmp_path)
    (tmp_path / "header.csv").write_text("id,clerk,ts\n")
    with chdir(tmp_path):
        told = called("run", "--sql", *words)
    assert 2 == told.returncode
    assert said in told.stderr
    assert "spec." not in told.stderr
