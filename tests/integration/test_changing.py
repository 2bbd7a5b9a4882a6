"""A running query is changed, its processes are killed, it is stopped: exact by the oracle that knows the changes."""

import subprocess
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from joinery.adapters.recording import read_windows
from joinery.cli.asking import ask
from joinery.cli.checking import verify_output
from joinery.cli.local import LocalRun
from joinery.cli.query_file import read_query
from joinery.cli.running import all_running
from joinery.client import Query, connect
from joinery.machine.messages import ChangeQuery, EndStreams, QueryChanged, SettingsView
from joinery.model.errors import BadSpec
from joinery.model.quantities import parse_window
from joinery.model.spec import JoinQuerySpec
from tests.integration.test_restarts import beside, kill, kill_leaving
from tests.support.faults import until
from tests.support.running import command, frame, joinery, running, write_query

A, B = frame(6_000, 1, span_ms=60_000), frame(5_000, 2, span_ms=60_000)
DURABLE = {"durability": "wal", "interval": "200ms"}
FILE = [{"file": {"path": "out.parquet"}}]


def edited(query: Path, *windows: str, **more: Any) -> JoinQuerySpec:
    """The query file with other windows and settings, as a person would edit it."""
    held = yaml.safe_load(query.read_text())
    for stream, window in zip(held["spec"]["streams"], windows, strict=False):
        stream["window"] = window
    held["spec"].update(more)
    query.write_text(yaml.safe_dump(held))
    return read_query(query)


def changed(run: LocalRun, spec: JoinQuerySpec) -> QueryChanged:
    answer = ask(run.gateway, ChangeQuery(spec), 60)
    assert isinstance(answer, QueryChanged)
    return answer


