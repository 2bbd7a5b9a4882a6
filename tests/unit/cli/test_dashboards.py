"""Where the dashboard of a run on this machine is, what it knows of other runs, and what it refuses."""

import http.client
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from joinery.cli import dashboards
from joinery.cli.dashboards import LocalDashboard
from joinery.cli.progress import Progress
from joinery.cli.running import Announcement, Running, addresses, all_running
from joinery.machine.messages import Overview, StreamView
from joinery.machine.operator import OperatorMachine
from joinery.model.errors import UserMustAct
from joinery.model.ids import RecordNo
from joinery.model.spec import JoinQuerySpec

STREAM = {"schema": {"k": "int64"}, "window": "10s"}
SPEC = JoinQuerySpec.parse(
    {"streams": [{"name": "a", **STREAM}, {"name": "b", **STREAM}], "join": {"on": ["k"]}, "sinks": [{"count": {}}]}
)


@dataclass
class Run:
    """What the dashboard sees of a run."""

    progress: Progress = field(default_factory=lambda: Progress("trial", SPEC))
    operator: OperatorMachine = field(default_factory=lambda: OperatorMachine(SPEC))
    last_change: None = None


@pytest.fixture(name="taken")
def a_port_that_is_taken() -> Iterator[str]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield f"127.0.0.1:{holder.getsockname()[1]}"


def opened(address: str) -> LocalDashboard:
    return LocalDashboard(Run(), address)  # type: ignore[arg-type]


def asked(url: str, page: str) -> str:
    connection = http.client.HTTPConnection(url.removeprefix("http://").strip("/"), timeout=10)
    connection.request("GET", page)
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def test_the_usual_port_that_is_taken_gives_way_to_a_free_one(taken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboards, "USUAL", taken)
    board = opened(taken)
    assert board.url.startswith("http://127.0.0.1:")
    assert taken not in board.url
    board.close()


def test_a_port_that_was_asked_for_and_is_taken_is_refused(taken: str) -> None:
    with pytest.raises(UserMustAct, match=f"--dashboard: found {taken} that cannot be listened on"):
        opened(taken)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(UserMustAct, match="--dashboard: found '8080', wanted HOST:PORT"):
        opened("8080")


def test_metrics_are_those_of_the_last_overview() -> None:
    run = Run()
    board = LocalDashboard(run, "127.0.0.1:0")  # type: ignore[arg-type]
    assert "" == asked(board.url, "/metrics").strip()
    streams = tuple(StreamView(rows=rows, late=0, rows_per_s=0.0, watermark_ns=0) for rows in (5, 6))
    run.progress.last = Overview(at_ns=1, records=RecordNo(3), streams=streams)
    assert 'joinery_gateway_tuples_received_total{joinquery="trial",stream="b"} 6' in asked(board.url, "/metrics")
    board.close()


def test_a_run_knows_the_dashboards_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    query = tmp_path / "query.yaml"
    document: dict[str, Any] = {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": "two"}}
    spec = {
        "streams": [{"name": "a", **STREAM}, {"name": "b", **STREAM}],
        "join": {"on": ["k"]},
        "sinks": [{"count": {}}],
    }
    query.write_text(json.dumps({**document, "spec": spec}))
    announcement = Announcement(query, "two", "g:1", "c:1")
    announcement.dashboard = "http://127.0.0.1:1/"
    announcement.begin()
    board = opened("127.0.0.1:0")
    assert [("two", "http://127.0.0.1:1/")] == [(one.name, one.address) for one in board._sight().others]
    announcement.end()
    assert () == board._sight().others
    board.close()


def test_a_file_of_an_older_joinery_has_no_dashboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "joinery").mkdir()
    old = {"name": "old", "file": "f", "gateway": "g:1", "collector": "c:1", "pid": os.getpid()}
    (tmp_path / "joinery" / "old.json").write_text(json.dumps(old))
    assert [Running(**old, dashboard="")] == all_running()


def test_the_first_line_says_where_it_is() -> None:
    assert addresses(SPEC, Path("q.yaml"), "g:1", "http://127.0.0.1:7480/").startswith(
        "dashboard: http://127.0.0.1:7480/"
    )
    assert addresses(SPEC, Path("q.yaml"), "g:1").startswith("results: ")
