"""A query with a stored table as real processes: exact, whoever is killed, and whatever becomes of the table.

The lookup application is the one without Spark (`bench.plain_lookup`): the same server and the same cutting. With
Spark: `test_examples`, `tests/spark/test_lookup.py`.
"""

import os
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from joinery.adapters.recording import read_tables
from joinery.cli.checking import verify_output
from joinery.cli.local import LocalRun
from joinery.cli.query_file import read_query
from joinery.client import connect
from tests.support.running import running
from tests.support.tables import PATIENCE_S, sales, until, write_query, write_table


@pytest.fixture(autouse=True)
def _plain_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalRun, "modules", {"lookup": "bench.plain_lookup"})


def test_moves_killed_workers_a_killed_lookup_and_a_refreshed_table_leave_it_exact(tmp_path: Path) -> None:
    query, record = write_query(tmp_path), tmp_path / "recorded"
    write_table(tmp_path, 2000, "old")
    with running(query, record=record) as run, connect(run.gateway, timeout=PATIENCE_S) as client:
        begun, pushed = client.producer("sales", "till"), 0

        def push(batches: int) -> None:
            nonlocal pushed
            for _ in range(batches):
                begun.push(sales(pushed))
                pushed += 500
                run.attend(lambda _: None)

        def recorded() -> bool:
            return run.progress.last is not None and run.progress.last.streams[0].rows >= pushed

        push(4)
        until(run, recorded)
        for group in range(8):
            run.move(group, "worker-1")
        push(2)
        os.kill(run.pids["worker-0"], signal.SIGKILL)
        push(4)
        write_table(tmp_path, 2500, "new")
        until(run, lambda: 2 in read_tables(record).values())
        push(4)
        os.kill(run.pids["lookup"], signal.SIGKILL)
        push(4)
        os.kill(run.pids["worker-1"], signal.SIGKILL)
        until(run, recorded)
        push(2)
        begun.end()
        assert run.wait(lambda _: None), run.failed
    told: list[str] = []
    assert 0 == verify_output(query, read_query(query), record, told.append), told
    assert "missing 0, extra 0, duplicate 0" in told[-1]
    versions = pq.read_table(tmp_path / "out.parquet").column("items_version")
    assert {1, 2} <= set(versions.unique().to_pylist())
