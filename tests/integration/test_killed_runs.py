"""A run that is killed with SIGKILL leaves things, which the next command removes; what was read is what runs."""

import os
import signal
import subprocess
import threading
from pathlib import Path

from joinery.cli.local import LocalRun
from joinery.cli.query_file import read_query
from tests.support.faults import Running, truth, until, write_files, write_query, written
from tests.support.running import called, command

DURABLE = {"durability": "wal", "interval": "200ms"}


def killed(folder: Path, *words: str) -> Running:
    """A run whose runner was killed in the middle; all its processes have ended."""
    run = Running(folder, *words)
    until(run.has_parts, "results")
    run.process.kill()
    run.process.wait()
    until(lambda: not run.processes(), "the end of all")
    return run


def doctor(run: Running) -> str:
    environment = {**os.environ, "TMPDIR": str(run.temporary), "XDG_RUNTIME_DIR": str(run.temporary)}
    words = command("doctor", "--quick")
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout  # noqa: S603


def test_what_it_left_is_removed_by_the_next_command(folder: Path) -> None:
    write_files(folder)
    write_query(folder)
    run = killed(folder)
    assert [] != run.left_behind([])
    said = doctor(run)
    assert "killed runs      removed what they left:" in said
    assert [] == run.left_behind([])
    assert "killed runs      left nothing" in doctor(run)


def test_what_it_needs_to_go_on_stays(folder: Path) -> None:
    write_files(folder)
    write_query(folder, checkpoint=DURABLE)
    state = ("--state", str(folder / "state"))
    run = killed(folder, *state)
    doctor(run)
    again = Running(folder, *state)
    assert 0 == again.ends(), again.said
    assert truth(folder) == written(folder)


def test_a_file_that_is_edited_while_its_run_starts_runs_as_it_was_read(folder: Path) -> None:
    write_files(folder)
    query = write_query(folder)
    spec, text = read_query(query), query.read_text()
    run = LocalRun(query.resolve(), spec, text=text)
    query.write_text("half of an edit: [")
    with run:
        assert run.wait(lambda _: None), run.failed
    assert truth(folder) == written(folder)


def test_a_query_file_is_read_once(folder: Path) -> None:
    write_files(folder)
    query = write_query(folder)
    text = query.read_text()
    query.unlink()
    os.mkfifo(query)  # whoever reads it a second time waits for ever
    writing = threading.Thread(target=lambda: query.write_text(text), daemon=True)
    writing.start()
    signal.alarm(100)
    try:
        done = called("run", str(query), "--quiet", "--dashboard", "off")
    finally:
        signal.alarm(0)
    assert 0 == done.returncode, done.stderr
    assert truth(folder) == written(folder)
