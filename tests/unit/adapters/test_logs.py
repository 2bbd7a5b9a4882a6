"""One logger: JSON with who says it, or lines for people; and what a process tells of its life."""

import json
import logging
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest

from joinery.adapters import logs
from joinery.adapters.chronicle import Chronicle
from joinery.machine import facts, messages
from joinery.machine.orders import Stop, WakeAt
from joinery.model.ids import COLLECTOR, GATEWAY, OPERATOR
from tests.unit.machine.building import hello
from tests.unit.machine.test_gateway import PEER0, W0, Driver
from tests.unit.machine.test_looking import decided


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    logs.begin("", environment={})
    root.handlers, root.level = handlers, level


def begun(shape: str, **more: Any) -> StringIO:
    out = StringIO()
    environment = {"JOINERY_LOG": shape, **more.pop("environment", {})}
    logs.begin(more.pop("component", "worker"), environment=environment, stream=out, **more)
    return out


def lines(out: StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_of_json_says_who_when_and_what() -> None:
    out = begun("json", query="orders", worker="worker-1")
    logs.of_term(7)
    logs.tell("it moved", group=3)
    (line,) = lines(out)
    assert line.pop("time").endswith("+00:00")
    assert {
        "level": "info", "component": "worker", "query": "orders", "worker": "worker-1", "term": 7,
        "message": "it moved", "group": 3,
    } == line  # fmt: skip


def test_libraries_log_through_it_with_their_name_and_error() -> None:
    out = begun("json", component="gateway")
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("grpc").exception("a %s", "failure")
    (line,) = lines(out)
    assert ("error", "grpc", "a failure") == (line["level"], line["logger"], line["message"])
    assert "ValueError: no" in line["error"]


def test_text_is_for_people_and_has_warnings_only() -> None:
    out = begun("text", worker="worker-1")
    logs.tell("it moved")
    logging.getLogger("x").warning("it is slow")
    assert "worker-1: it is slow\n" == out.getvalue()


def test_the_level_can_be_said() -> None:
    out = begun("text", component="gateway", environment={"JOINERY_LOG_LEVEL": "INFO"})
    logs.tell("it moved")
    assert "gateway: it moved\n" == out.getvalue()
    assert "" == begun("json", environment={"JOINERY_LOG_LEVEL": "error"}).getvalue()


def test_what_the_environment_says_wrong_is_told_and_stops_nobody() -> None:
    out = begun("yaml", component="gateway", environment={"JOINERY_LOG_LEVEL": "loud"})
    assert [
        "gateway: JOINERY_LOG: found 'yaml', wanted one of text, json; leave it out",
        "gateway: JOINERY_LOG_LEVEL: found 'loud', wanted one of debug, info, warning, error; leave it out",
    ] == out.getvalue().splitlines()


def test_a_complaint_is_json_where_all_is_and_else_as_people_read_it(capsys: pytest.CaptureFixture[str]) -> None:
    out = begun("json", component="gateway")
    logs.complain("gateway", "found nothing")
    assert [("error", "found nothing")] == [(line["level"], line["message"]) for line in lines(out)]
    begun("text")
    logs.complain("gateway", "found nothing")
    assert "gateway: found nothing\n" == capsys.readouterr().err


def test_a_gateway_tells_its_term_who_comes_and_what_is_decided_and_nothing_per_record() -> None:
    out = begun("json", component="gateway", query="orders")
    driver = Driver()
    chronicle = Chronicle(driver.machine)

    def tell(fact: facts.Fact) -> None:
        chronicle.saw(driver.now, fact, driver.machine.handle(fact, driver.now))

    driver.open()
    chronicle.saw(0, facts.GatewayOpened(driver.machine.term, driver.machine.intake.head, (), None), [])
    tell(facts.Received(PEER0, hello("worker-0")))
    for _ in range(50):
        tell(facts.Tick())
    tell(facts.Received(OPERATOR, decided(occupancy=0.9)))
    tell(facts.Received(OPERATOR, decided(occupancy=0.0)))
    told = [(line.get("event"), line["message"], line.get("term")) for line in lines(out)]
    assert [
        ("Opened", "the log is open: 0 records, 0 of them read again", 1),
        ("WorkerJoined", "worker-0 is here", 1),
        ("Decided", "decided: 1 more: 1 supplier > 0.5 x 0 consumers", 1),
    ] == told


def test_a_lost_worker_is_a_warning_in_a_cluster() -> None:
    out = begun("json", component="gateway")
    driver = Driver().run()
    chronicle = Chronicle(driver.machine)
    driver.machine.watch.lost(W0, 5)
    chronicle.saw(5, facts.Tick(), [])
    last = lines(out)[-1]
    assert ("warning", "WorkerLost", True) == (last["level"], last["event"], W0 in last["message"])


def test_connections_that_a_process_dials_and_its_end_are_told() -> None:
    out = begun("json")
    chronicle = Chronicle(Driver().machine)
    for fact in (facts.Connected(GATEWAY), facts.Disconnected(COLLECTOR), facts.Connected(OPERATOR)):
        chronicle.saw(0, fact, [])
    chronicle.saw(0, facts.Received(GATEWAY, messages.Finished()), [Stop("the query has ended"), WakeAt(7)])
    assert [
        "connected to the gateway", "the connection to the collector is gone", "stops: the query has ended",
    ] == [line["message"] for line in lines(out)]  # fmt: skip
