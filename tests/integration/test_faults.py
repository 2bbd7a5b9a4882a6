"""Harm done to real processes: a clear end, or it goes on; never a wrong result, and nothing is left behind."""

import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from joinery.adapters.embedded_redis import connect, find_server
from joinery.adapters.settings import free_port
from joinery.model.errors import TryAgain
from tests.support.faults import OLD, PATIENCE_S, Running, truth, until, write_files, write_query, written

# --- Ctrl-C


MOMENTS: dict[str, Callable[[Running], bool]] = {
    "while it is loaded": lambda _: time.sleep(0.5) is None,
    "as the first process starts": lambda run: run.of("watcher") is not None,
    "as workers start": lambda run: run.of("worker-1") is not None,
    "in the middle": lambda run: run.has_parts(),
}


def check_that_nothing_is_left(run: Running, ports: list[int]) -> None:
    code = run.ends(40)
    until(lambda: [] == run.left_behind(ports), f"an end without traces, found {run.left_behind(ports)}", 15)
    if code == 0:  # it was faster
        assert truth(run.folder) == written(run.folder)
    elif "was complete already" not in run.said:
        assert OLD == (run.folder / "out.csv").read_text()


@pytest.mark.parametrize("to_all", [True, False], ids=["group", "runner"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_at_any_moment_leaves_nothing_behind(moment: str, to_all: bool, folder: Path) -> None:
    write_files(folder)
    write_query(folder)
    run = Running(folder, *(["--verify"] if to_all else []))  # which records in a temporary folder
    until(lambda: MOMENTS[moment](run), moment)
    ports = run.ports()
    for _ in range(2):  # people press it twice
        (os.killpg if to_all else os.kill)(run.process.pid, signal.SIGINT)
        if moment == "while it is loaded":
            break
        time.sleep(0.2)
        if run.process.poll() is not None:
            break
    check_that_nothing_is_left(run, ports)
    loaded = moment == "while it is loaded"
    assert run.process.returncode in ((1, -signal.SIGINT) if loaded else (1,)), run.said
    assert loaded or "trial: stopped after" in run.said


def test_sigterm_while_groups_move_leaves_nothing_behind(folder: Path) -> None:
    write_files(folder)
    write_query(folder)
    run = Running(folder)
    until(run.has_parts, "the first results")
    ports = run.ports()
    run.kill("worker-1")
    run.hears("worker-1 was killed")
    run.process.send_signal(signal.SIGTERM)
    check_that_nothing_is_left(run, ports)
    assert 1 == run.process.returncode


def test_ctrl_c_at_the_end_leaves_the_old_file_or_the_whole_new_one(folder: Path) -> None:
    write_files(folder, rows=20_000, span_ms=2000)
    write_query(folder)
    run = Running(folder)
    until(lambda: any(folder.glob("*.parts/whole*")) or run.process.poll() is not None, "the end")
    run.process.send_signal(signal.SIGINT)
    check_that_nothing_is_left(run, [])
    assert run.process.returncode in (0, 1)
    if OLD != (folder / "out.csv").read_text():
        assert truth(folder) == written(folder)


# --- Redis


def test_a_run_whose_own_redis_is_killed_says_so_and_leaves_nothing(folder: Path) -> None:
    write_files(folder)
    write_query(folder)
    run = Running(folder)
    until(run.has_parts, "the first results")
    ports = run.ports()
    run.kill("redis")
    check_that_nothing_is_left(run, ports)
    assert 1 == run.process.returncode
    assert "failed" in run.said
    assert "the embedded Redis has died" in run.said


def babbling() -> socket.socket:
    """Something that answers, but is no Redis."""
    listening = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            try:
                with listening.accept()[0] as near:
                    near.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            except OSError:
                return

    threading.Thread(target=answer, daemon=True).start()
    return listening


@pytest.mark.parametrize("who", ["nobody", "somebody else"])
def test_a_redis_that_is_not_there_is_told_before_anything_starts(who: str, folder: Path) -> None:
    write_files(folder)
    other = babbling()
    port = free_port() if who == "nobody" else other.getsockname()[1]
    write_query(folder, redis={"url": f"redis://127.0.0.1:{port}/0"})
    run = Running(folder)
    check_that_nothing_is_left(run, [])
    other.close()
    assert 2 == run.process.returncode
    assert f"spec.redis.url: redis://127.0.0.1:{port}/0: found no answer from Redis" in run.said
    assert "Traceback" not in run.said


def start_redis(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """A Redis of somebody else, that keeps what it has answered."""
    words = [str(find_server()), "--port", str(port), "--dir", str(folder), "--appendonly", "yes", "--save", ""]
    server = subprocess.Popen([*words, "--appendfsync", "always"], stdout=subprocess.DEVNULL)  # noqa: S603

    def answers() -> bool:
        try:
            connect(f"redis://127.0.0.1:{port}").close()
        except TryAgain:
            return False
        return True

    until(answers, "a Redis")
    return server


def test_a_redis_that_goes_away_and_comes_back_costs_nothing(folder: Path) -> None:
    write_files(folder)
    port, data = free_port(), Path(tempfile.mkdtemp(prefix="jr-"))
    write_query(folder, redis={"url": f"redis://127.0.0.1:{port}/0"})
    server = start_redis(data, port)
    try:
        run = Running(folder)
        until(run.has_parts, "the first results")
        server.kill()
        server.wait()
        run.hears("found no answer from Redis")
        server = start_redis(data, port)
        run.hears("goes on after")
        assert 0 == run.ends(), run.said
        assert truth(folder) == written(folder)
        client = connect(f"redis://127.0.0.1:{port}")
        assert [] == client.keys("*")
        client.close()
        assert [] == run.left_behind([])
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(data)


# --- sinks


def test_a_full_disk_is_told_and_nothing_is_lost_when_there_is_room_again(folder: Path) -> None:
    write_files(folder)
    write_query(folder)
    run = Running(folder)
    until(run.has_parts, "the first results")
    collector = run.of("collector")
    assert collector is not None
    before = resource.prlimit(collector, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    run.hears("found no room")
    assert "out.csv" in run.said
    assert run.process.poll() is None
    resource.prlimit(collector, resource.RLIMIT_FSIZE, before)
    run.hears("goes on after")
    assert 0 == run.ends(), run.said
    assert truth(folder) == written(folder)
    assert [] == run.left_behind([])


def test_a_sink_that_nobody_can_write_is_refused_with_the_reason_and_nothing_is_left(folder: Path) -> None:
    write_files(folder)
    write_query(folder, sinks=[{"file": {"path": "/proc/joinery/out.csv"}}])
    run = Running(folder)
    check_that_nothing_is_left(run, [])
    assert 2 == run.process.returncode
    assert "/proc/joinery" in run.said
    assert "wanted a place to write" in run.said


# --- workers


def test_a_worker_that_hangs_is_taken_for_lost_and_fenced_when_it_goes_on(folder: Path) -> None:
    write_files(folder, span_ms=10_000)
    write_query(folder)
    run = Running(folder)
    until(run.has_parts, "the first results")
    pid = run.kill("worker-1", signal.SIGSTOP)
    try:
        run.hears("worker-1 is silent and taken for lost")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert 0 == run.ends(), run.said
    assert truth(folder) == written(folder)
    assert [] == run.left_behind([])


def test_workers_that_are_killed_again_and_again_and_all_at_once_cost_nothing(folder: Path) -> None:
    write_files(folder, span_ms=12_000)
    write_query(folder)
    run = Running(folder)
    until(run.has_parts, "the first results")
    first = run.kill("worker-1")
    until(lambda: run.of("worker-1") not in (None, first), "another worker-1")
    second = run.kill("worker-1")
    until(lambda: run.of("worker-1") not in (None, second), "a third worker-1")
    for name in ("worker-0", "worker-1"):
        run.kill(name)
    run.hears("worker-1 was killed", 3)
    run.hears("worker-0 was killed")
    assert 0 == run.ends(2 * PATIENCE_S), run.said
    assert truth(folder) == written(folder)
    assert [] == run.left_behind([])
