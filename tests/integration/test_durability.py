"""What a local run survives, one fault at a time: real processes, exact by DuckDB (tests/chaos has many at once)."""

import signal
from pathlib import Path

import pytest

from tests.support.faults import OLD, Running, truth, until, write_files, write_query, written

WAL = {"durability": "wal", "interval": "200ms"}


@pytest.mark.parametrize("who", ["gateway", "collector", "redis", "worker-0"])
def test_a_process_that_is_killed_is_replaced_and_nothing_is_lost_or_doubled(who: str, folder: Path) -> None:
    write_files(folder)
    write_query(folder, checkpoint=WAL)
    run = Running(folder)
    until(run.has_parts, "the first results")
    run.kill(who)
    run.hears("has died; it is back" if who == "redis" else f"{who} was killed (SIGKILL); another one takes its place")
    assert 0 == run.ends(), run.said
    assert truth(folder) == written(folder)


def test_a_run_that_was_stopped_goes_on_where_it_was(folder: Path) -> None:
    write_files(folder)
    write_query(folder, checkpoint=WAL)
    words = ("--state", str(folder / "state"))
    first = Running(folder, *words)
    until(first.has_parts, "the first results")
    first.process.send_signal(signal.SIGINT)
    assert 1 == first.ends(), first.said
    assert (True, OLD) == ((folder / "state").is_dir(), (folder / "out.csv").read_text())
    second = Running(folder, *words)
    second.hears("the query goes on where it was stopped")
    assert 0 == second.ends(), second.said
    assert truth(folder) == written(folder)
    assert not (folder / "state").exists()


def test_without_a_log_on_disk_the_loss_of_the_gateway_is_told_with_counts(folder: Path) -> None:
    write_files(folder)
    write_query(folder)
    run = Running(folder)
    until(run.has_parts, "the first results")
    run.hears("rows/s")
    run.kill("gateway")
    assert 1 == run.ends(), run.said
    assert "gateway was killed (SIGKILL); DataLost: the log was in its memory" in run.said
    assert OLD == (folder / "out.csv").read_text()


def test_state_cannot_be_kept_without_a_log_on_disk(folder: Path) -> None:
    write_files(folder)
    write_query(folder)
    run = Running(folder, "--state", str(folder / "state"))
    assert (2, True) == (run.ends(), "wanted wal" in run.said)
