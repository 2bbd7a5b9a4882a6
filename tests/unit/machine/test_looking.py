"""Who looks sees the query, the operator's decisions and where a record is; and changes nothing by it."""

import pytest

from joinery.adapters.dashboard import Film
from joinery.elastic.beta import BetaRule, decide_degree
from joinery.elastic.classify import Thresholds, classify_all
from joinery.elastic.load import GroupLoad, LoadReport
from joinery.gateway.dashboard import sight_of
from joinery.machine import facts, messages
from joinery.machine.looking import KEPT
from joinery.machine.messages import Decided, Look, Looked, RecordPlace, Station
from joinery.model.ids import OPERATOR, GroupId, Peer, RecordNo, WorkerId
from tests.unit.machine.building import SECOND, hello, holdings, key_in, sent
from tests.unit.machine.test_gateway import PEER0, PEER1, W0, W1, A, Driver

SOMEBODY = Peer("somebody")


@pytest.fixture
def driver() -> Driver:
    return Driver().run()


def looked(driver: Driver, record: int | None = None) -> Looked:
    ((peer, answer),) = sent(driver.say(SOMEBODY, Look(None if record is None else RecordNo(record))), Looked)
    assert SOMEBODY == peer
    return answer


def place(driver: Driver, record: int) -> RecordPlace:
    found = looked(driver, record).place
    assert found is not None
    return found


def stations(driver: Driver, record: int) -> dict[int, Station]:
    return {one.group: one.station for one in place(driver, record).groups}


def decided(at_ns: int = 7, occupancy: float = 0.9) -> Decided:
    parts = (GroupLoad(group=GroupId(1), weight=1.0),)
    report = LoadReport(worker=W0, occupancy=occupancy, busy=0.5, groups=parts)
    load = classify_all([report], Thresholds.paper(), degree=1)
    return Decided.of(at_ns, load, decide_degree(load, BetaRule(max_degree=2)))


def test_who_looks_sees_the_overview_the_spec_and_what_was_decided(driver: Driver) -> None:
    driver.say(OPERATOR, decided())
    found = looked(driver)
    assert (1, driver.spec, [decided()], None) == (found.term, found.spec, list(found.decisions), found.place)
    assert [W0, W1] == [one.worker for one in found.view.workers]


def test_the_dashboard_of_a_gateway_shows_the_operators_words(driver: Driver) -> None:
    assert None is Film("orders", "gateway").add(sight_of(driver.machine, 5))["decision"]
    driver.say(OPERATOR, decided(6 * SECOND))
    driver.say(OPERATOR, decided(8 * SECOND, occupancy=0.2))
    frame = Film("orders", "gateway").add(sight_of(driver.machine, 9 * SECOND))
    assert "keep 1: 0 suppliers < 1 (held back by min)" == frame["decision"]
    assert {"at": 6.0, "text": "1 more: 1 supplier > 0.5 x 0 consumers"} == frame["change"]


def test_a_look_changes_nothing(driver: Driver) -> None:
    """The orders are the answer and when to wake up, which every fact ends with."""
    before = driver.machine.overview(driver.now)
    assert ["Send", "WakeAt"] == [type(one).__name__ for one in driver.say(SOMEBODY, Look(RecordNo(0)))]
    assert before.records == driver.machine.overview(driver.now).records


def test_the_newest_decisions_are_kept(driver: Driver) -> None:
    for at in range(KEPT + 3):
        driver.say(OPERATOR, decided(at))
    assert list(range(3, KEPT + 3)) == [one.at_ns for one in looked(driver).decisions]


def test_a_decision_in_words() -> None:
    told = decided()
    assert (1, "1 more: 1 supplier > 0.5 x 0 consumers") == (told.load.degree, told.words())
    assert () == told.load.reports[0].groups
    load = classify_all([LoadReport(worker=W0, occupancy=0.9, busy=0.5)], Thresholds.paper(), degree=1)
    kept = Decided.of(0, load, decide_degree(load, BetaRule(max_degree=1)))
    assert "keep 1: 1 supplier > 0.5 x 0 consumers (held back by max)" == kept.words()


def test_a_record_is_followed_from_station_to_station(driver: Driver) -> None:
    assert RecordPlace(record=RecordNo(5), is_recorded=False) == place(driver, 5)
    number = driver.machine.intake.head.next_record
    driver.push(A, 0, (key_in(0), 1), (key_in(0, 1), 1), (key_in(3), 1))
    assert not place(driver, number).is_recorded
    driver.durable()
    assert {0: 2, 3: 1} == {one.group: one.rows for one in place(driver, number).groups}
    assert {0: Station.WAITING, 3: Station.WAITING} == stations(driver, number)
    driver.tick(SECOND // 100)
    assert {0: Station.SENT, 3: Station.SENT} == stations(driver, number)
    driver.say(PEER0, messages.Credit(1))  # for the message before, with the records of the producers' sessions
    assert {0: Station.SENT, 3: Station.SENT} == stations(driver, number)
    driver.say(PEER0, messages.Credit(1))
    assert {0: Station.JOINED, 3: Station.SENT} == stations(driver, number)
    driver.commit(number, [0])
    assert {0: Station.COMMITTED, 3: Station.SENT} == stations(driver, number)
    assert [WorkerId("worker-0"), WorkerId("worker-1")] == [one.worker for one in place(driver, number).groups]


def test_rows_that_are_committed_and_checkpointed_are_kept_no_more(driver: Driver) -> None:
    driver.push(A, 0, (key_in(0), 1))
    driver.durable()
    number = driver.machine.intake.head.next_record - 1
    driver.tick(SECOND // 100)
    driver.commit(number)
    for peer, groups in ((PEER0, (0, 1)), (PEER1, (2, 3))):
        driver.checkpoint(peer, number, *groups)
    assert RecordPlace(record=RecordNo(number), is_recorded=True) == place(driver, number)


def test_messages_of_an_earlier_connection_may_hold_anything(driver: Driver) -> None:
    driver.push(A, 0, (key_in(0), 1))
    driver.durable()
    number = driver.machine.intake.head.next_record - 1
    driver.tick(SECOND // 100)
    driver.tell(facts.Disconnected(PEER0))
    again = messages.WorkerHello(W0, "one", holdings(0, 1, received=number), 10, 1)
    driver.say(Peer("worker-0/2"), again)
    assert Station.SENT == stations(driver, number)[0]
    driver.say(Peer("worker-0/2"), messages.Credit(10))
    assert Station.JOINED == stations(driver, number)[0]


def test_a_group_without_an_owner_that_is_served_moves(driver: Driver) -> None:
    driver.push(A, 0, (key_in(0), 1))
    driver.durable()
    number = driver.machine.intake.head.next_record - 1
    driver.say(Peer("worker-0/2"), hello("worker-0", instance="two"))
    driver.durable()
    assert Station.MOVING == stations(driver, number)[0]


def test_what_is_under_way_is_kept_for_as_many_messages_as_were_not_joined(driver: Driver) -> None:
    driver.push(A, 0, (key_in(0), 1))
    driver.durable()
    driver.tick(SECOND // 100)
    hand = driver.machine.workforce.hands[W0]
    assert 2 == hand.outstanding == len(hand.under_way)
    for _ in range(3):  # one more than there are: a worker that counts otherwise does no harm
        driver.say(PEER0, messages.Credit(1))
    assert not hand.under_way
