"""The process that starts all others: what it starts is as if it had been started by itself, and it leaves nobody."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from joinery.cli.nursery import nursery, start
from tests.support.faults import OLD, Running, truth, until, write_files, write_query, written


def words_of(pid: int) -> list[str]:
    """As the list of processes shows it."""
    return [word for word in Path(f"/proc/{pid}/cmdline").read_text().split("\0") if word]


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_it_starts_writes_where_its_owner_does_and_has_its_own_code(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert 0 == start("joinery.worker", ["--help"], os.environ).wait(60)
    assert 2 == start("joinery.gateway", ["--no-such-flag"], os.environ).wait(60)
    said, wrong = capfd.readouterr()
    assert "Runs the worker of one query" in said
    assert "usage: python -m joinery.gateway" in wrong


def test_what_it_starts_has_its_own_words_environment_folder_and_session(tmp_path: Path) -> None:
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        os.mkfifo(tmp_path / "pipe")  # it waits for somebody who writes
        words = ["--query", "pipe", "--name", "worker-7"]
        born = start("joinery.worker", words, {"PATH": os.environ["PATH"]})
        until(lambda: "worker-7" in words_of(born.pid), "its own words")
    finally:
        os.chdir(before)
    wanted = [sys.executable, "-m", "joinery.worker", "--query", "pipe", "--name", "worker-7", "--with-parent"]
    assert [*wanted, str(nursery().pid)] == words_of(born.pid)
    assert str(tmp_path) == os.readlink(f"/proc/{born.pid}/cwd")
    assert born.pid == os.getsid(born.pid)
    assert born.poll() is None
    born.send(signal.SIGKILL)
    assert -signal.SIGKILL == born.wait(20)
    born.send(signal.SIGKILL)  # it is gone: nobody is hurt


def test_one_that_dies_takes_all_with_it_and_the_next_process_is_of_another(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    first = nursery()
    born = start("joinery.worker", ["--query", str(tmp_path / "pipe"), "--name", "worker-7"], os.environ)
    until(lambda: "worker-7" in words_of(born.pid), "its own words")
    os.kill(first.pid, signal.SIGKILL)
    assert -signal.SIGTERM == born.wait(20)
    until(lambda: not is_there(born.pid), "its end")
    assert 0 == start("joinery.worker", ["--help"], os.environ).wait(60)
    assert first.pid != nursery().pid


def test_one_that_stands_still_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    first = nursery()
    born = start("joinery.worker", ["--query", str(tmp_path / "pipe"), "--name", "worker-7"], os.environ)
    until(lambda: "worker-7" in words_of(born.pid), "its own words")
    os.kill(first.pid, signal.SIGSTOP)
    born.send(signal.SIGKILL)
    assert -signal.SIGTERM == born.wait(20)
    assert 0 == start("joinery.worker", ["--help"], os.environ).wait(60)
    assert first.pid != nursery().pid


def test_a_run_whose_nursery_stands_still_is_stopped_by_a_signal_and_leaves_nothing(folder: Path) -> None:
    write_files(folder)
    write_query(folder)
    run = Running(folder)
    until(run.has_parts, "results")
    ports = run.ports()
    run.kill("nursery", signal.SIGSTOP)
    run.process.send_signal(signal.SIGINT)
    assert 1 == run.ends(), run.said
    assert [] == run.left_behind(ports)


def test_a_start_that_was_interrupted_does_not_answer_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    home = nursery()

    def interrupted(how: int = 0) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as once:
        once.setattr(home, "_hear", interrupted)
        with pytest.raises(KeyboardInterrupt):
            start("joinery.worker", ["--no-such-flag"], os.environ)
    assert 0 == start("joinery.collector", ["--help"], os.environ).wait(60)


def test_it_ends_with_its_owner_however_that_ends(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    words = ["--query", str(tmp_path / "pipe"), "--name", "worker-7"]
    text = (
        "import os, sys, time; from joinery.cli.nursery import nursery, start; "
        f"born = start('joinery.worker', {words!r}, os.environ); "
        "print(nursery().pid, born.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as owner:  # noqa: S603
        assert owner.stdout is not None
        pids = [int(word) for word in owner.stdout.readline().split()]
        until(lambda: "worker-7" in words_of(pids[1]), "its own words")
        assert [True, True] == [is_there(pid) for pid in pids]
        owner.kill()
    until(lambda: not any(is_there(pid) for pid in pids), "the end of both")


def test_a_run_whose_nursery_is_killed_goes_on_and_is_exact(folder: Path) -> None:
    write_files(folder)
    write_query(folder, checkpoint={"durability": "wal", "interval": "200ms"})
    run = Running(folder)
    until(run.has_parts, "results")
    ports = run.ports()
    run.kill("nursery")
    assert 0 == run.ends(), run.said
    assert OLD != (folder / "out.csv").read_text()
    assert truth(folder) == written(folder)
    assert [] == run.left_behind(ports)
