"""The dashboard's frames and their way to a reader, without a browser."""

import http.client
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from joinery.adapters.dashboard import Change, Dashboard, Film, Other, Sight
from joinery.adapters.dashboard.frames import COLUMNS, KEPT, in_words
from joinery.adapters.dashboard.serving import STATIC
from joinery.adapters.http_probes import MOST_AT_ONCE, MOST_ENDLESS, Probes
from joinery.elastic.beta import BetaRule, DegreeInputs, Grow, Keep, Shrink
from joinery.elastic.load import GroupLoad, LoadReport, Role
from joinery.flow.delays import Delays
from joinery.machine.messages import Event, EventKind, MoveView, Overview, StreamView, WorkerView
from joinery.model.errors import TryAgain
from joinery.model.ids import GroupId, RecordNo, WorkerId
from joinery.model.spec import JoinQuerySpec
from joinery.model.time import DEAD, FOREVER

S = 10**9
STREAM = {"schema": {"k": "int64"}, "window": "10s"}
SPEC = JoinQuerySpec.parse(
    {
        "streams": [{"name": "orders", **STREAM}, {"name": "bills", **STREAM, "window": {"count": 1000}}],
        "join": {"on": ["k"]}, "sinks": [{"count": {}}], "partitions": 4,
    }
)  # fmt: skip
W0, W1 = WorkerId("worker-0"), WorkerId("worker-1")


def view(at_s: float, rows: int = 0, **more: Any) -> Overview:
    marks = more.pop("marks", (10 * S, 12 * S))
    streams = tuple(StreamView(rows=rows, late=1, rows_per_s=0.0, watermark_ns=mark) for mark in marks)
    return Overview(at_ns=int(at_s * S), records=RecordNo(7), streams=streams, uncommitted=5, **more)


def sight(of: Overview | None, now_s: float = 100.0, **more: Any) -> Sight:
    return Sight(view=of, spec=SPEC, now_ns=int(now_s * S), **more)


def film() -> Film:
    return Film("trial", "local")


def delays(*milliseconds: int) -> Delays:
    return Delays.of(np.array(milliseconds) * 10**6, np.ones(len(milliseconds), np.int64))


def test_before_the_first_overview_it_starts_and_tells_what_the_runner_saw() -> None:
    frame = film().add(sight(None, notes=("worker-0 was killed",)))
    assert ("starting", ["worker-0 was killed"]) == (frame["state"], [one["text"] for one in frame["events"]])


def test_rates_and_delays_are_of_what_came_between_two_overviews_and_stand_until_the_next() -> None:
    made = film()
    first = made.add(sight(view(10, 1000, results=5, produced=delays(4000))))
    assert [None] * 4 == list(first["point"][1:5])
    second = made.add(sight(view(12, 1500, results=25, produced=delays(4000, 10, 10, 10)), 102.0))
    assert (500.0, 10.0) == second["point"][1:3]
    assert 0.009 < second["point"][3] <= second["point"][4] < 0.012
    third = made.add(sight(view(12, 1500, results=25, produced=delays(4000, 10, 10, 10)), 103.0))
    assert second["point"][1:] == third["point"][1:]
    fourth = made.add(sight(view(13, 1500, results=25, produced=delays(4000, 10, 10, 10)), 104.0))
    assert (0.0, 0.0, None, None) == fourth["point"][1:5]


def test_a_gateway_that_begins_anew_has_no_rates_at_first() -> None:
    made = film()
    made.add(sight(view(10, 1000, results=5, produced=delays(1, 2))))
    assert [None] * 4 == list(made.add(sight(view(12, 1100, results=9)))["point"][1:5])


def test_the_past_is_bounded_and_has_one_column_for_each_number() -> None:
    made = film()
    for second in range(KEPT + 5):
        made.add(sight(view(second), float(second)))
    past = made.past()
    assert [*COLUMNS] == [*past]
    assert {KEPT} == {len(column) for column in past.values()}
    assert 5.0 == past["at"][0]


def test_watermarks_are_shown_with_what_they_are_behind_and_not_where_there_is_none() -> None:
    (orders, bills) = film().add(sight(view(1)))["streams"]
    assert ("orders", "10s", 10.0, 90.0, 2.0) == (
        *(orders[key] for key in ("name", "window", "watermark", "lag", "behind")),
    )
    assert ("last 1,000 rows", 0.0) == (bills["window"], bills["behind"])
    (orders, bills) = film().add(sight(view(1, marks=(DEAD, FOREVER))))["streams"]
    assert (None, False, None, True) == (orders["watermark"], orders["ended"], bills["lag"], bills["ended"])


