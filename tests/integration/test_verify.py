"""`joinery verify`: exact runs are found exact, every kind of mistake is found; real processes."""

from copy import deepcopy
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml

from tests.integration.test_run import joinery, truth, write_input, write_query
from tests.support.running import called

EXACT = "missing 0, extra 0, duplicate 0"


def verdict(done: CompletedProcess[str]) -> tuple[int, str]:
    return done.returncode, (done.stdout.splitlines() or [""])[-1]


def rewrite(query: Path, **changes: Any) -> Path:
    """The query with other fields of its spec; `streams` has changes for each stream."""
    whole = yaml.safe_load(query.read_text())
    for stream, change in zip(whole["spec"]["streams"], changes.pop("streams", []), strict=False):
        stream.update(change)
        for name in [name for name, value in change.items() if value is None]:
            del stream[name]
    whole["spec"].update(changes)
    query.write_text(yaml.safe_dump(whole))
    return query


@pytest.mark.parametrize(("kind", "ending"), [("full", "csv"), ("anti", "ndjson"), ("inner", "parquet")])
def test_a_run_is_verified(kind: str, ending: str, tmp_path: Path) -> None:
    write_input(tmp_path)
    query = write_query(tmp_path, kind, sinks=[{"file": {"path": f"out.{ending}"}}], replicas=2)
    done = called("verify", str(query))
    assert (0, EXACT) == verdict(done), done.stderr


def test_generators_arrival_times_a_count_window_and_a_count_sink_are_verified(tmp_path: Path) -> None:
    source = {"generator": {"rate": 2000, "rows": 3000, "seed": 5, "keys": {"range": 100}}}
    query = rewrite(
        write_query(tmp_path, "left", sinks=[{"count": {}}]),
        streams=[
            {"source": source, "time": None},
            {"source": deepcopy(source), "window": {"count": 500}, "time": None},
        ],
    )
    done = called("verify", str(query))
    assert (0, EXACT) == verdict(done), done.stderr
    assert "of a 3,000, b 3,000 rows" in done.stdout


def test_late_rows_are_verified_too(tmp_path: Path) -> None:
    write_input(tmp_path)
    shuffled = pq.read_table(tmp_path / "a.parquet").take(np.random.default_rng(3).permutation(4000))
    pq.write_table(shuffled, tmp_path / "a.parquet")
    query = rewrite(
        write_query(tmp_path, "left", late={"sink": {"file": {"path": "late.csv"}}}),
        streams=[{"time": {"column": "ts", "unit": "ms", "lateness": "15s"}}],
    )
    done = called("verify", str(query))
    assert (0, EXACT) == verdict(done), done.stderr
    assert "in 3 files" in done.stdout
    late = pa.csv.read_csv(tmp_path / "late-a.csv").num_rows
    assert 100 < late < 2000


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A query that ran, with a recording of its input."""
    folder = tmp_path_factory.mktemp("run")
    write_input(folder)
    done = called("run", str(write_query(folder, "left")), "--record", str(folder / "record"))
    assert 0 == done.returncode, done.stderr
    return folder


@pytest.mark.parametrize("how", [["--no-run"], ["--recorded"]])
def test_an_output_that_is_there_is_verified_without_a_run(how: list[str], finished: Path) -> None:
    where = [str(finished / "record")] if how == ["--recorded"] else []
    done = called("verify", str(finished / "query.yaml"), *how, *where)
    assert (0, EXACT) == verdict(done), done.stderr
    assert f"checked {truth(finished, 'left').total():,} results" in done.stdout


def damage(table: pa.Table, kind: str) -> pa.Table:
    match kind:
        case "missing 3, extra 0, duplicate 0":
            return table.slice(3)
        case "missing 0, extra 0, duplicate 2":
            return pa.concat_tables([table, table.slice(5, 2)])
        case _:
            changed = pa.array([table["a_n"][0].as_py() + 10**6, *table["a_n"].to_pylist()[1:]])
            return table.set_column(table.schema.get_field_index("a_n"), "a_n", changed)


@pytest.mark.parametrize(
    "kind", ["missing 3, extra 0, duplicate 0", "missing 0, extra 0, duplicate 2", "missing 1, extra 1, duplicate 0"]
)
def test_a_wrong_output_is_told_with_its_first_rows(kind: str, finished: Path) -> None:
    path = finished / "out.parquet"
    right = pq.read_table(path)
    pq.write_table(damage(right, kind), path)
    try:
        done = called("verify", str(finished / "query.yaml"), "--no-run")
    finally:
        pq.write_table(right, path)
    assert (1, kind) == verdict(done)
    wrong = kind.split(",", maxsplit=1)[0].split(maxsplit=1)[0] if not kind.startswith("missing 0") else "duplicate"
    assert f"out.parquet: {wrong}: found" in done.stdout


def test_a_source_that_is_not_what_was_recorded_is_told(finished: Path) -> None:
    path = finished / "b.parquet"
    right = pq.read_table(path)
    pq.write_table(right.slice(0, 3999), path)
    try:
        done = called("verify", str(finished / "query.yaml"), "--recorded", str(finished / "record"))
    finally:
        pq.write_table(right, path)
    assert (1, True) == (done.returncode, "stream b: recorded is not what the source gives" in done.stdout)


def test_what_cannot_be_verified_is_refused(finished: Path, tmp_path: Path) -> None:
    nowhere = called("verify", str(finished / "query.yaml"), "--recorded", str(tmp_path))
    assert (2, True) == (nowhere.returncode, "wanted the recording of a run that ended" in nowhere.stderr)
    write_input(tmp_path)
    query = rewrite(write_query(tmp_path, "inner"), streams=[{"source": None}])
    pushed = called("verify", str(query), "--no-run")
    assert (2, True) == (pushed.returncode, "joinery run --record" in pushed.stderr)


def test_run_with_verify_does_both(tmp_path: Path) -> None:
    write_input(tmp_path)
    done = joinery("run", str(write_query(tmp_path, "semi", filter="a.n > 100")), "--verify")
    assert (0, EXACT) == verdict(done), done.stderr
