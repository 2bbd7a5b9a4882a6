"""Gateway and collector killed in a run whose log is on disk: what was counted and what can be asked for stays."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from joinery.cli.local import LocalRun
from joinery.client import Query, connect
from tests.support.faults import until
from tests.support.running import counted, frame, running, truth, write_query

A, B = frame(12_000, 1), frame(9_000, 2)
LATE = frame(70, 3, span_ms=1)
"""Rows from the beginning, which come when the stream has passed it."""
DURABLE = {"durability": "wal", "interval": "200ms"}


def kill(run: LocalRun, name: str) -> None:
    """End a process as the kernel would, and wait until another one has taken its place."""
    pid = run._children.pids[name]
    os.kill(pid, signal.SIGKILL)
    until(lambda: run._children.pids.get(name, pid) != pid, f"another {name}")


def kill_leaving(run: LocalRun, name: str) -> None:
    """End a worker that has been told to leave, if it is still there; nobody takes its place."""
    if (pid := run._children.pids.get(name)) is not None:
        os.kill(pid, signal.SIGKILL)
    until(lambda: name not in run._children.pids, f"the end of {name}")


def beside(run: LocalRun, work: Callable[[], None]) -> None:
    """Do something while the run is looked after, until it has ended."""
    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)
            run.stop()

    thread = threading.Thread(target=guarded)
    thread.start()
    ended = run.wait(lambda _: None, every_s=0.05)
    thread.join(60)
    if failed:
        raise failed[0]
    assert ended, run.failed


def push(client: Query, start: int, stop: int) -> None:
    """So many percent of both streams: they go on side by side."""
    for name, table in (("a", A), ("b", B)):
        first, end = (table.num_rows * part // 100 for part in (start, stop))
        client.push(name, table.slice(first, end - first))
    client.flush()


def committed(run: LocalRun) -> int:
    return run.progress.last.results if run.progress.last is not None else 0


def test_results_and_late_rows_are_counted_from_the_beginning_whoever_dies(tmp_path: Path) -> None:
    with running(write_query(tmp_path, checkpoint=DURABLE, epochs={"reorganization": "1s"})) as run:

        def work() -> None:
            with connect(run.gateway, patience=60) as client:
                push(client, 0, 50)
                client.push("a", LATE)
                client.flush()
                until(lambda: committed(run) > 1000, "the first results")
                kill(run, "gateway")
                push(client, 50, 65)
                kill(run, "collector")
                push(client, 65, 75)
                kill(run, "gateway")
                push(client, 75, 100)
                client.end("a")
                client.end("b")

        beside(run, work)
        view = run.progress.last
    assert view is not None
    assert view.is_last
    assert [A.num_rows + LATE.num_rows, B.num_rows] == [stream.rows for stream in view.streams]
    assert ([LATE.num_rows, 0], LATE.num_rows) == ([stream.late for stream in view.streams], view.late)
    assert truth(A, B).total() == view.results


# --- subscribers


def test_a_slow_subscriber_gets_every_result_once_though_the_collector_is_killed(tmp_path: Path) -> None:
    found: list[pa.RecordBatch] = []
    behind: list[int] = []
    with running(write_query(tmp_path, checkpoint=DURABLE, epochs={"reorganization": "1s"})) as run:
        may_read = threading.Event()
        may_read.set()

        def read(client: Query) -> None:
            for batch in client.results():
                found.append(batch)
                may_read.wait()

        def rows_read() -> int:
            return sum(batch.num_rows for batch in found)

        def work() -> None:
            with connect(run.gateway, patience=60) as client:
                reading = threading.Thread(target=read, args=[client])
                reading.start()
                for start in range(0, 100, 4):
                    if start in (20, 60):
                        may_read.clear()
                    push(client, start, start + 4)
                    if start in (40, 80):
                        until(lambda: committed(run) > rows_read() + 2000, "a reader that is behind")
                        behind.append(committed(run) - rows_read())
                        kill(run, "collector")
                        may_read.set()
                client.end("a")
                client.end("b")
                reading.join(90)
                assert not reading.is_alive()

        beside(run, work)
        view = run.progress.last
    assert 2 == len(behind)
    assert truth(A, B) == counted(found)
    assert view is not None
    assert truth(A, B).total() == view.results


def test_results_from_before_the_first_subscriber_are_read_after_a_collectors_death(tmp_path: Path) -> None:
    found: list[pa.RecordBatch] = []
    with running(write_query(tmp_path, checkpoint=DURABLE, epochs={"reorganization": "1s"})) as run:

        def work() -> None:
            with connect(run.gateway, patience=60) as client:
                push(client, 0, 50)
                until(lambda: committed(run) > 1000, "results")
                first = client.results()
                found.append(next(iter(first)))
                token = first.token
                first.close()
                kill(run, "collector")
                push(client, 50, 100)
                client.end("a")
                client.end("b")
                found.extend(client.results(token))

        beside(run, work)
    assert truth(A, B) == counted(found)