def test_workers_groups_and_moves_are_shown() -> None:
    groups = (GroupLoad(group=GroupId(1), memory_bytes=10), GroupLoad(group=GroupId(3), memory_bytes=30))
    report = LoadReport(worker=W1, occupancy=0.7, busy=0.9, memory_bytes=40, groups=groups)
    workers = (
        WorkerView(worker=W0, is_up=False, groups=2),
        WorkerView(worker=W1, is_up=True, groups=2, role=Role.SUPPLIER, report=report),
    )
    done = MoveView(group=GroupId(2), source=W0, target=W1, nbytes=9, is_planned=False, begun_ns=S, pause_ns=S // 2)
    frame = film().add(
        sight(
            view(1, workers=workers, degree=2, moves=(done,), moves_done=1, under_way=(replace(done, pause_ns=None),))
        )
    )
    assert [-1, 1, -1, 1] == frame["owners"]
    assert [0, 10, 0, 30] == frame["sizes"]
    assert [(False, None), (True, "supplier")] == [(one["up"], one["role"]) for one in frame["workers"]]
    assert (0.5, False, None) == (
        frame["moves"][0]["pause"],
        frame["moves"][0]["planned"],
        frame["underWay"][0]["pause"],
    )
    json.dumps(frame, allow_nan=False)


def test_events_are_told_once_though_both_gateway_and_runner_have_them() -> None:
    events = (Event(99 * S, EventKind.WORKER_LOST, "worker-1 is lost"),)
    frame = film().add(sight(view(1, events=events), notes=("worker-1 is lost", "Redis has died")))
    assert ["worker-1 is lost", "Redis has died"] == [one["text"] for one in frame["events"]]


def test_decisions_are_told_in_words() -> None:
    inputs = DegreeInputs(
        rule=BetaRule(), degree=2, ready=2, n_sup=2, n_con=0, busy=2.0, memory=0.1, back_pressure=False
    )
    grow, shrink = Grow(by=1, because="so", inputs=inputs), Shrink(by=1, because="so", inputs=inputs)
    keep = Keep(because="so", inputs=inputs, blocked_by=("max",))
    assert ["1 more: so", "1 fewer: so", "keep 2: so (held back by max)"] == [*map(in_words, (grow, shrink, keep))]
    frame = film().add(
        sight(view(1), decision=keep, change=Change(S, "1 more: so"), others=(Other("two", "http://127.0.0.1:1/"),))
    )
    assert (in_words(keep), 1.0, "two") == (frame["decision"], frame["change"]["at"], frame["others"][0]["name"])


# --- the way to a reader


class Scene:
    """What is seen, set by the test."""

    def __init__(self) -> None:
        self.sight: Sight | None = None

    def look(self) -> Sight:
        if self.sight is None:
            raise TryAgain("not now")
        return self.sight


@pytest.fixture(name="scene")
def a_scene() -> Scene:
    return Scene()


@pytest.fixture(name="probes")
def some_probes() -> Iterator[Probes]:
    probes = Probes("127.0.0.1:0")
    yield probes
    probes.close()


def listening(probes: Probes) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", probes.port, timeout=10)
    connection.request("GET", "/events")
    return connection


def event_of(answer: http.client.HTTPResponse) -> tuple[str, Any]:
    name = ""
    while True:
        line = answer.readline().decode().rstrip("\n")
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            return name, json.loads(line.removeprefix("data: "))
        elif line == "" and answer.isclosed():
            return "closed", None


def test_the_past_comes_first_then_frames_and_the_last_word_at_the_end(probes: Probes, scene: Scene) -> None:
    scene.sight = sight(view(1))
    board = Dashboard(probes, film(), scene.look)
    time.sleep(0.2)
    connection = listening(probes)
    answer = connection.getresponse()
    assert "text/event-stream" == answer.getheader("Content-Type")
    name, told = event_of(answer)
    assert ("past", "running", 1) == (name, told["frame"]["state"], len(told["past"]["at"]))
    scene.sight = sight(view(2, 50))
    name, told = event_of(answer)
    assert ("frame", "running") == (name, told["state"])
    scene.sight = sight(view(3, is_last=True))
    board.close()
    assert "ended" == event_of(answer)[1]["state"]
    assert ("closed", None) == event_of(answer)
    connection.close()


def test_who_cannot_be_looked_at_leaves_the_last_frame_standing(probes: Probes, scene: Scene) -> None:
    board = Dashboard(probes, film(), scene.look)
    connection = listening(probes)
    assert ("past", {"past": {name: [] for name in COLUMNS}, "frame": None}) == event_of(connection.getresponse())
    connection.close()
    board.close()


def test_its_files_are_there_and_name_nothing_from_elsewhere(probes: Probes, scene: Scene) -> None:
    board = Dashboard(probes, film(), scene.look)
    for page in STATIC:
        connection = http.client.HTTPConnection("127.0.0.1", probes.port, timeout=10)
        connection.request("GET", page)
        answer = connection.getresponse()
        text = answer.read().decode()
        assert 200 == answer.status
        elsewhere = text.replace("http://www.w3.org/2000/svg", "").replace(r"^http:\/\/", "")
        assert "http:" not in elsewhere, page
        assert "//" not in [line.strip()[:2] for line in elsewhere.splitlines() if "url(" in line]
        assert "innerHTML" not in text, page
        assert " style=" not in text, page
        connection.close()
    board.close()


def test_probes_are_answered_however_many_look(probes: Probes, scene: Scene) -> None:
    board = Dashboard(probes, film(), scene.look)
    assert MOST_ENDLESS > MOST_AT_ONCE
    readers = []
    for _ in range(MOST_ENDLESS):
        readers.append(listening(probes))
        event_of(readers[-1].getresponse())
    one_more = listening(probes)
    assert 503 == one_more.getresponse().status
    one_more.close()
    connection = http.client.HTTPConnection("127.0.0.1", probes.port, timeout=10)
    connection.request("GET", "/livez")
    assert 200 == connection.getresponse().status
    connection.close()
    for reader in readers:
        reader.close()
    board.close()
