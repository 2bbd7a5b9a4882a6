"""What a run shows while it runs and at its end, from the gateway's overviews."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from joinery.cli import summary
from joinery.cli.progress import Progress
from joinery.elastic.load import LoadReport, Role
from joinery.flow.delays import Delays
from joinery.machine.messages import Event, EventKind, MoveView, Overview, StreamView, WorkerView
from joinery.model.ids import GroupId, RecordNo, WorkerId
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_sections import LateSpec, SinkSpec

MS = 10**6
STREAM = {"schema": {"k": "int64"}, "window": "10s"}
SPEC = JoinQuerySpec.parse(
    {
        "streams": [{"name": "orders", **STREAM}, {"name": "bills", **STREAM}], "join": {"on": ["k"]},
        "sinks": [{"file": {"path": "out.csv"}}], "late": {"sink": {"file": {"path": "late.csv"}}},
    }
)  # fmt: skip
W0, W1 = WorkerId("worker-0"), WorkerId("worker-1")


def delays(*milliseconds: int) -> Delays:
    return Delays.of(np.array(milliseconds) * MS, np.ones(len(milliseconds), np.int64))


def view(at_s: float = 0.0, degree: int = 1, **more: Any) -> Overview:
    streams = tuple(StreamView(rows=rows, late=rows // 500, rows_per_s=50.5, watermark_ns=0) for rows in (1000, 2000))
    return Overview(at_ns=int(at_s * 1e9), records=RecordNo(1), streams=streams, degree=degree, **more)


def move(group: int, pause_ms: int | None, *, planned: bool = True) -> MoveView:
    pause = None if pause_ms is None else pause_ms * MS
    return MoveView(
        group=GroupId(group), source=W0, target=W1, nbytes=2048, is_planned=planned, begun_ns=0, pause_ns=pause
    )  # fmt: skip


@pytest.fixture
def progress() -> Progress:
    return Progress("trial", SPEC)


def shown(progress: Progress) -> str:
    out = StringIO()
    Console(file=out, width=140).print(progress.table(8.29))
    return out.getvalue()


def test_before_the_first_overview_it_is_starting(progress: Progress) -> None:
    assert "trial  8.3 s  starting" in shown(progress)


def test_a_worker_that_has_not_reported_is_new_and_one_that_went_is_gone(progress: Progress) -> None:
    workers = (WorkerView(worker=W0, is_up=True, groups=4), WorkerView(worker=W1, is_up=False, groups=0))
    progress.saw(view(workers=workers))
    rows = [line.split("│") for line in shown(progress).splitlines() if "│ worker-" in line]
    assert [["worker-0", "new"], ["worker-1", "gone"]] == [[cell.strip() for cell in row[1:3]] for row in rows]


def test_the_table_shows_rate_delay_degree_role_and_moves(progress: Progress) -> None:
    report = LoadReport(worker=W0, occupancy=0.61, busy=0.93, memory_bytes=3 << 20)
    worker = WorkerView(worker=W0, is_up=True, groups=60, role=Role.SUPPLIER, report=report)
    progress.saw(
        view(workers=(worker,), results=12, produced=delays(20), moves=(move(7, 18),), moves_done=1,
             under_way=(move(8, None),))
    )  # fmt: skip
    text = shown(progress)
    for part in (
        "101 rows/s",
        "12 results",
        "delay p50 20 ms, p99 20 ms",
        "1 worker ",
        "supplier",
        "0.61",
        "93%",
        "3.0 MiB",
    ):
        assert part in text + " "
    assert "group 7: worker-0 → worker-1, 2.0 KiB, paused 18 ms" in text
    assert "group 8: worker-0 → worker-1, 2.0 KiB, under way" in text


def test_rows_that_come_before_the_first_worker_are_seen_to_wait(progress: Progress) -> None:
    progress.saw(view(degree=0))
    assert progress.headline().endswith("0 results  waits for its first worker")
    progress.saw(view())
    assert progress.headline().endswith("1 worker")


def test_the_live_delay_is_that_of_the_newest_results(progress: Progress) -> None:
    first = delays(3000)
    progress.saw(view(produced=first))
    progress.saw(view(produced=first + delays(10, 10)))
    assert 2 == progress.recent.rows
    assert "p50 11 ms" in progress.headline()


def test_changes_of_the_degree_and_moves_are_news_once(progress: Progress) -> None:
    progress.saw(view(0, 1))
    progress.decided("1 supplier > 0.5 x 0 consumers")
    progress.saw(view(1, 2, moves=(move(1, 10), move(2, 30)), moves_done=2))
    progress.saw(view(2, 2, moves=(move(1, 10), move(2, 30)), moves_done=2))
    assert [
        "1 → 2 workers: 1 supplier > 0.5 x 0 consumers", "2 groups moved, paused median 20 ms, longest 30 ms",
    ] == progress.news()  # fmt: skip
    assert [] == progress.news()


def test_what_went_wrong_is_said_now_and_at_the_end_and_who_came_is_not(progress: Progress) -> None:
    came = Event(0, EventKind.WORKER_JOINED, "worker-0 is here")
    lost = Event(1, EventKind.WORKER_LOST, "worker-1 is silent and taken for lost")
    progress.saw(view(events=(came,), events_seen=1))
    progress.saw(view(events=(came, lost), events_seen=2))
    progress.saw(view(events=(came, lost), events_seen=2))
    assert [lost.text] == progress.news() == progress.notes


def told(progress: Progress, tmp_path: Path, **more: Any) -> dict[str, Any]:
    wanted = {"seconds": 8.29, "ended": True, "failed": None} | more
    return summary.as_json(progress, tmp_path, None, **wanted)


def test_the_summary_says_the_same_to_people_and_to_machines(progress: Progress, tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("x" * 2048)
    progress.saw(view(0, 1))
    progress.saw(view(1, 3, moves=(move(1, 10),), moves_done=1))
    progress.saw(view(2, 1, moves=(move(1, 10), move(2, 30)), moves_done=2, results=12, produced=delays(20, 50)))
    found = told(progress, tmp_path)
    assert found == json.loads(json.dumps(found, allow_nan=False))
    assert ({"orders": 1000, "bills": 2000}, 12, 2) == (found["rows"], found["results"], found["moves"]["count"])
    assert [(0.0, 1), (1.0, 3), (2.0, 1)] == [(one["at"], one["workers"]) for one in found["degree"]]
    assert (0.02, 0.03, 0.05) == (found["moves"]["pauseMedian"], found["moves"]["pauseMax"], found["delay"]["max"])
    late = tmp_path / "late"
    assert [
        "trial: done in 8.3 s",
        "  rows in  orders 1,000, bills 2,000",
        f"  results  12 in {tmp_path / 'out.csv'} (2.0 KiB)",
        f"  late     6 rows (orders 2, bills 4) in {late}-orders.csv, {late}-bills.csv",
        "  workers  1 → 3 → 1",
        "  moves    2 groups, paused median 20 ms, longest 30 ms",
        "  delay    p50 22 ms, p99 50 ms, max 50 ms (arrival of the later row to result made)",
    ] == summary.as_lines(found)


def test_late_rows_that_nobody_keeps_are_a_warning_with_the_remedy(tmp_path: Path) -> None:
    progress = Progress("trial", SPEC.model_copy(update={"late": None}))
    progress.saw(view())
    found = told(progress, tmp_path)
    assert any("6 rows (orders 2, bills 4), not kept" in line for line in summary.as_lines(found))
    warning = summary.late_warning(found)
    assert warning is not None
    assert "2 of 1,000 of orders, 4 of 2,000 of bills" in warning
    assert all(remedy in warning for remedy in ("spec.streams[].time.lateness", "--lateness", "late: {sink:"))


def test_late_rows_that_are_kept_are_no_warning(progress: Progress, tmp_path: Path) -> None:
    progress.saw(view())
    assert None is summary.late_warning(told(progress, tmp_path))


def test_the_rows_of_a_stored_table_do_not_come_in(tmp_path: Path) -> None:
    table = SPEC.streams[1].model_copy(update={"table": object()})
    progress = Progress("trial", SPEC.model_copy(update={"streams": (SPEC.streams[0], table)}))
    progress.saw(view())
    assert "  rows in  orders 1,000" in summary.as_lines(told(progress, tmp_path))


@pytest.mark.parametrize(
    ("failed", "head"),
    [
        ("the collector was killed (SIGKILL)", "trial: failed after 8.3 s: the collector was killed (SIGKILL)"),
        (None, "trial: stopped after 8.3 s; the files of its sinks are as they were"),
    ],
)
def test_a_run_that_did_not_end_says_so(progress: Progress, tmp_path: Path, failed: str | None, head: str) -> None:
    progress.saw(replace(view(), results=5))
    lines = summary.as_lines(told(progress, tmp_path, ended=False, failed=failed))
    assert (head, "  results  5 committed, but not written") == (lines[0], lines[2])


def test_what_a_run_wrote_before_it_was_stopped_is_said_to_be_there(tmp_path: Path) -> None:
    redis = SinkSpec.model_validate({"redisStream": {"key": "found"}})
    late = LateSpec.model_validate({"sink": {"redisStream": {"key": "late"}}})
    progress = Progress("trial", SPEC.model_copy(update={"sinks": (*SPEC.sinks, redis), "late": late}))
    progress.saw(replace(view(), results=5))
    lines = summary.as_lines(told(progress, tmp_path, ended=False))
    assert "  results  5 committed, in Redis Stream found, but not in files" == lines[2]
    assert "  late     6 rows (orders 2, bills 4)" == lines[3]


def test_a_run_of_which_nothing_was_heard_still_has_a_summary(progress: Progress, tmp_path: Path) -> None:
    assert "  rows in  none" in summary.as_lines(told(progress, tmp_path))


def test_delays_of_a_gateway_that_was_started_again_are_said_to_be_since_then(
    progress: Progress, tmp_path: Path
) -> None:
    progress.saw(view(produced=delays(10, 10)))
    progress.saw(view(produced=delays(20)))
    assert any(
        "result made, since the gateway's restart)" in line for line in summary.as_lines(told(progress, tmp_path))
    )