def push(client: Query, start: int, stop: int) -> None:
    """So many percent of both streams: they go on side by side."""
    for name, table in (("a", A), ("b", B)):
        first, end = (table.num_rows * part // 100 for part in (start, stop))
        client.push(name, table.slice(first, end - first))
    client.flush()


def settings(run: LocalRun) -> SettingsView | None:
    return run.progress.last.settings if run.progress.last is not None else None


def verified(query: Path, record: Path) -> list[str]:
    """What the check of the output by the recorded input says, last line first."""
    said: list[str] = []
    verify_output(query, read_query(query), record, said.append)
    return said[::-1]


def test_windows_that_grow_and_shrink_are_exact_whoever_dies(tmp_path: Path) -> None:
    query = write_query(tmp_path, checkpoint=DURABLE, epochs={"reorganization": "1s"}, sinks=FILE, replicas=2)
    record = tmp_path / "record"
    with running(query, record=record) as run:

        def work() -> None:
            with connect(run.gateway, patience=60) as client:
                push(client, 0, 30)
                (grown,) = changed(run, edited(query, "5s")).changes.logged
                assert ("spec.streams[0].window", "300ms", "5s") == (grown.field, grown.found, grown.wanted)
                kill(run, "gateway")
                push(client, 30, 50)
                kill(run, "worker-0")
                push(client, 50, 60)
                assert 2 == len(changed(run, edited(query, "40ms", "9s", replicas=1)).changes.logged)
                kill_leaving(run, "worker-1")
                kill(run, "gateway")
                kill(run, "collector")
                push(client, 60, 100)
                assert changed(run, read_query(query)).changes.is_empty
                client.end("a")
                client.end("b")

        beside(run, work)
    windows, changes = read_windows(record)
    assert tuple(map(parse_window, ("300ms", "120ms"))) == windows
    assert [tuple(map(parse_window, pair)) for pair in (("5s", "120ms"), ("40ms", "9s"))] == [
        change.windows for change in changes
    ]
    said = verified(query, record)
    assert "missing 0, extra 0, duplicate 0" in said[0], said
    assert pq.read_table(tmp_path / "out.parquet").num_rows > 6_000  # every row of a, and its partners


def test_settings_change_at_once_and_outlive_the_gateway(tmp_path: Path) -> None:
    query = write_query(tmp_path, checkpoint=DURABLE, epochs={"reorganization": "1s"}, scaling={"mode": "Manual"})
    with running(query) as run:

        def work() -> None:
            with connect(run.gateway, patience=60) as client:
                push(client, 0, 20)
                scaling = {"mode": "Manual", "beta": 0.25, "supplierThreshold": 0.75, "consumerThreshold": 0.125}
                answer = changed(run, edited(query, scaling=scaling, replicas=2, epochs={"reorganization": "500ms"}))
                assert (5, None) == (len(answer.changes.at_once), answer.record)
                until(lambda: run.progress.last is not None and run.progress.last.degree == 2, "a second worker")
                edited(query, scaling={"beta": 0.9})  # nobody was told: it must not count
                kill(run, "gateway")
                push(client, 20, 40)
                before = run.progress.last
                until(lambda: run.progress.last is not before, "an overview of the new gateway")
                view = settings(run)
                assert view is not None
                assert (2, 0.25, 0.75, 0.125, 0) == (
                    view.replicas, view.beta, view.supplier_threshold, view.consumer_threshold, view.changes,
                )  # fmt: skip
                assert (2, 0.25) == (run.operator.replicas, run.operator.spec.scaling.beta)
                client.end("a")
                client.end("b")

        beside(run, work)


def test_a_refused_change_names_its_fields_and_changes_nothing_even_for_who_starts_later(tmp_path: Path) -> None:
    query = write_query(tmp_path, checkpoint=DURABLE, epochs={"reorganization": "1s"}, sinks=FILE)
    record = tmp_path / "record"
    with running(query, record=record) as run:

        def work() -> None:
            with connect(run.gateway, patience=60) as client:
                push(client, 0, 50)
                edited(query, "9s", join={"on": ["k"], "type": "inner"}, filter="a.n > 7")
                refused = joinery("change", str(query), "--gateway", run.gateway)
                told = refused.stderr.decode()
                assert 2 == refused.returncode
                assert "spec.join.type: found inner, wanted left; put it back" in told
                assert "spec.filter: found a.n > 7, wanted nothing" in told
                for name in ("gateway", "worker-0", "collector"):  # they find the edited file
                    kill(run, name)
                held = query.read_text()
                query.write_text("spec: [half a line")  # and here one that is being written
                kill(run, "worker-0")
                push(client, 50, 100)
                query.write_text(held)
                client.end("a")
                client.end("b")

        beside(run, work)
    assert ((), 6_000) == (read_windows(record)[1], len(set(rows_of_a(tmp_path))))
    edited(query, "300ms", join={"on": ["k"], "type": "left"}, filter=None)
    assert "missing 0, extra 0, duplicate 0" in verified(query, record)[0]


def rows_of_a(folder: Path) -> list[int]:
    table: pa.Table = pq.read_table(folder / "out.parquet")
    found: list[int] = table["a_n"].to_pylist()
    return found


def test_a_query_that_is_stopped_with_drain_ends_whole(tmp_path: Path) -> None:
    query = write_query(tmp_path, checkpoint=DURABLE, epochs={"reorganization": "1s"}, sinks=FILE)
    record = tmp_path / "record"
    with running(query, record=record) as run:

        def work() -> None:
            with connect(run.gateway, patience=60) as client:
                push(client, 0, 70)
                stopped = joinery("stop", str(query), "--drain", "--wait", "0.1")
                assert b"every stream has ended with record" in stopped.stdout

        beside(run, work)
    assert "missing 0, extra 0, duplicate 0" in verified(query, record)[0]
    assert A.num_rows * 70 // 100 == len(set(rows_of_a(tmp_path)))


def test_sources_that_have_not_ended_are_stopped_by_a_drain(tmp_path: Path) -> None:
    held = yaml.safe_load(write_query(tmp_path, checkpoint=DURABLE, sinks=FILE).read_text())
    for seed, stream in enumerate(held["spec"]["streams"]):
        generator = {"rate": 2000, "seed": seed, "keys": {"distribution": "uniform", "range": 500}}
        stream |= {"schema": {"k": "int64", "n": "int64", "ts": "int64"}, "source": {"generator": generator}}
        stream["source"]["pace"] = "time"
    query, record = tmp_path / "query.yaml", tmp_path / "record"
    query.write_text(yaml.safe_dump(held))
    with running(query, record=record) as run:

        def work() -> None:
            until(lambda: run.progress.last is not None and run.progress.last.results > 500, "some results")
            joinery("stop", str(query), "--drain", "--wait", "0.1")

        beside(run, work)
    assert pq.read_table(tmp_path / "out.parquet").num_rows > 500


def test_a_run_that_is_started_again_goes_on_as_it_was_changed_whatever_its_file_says(tmp_path: Path) -> None:
    query = write_query(tmp_path, checkpoint=DURABLE, epochs={"reorganization": "1s"}, sinks=FILE, alignment="1h")
    record, state = tmp_path / "record", tmp_path / "state"
    with running(query, record=record, state=state) as run:

        def first() -> None:
            with connect(run.gateway, patience=60) as client:
                push(client, 0, 50)
                changed(run, edited(query, "5s", "1s"))
                push(client, 50, 60)
            run.stop()

        thread = threading.Thread(target=first)
        thread.start()
        assert not run.wait(lambda _: None, every_s=0.05)
        thread.join()
    edited(query, join={"on": ["k"], "type": "inner"})
    with pytest.raises(BadSpec, match=r"spec\.join\.type: found inner, wanted left"), running(query, state=state):
        pass
    edited(query, "7s", "1s", join={"on": ["k"], "type": "left"})
    with running(query, record=record, state=state) as run:
        assert "the file asks for another spec.streams[0].window" in " ".join(run.progress.notes)

        def second() -> None:
            with connect(run.gateway, patience=60) as client:
                push(client, 60, 100)
            ask(run.gateway, EndStreams(), 60)  # the producers of the first run will not say that they have ended

        beside(run, second)
    assert [tuple(map(parse_window, ("5s", "1s")))] == [change.windows for change in read_windows(record)[1]]
    assert "missing 0, extra 0, duplicate 0" in verified(query, record)[0]


def test_a_run_is_stopped_at_once_by_its_file(tmp_path: Path) -> None:
    query = write_query(tmp_path)
    run = subprocess.Popen(command("run", str(query), "--quiet"))  # noqa: S603 - our own command
    until(lambda: any(one.file == str(query) for one in all_running()), "the run")
    stopped = joinery("stop", str(query), "--wait", "60")
    assert (0, True) == (stopped.returncode, b"has ended" in stopped.stdout), stopped.stderr
    assert 1 == run.wait(30)
    nobody = joinery("stop", str(query))
    assert (2, True) == (nobody.returncode, b"found no running query" in nobody.stderr)


def test_a_second_run_that_would_write_the_same_file_is_refused_and_the_first_is_stopped_by_its_address(
    tmp_path: Path,
) -> None:
    query = write_query(tmp_path, sinks=FILE)
    run = subprocess.Popen(command("run", str(query), "--quiet"))  # noqa: S603 - our own command
    until(lambda: any(one.file == str(query) for one in all_running()), "the run")
    first = next(one for one in all_running() if one.file == str(query))
    second = joinery("run", str(query))
    assert 2 == second.returncode
    said = f"found a run of {first.name} (process {run.pid}), which writes {tmp_path / 'out.parquet'}"
    assert said in second.stderr.decode()
    stopped = joinery("stop", first.gateway.replace("127.0.0.1", "localhost"), "--wait", "60")
    assert (0, f"{first.name} has ended\n") == (stopped.returncode, stopped.stdout.decode()), stopped.stderr
    assert 1 == run.wait(30)
    nobody = joinery("stop", first.gateway)
    assert (2, True) == (nobody.returncode, b"found no run of this machine at" in nobody.stderr)
