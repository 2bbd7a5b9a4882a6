"""One query's attendant, with a cluster and a gateway in memory: what it does when others fail it."""

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from joinery.adapters.security import PLAIN, Security
from joinery.machine.messages import QueryChanged
from joinery.model.errors import Complaint
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import SpecChanges, changes
from joinery.operator import attendant as module
from joinery.operator.attendant import Attendant, LastWords, Watched
from joinery.operator.events import Reason
from joinery.operator.reconcile import Wanted
from joinery.operator.status import stamp
from tests.unit.kubernetes_operator.queries import SETTINGS, wanted


class MemoryKube:
    """Objects by kind and name; some kinds may be refused."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Any] = {}
        self.refuses: dict[str, ApiException] = {}
        self.status: dict[str, Any] = {}
        self.version = 0

    def apply(self, manifest: Any) -> Any:
        if (error := self.refuses.get(manifest["kind"])) is not None:
            raise error
        self.version += 1
        metadata = {**manifest["metadata"], "resourceVersion": str(self.version), "creationTimestamp": "now"}
        made = {**manifest, "metadata": metadata}
        self.objects[manifest["kind"], manifest["metadata"]["name"]] = made
        return made

    def patch_status(self, _namespace: str, _name: str, status: dict[str, Any]) -> None:
        self.status = {**self.status, **status}

    def read(self, _version: str, kind: str, _namespace: str, name: str) -> Any:
        return self.objects.get((kind, name))


class MemorySigner:
    def security(self, _namespace: str, _query: str) -> Security:
        return PLAIN

    def certificates(self, _namespace: str, _query: str) -> dict[str, str]:
        return {}


@dataclass
class MemoryAttendance:
    """A gateway that answers when it is told to."""

    address: str
    spec: JoinQuerySpec
    replicas: int
    security: Any
    wake: Any
    is_connected: bool = True
    connections: int = 1
    has_ended: bool = False
    view: Any = None
    last_decision: Any = None
    told: list[JoinQuerySpec] = field(default_factory=list)
    wishes: list[tuple[int, int, str]] = field(default_factory=list)
    answers: deque[QueryChanged] = field(default_factory=deque)
    scaled: deque[tuple[int, str]] = field(default_factory=deque)
    is_closed: bool = False

    def __post_init__(self) -> None:
        self.machine = type("Machine", (), {"history": (), "leaving": frozenset()})

    def want(self, replicas: int, until_ns: int, because: str) -> None:
        self.wishes.append((replicas, until_ns, because))

    def change(self, spec: JoinQuerySpec) -> None:
        self.told.append(spec)

    def close(self) -> None:
        self.is_closed = True


class Desk:
    """An attendant and all that it meets."""

    def __init__(self, kube: MemoryKube | None = None) -> None:
        self.kube, self.watched = kube or MemoryKube(), Watched()
        self.attendant = Attendant(self.kube, SETTINGS, MemorySigner(), self.watched, lambda: None)  # type: ignore[arg-type]
        self.pods(2)

    def pods(self, workers: int) -> None:
        self.watched.pods = {f"w{number}": ("worker", True) for number in range(workers)}
        self.watched.pods |= {"g": ("gateway", True), "c": ("collector", True)}

    def step(self, one: Wanted | None = None) -> list[str]:
        return [said.reason.value for said in self.attendant.step(one or wanted(), self.kube.status)]

    @property
    def gateway(self) -> MemoryAttendance:
        held = self.attendant._attendance
        assert isinstance(held, MemoryAttendance)
        return held

    @property
    def workers(self) -> int:
        return int(self.kube.objects["StatefulSet", "orders-worker"]["spec"]["replicas"])

    def condition(self, kind: str) -> str:
        return {one["type"]: one["status"] for one in self.kube.status["conditions"]}[kind]


@pytest.fixture(autouse=True)
def a_gateway_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Attendance", MemoryAttendance)


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.step()
    made.step()
    return made


def test_while_workers_are_drained_it_is_scaling_though_all_are_there(desk: Desk) -> None:
    assert "Running" == desk.kube.status["phase"]
    desk.gateway.machine.leaving = frozenset({"worker-1"})  # type: ignore[attr-defined]
    desk.step()
    assert "Scaling" == desk.kube.status["phase"]


LONGER = wanted(streams__0__window="20m")


def answered(old: Wanted, new: Wanted, *refused: Complaint) -> QueryChanged:
    found = SpecChanges(refused=refused) if refused else changes(old.query().spec, new.query().spec)
    return QueryChanged(found)


def test_a_change_is_accepted_when_the_gateway_has_answered(desk: Desk) -> None:
    desk.step(LONGER)
    desk.step(LONGER)
    assert 1 == len(desk.gateway.told)
    desk.gateway.answers.append(answered(wanted(), LONGER))
    assert [Reason.SPEC_CHANGED] == desk.step(LONGER)
    assert "20m" in desk.kube.objects["ConfigMap", "orders-query"]["data"]["query.yaml"]


def test_a_change_whose_connection_broke_is_told_again(desk: Desk) -> None:
    desk.step(LONGER)
    desk.gateway.connections += 1
    desk.step(LONGER)
    assert 2 == len(desk.gateway.told)


def test_what_the_gateway_refuses_is_shown_and_not_told_again_until_it_differs(desk: Desk) -> None:
    desk.step(LONGER)
    desk.gateway.answers.append(answered(wanted(), LONGER, Complaint("spec", "one that has ended", "one", "a new one")))
    assert [Reason.VALIDATION_ERROR] == desk.step(LONGER)
    for _ in range(5):
        assert [] == desk.step(LONGER)
    assert (1, "True") == (len(desk.gateway.told), desk.condition("Stalled"))
    desk.step(wanted(streams__0__window="30m"))
    assert 2 == len(desk.gateway.told)
    desk.step()
    assert "False" == desk.condition("Stalled")


def test_a_child_that_the_api_server_refuses_stalls_the_object_and_the_rest_goes_on(desk: Desk) -> None:
    desk.kube.refuses["StatefulSet"] = ApiException(status=422, reason="Invalid")
    changed = wanted(worker__speed=7.0)
    assert Reason.VALIDATION_ERROR in desk.step(changed)
    assert "True" == desk.condition("Stalled")
    assert "speed: 7" in desk.kube.objects["ConfigMap", "orders-query"]["data"]["query.yaml"]
    desk.kube.refuses.clear()
    desk.step(changed)
    assert "False" == desk.condition("Stalled")


def test_an_api_server_that_is_away_is_not_a_complaint_about_the_object(desk: Desk) -> None:
    desk.kube.refuses["StatefulSet"] = ApiException(status=503, reason="away")
    with pytest.raises(ApiException):
        desk.step(wanted(worker__speed=7.0))


def test_more_workers_come_only_when_those_that_leave_are_gone(desk: Desk) -> None:
    """A drained worker that stays would be refused by the gateway for good."""
    desk.gateway.scaled.extend([(1, "a drain"), (4, "a person")])
    desk.step()
    desk.step()
    assert 1 == desk.workers
    desk.pods(1)
    desk.step()
    assert 4 == desk.workers


def test_who_scales_down_before_the_gateway_is_attended_is_told_to_it_later() -> None:
    desk = Desk()
    desk.step()
    desk.watched.pods.clear()
    again = Desk(desk.kube)
    again.watched.pods.clear()
    again.step(wanted(replicas=1))
    assert 2 == again.workers
    again.pods(2)
    again.step(wanted(replicas=1))
    assert [1] == [wish[0] for wish in again.gateway.wishes]


def test_a_new_operator_goes_on_with_what_a_person_had_asked_for(desk: Desk) -> None:
    """The last one died while workers were drained."""
    manual = {"scaling__mode": "Manual"}
    first = Desk()
    first.step(wanted(**manual))
    first.step(wanted(**manual, replicas=1))
    again = Desk(first.kube)
    again.step(wanted(**manual, replicas=1))
    assert ([1], 2) == ([wish[0] for wish in again.gateway.wishes], again.workers)


@pytest.mark.parametrize("is_done", [False, True], ids=["at once", "when the workers were there"])
def test_a_new_operator_holds_what_a_person_had_asked_for(desk: Desk, is_done: bool) -> None:
    """Whenever the last one died after it was told: its status may be as old as the word of the person."""
    desk.step(wanted(replicas=4))
    until = desk.kube.status["scaling"]["heldUntil"]
    if is_done:
        desk.gateway.scaled.append((4, "a person"))
        desk.step(wanted(replicas=4))
        assert 4 == desk.workers
    again = Desk(desk.kube)
    again.step(wanted(replicas=4))
    ((replicas, until_ns, _),) = again.gateway.wishes
    assert (4, until, until) == (replicas, stamp(until_ns), desk.kube.status["scaling"]["heldUntil"])


def test_a_hold_that_is_over_binds_no_new_operator(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.step(wanted(replicas=4))
    late_ns = time.time_ns() + int(1e9 * (SETTINGS.hold_s + 1))
    monkeypatch.setattr(time, "time_ns", lambda: late_ns)
    again = Desk(desk.kube)
    again.step(wanted(replicas=4))
    assert ([], None) == (again.gateway.wishes, again.kube.status["scaling"]["heldUntil"])


def test_a_paused_query_is_not_attended(desk: Desk) -> None:
    gateway = desk.gateway
    desk.step(wanted({"joinery.dev/paused": "true"}))
    assert gateway.is_closed
    assert not desk.attendant.is_attending


def test_a_query_that_ended_before_it_was_attended_is_known_by_its_last_words() -> None:
    desk = Desk()
    desk.step()
    desk.watched.last_words = LastWords(0, '{"results": 42}')
    assert [Reason.FINISHED] == desk.step()
    assert (0, 42, "Finished") == (desk.workers, desk.kube.status["results"], desk.kube.status["phase"])


def test_a_gateway_that_cannot_run_says_why_in_the_status() -> None:
    desk = Desk()
    desk.step()
    desk.watched.last_words = LastWords(2, "gateway: DataLost: ...")
    assert [Reason.VALIDATION_ERROR] == desk.step()
    assert "True" == desk.condition("Stalled")


def test_a_certificate_that_grows_old_is_renewed_while_the_operator_runs(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = desk.kube.objects["Deployment", "orders-gateway"]["spec"]["template"]["metadata"]["annotations"]
    first = desk.gateway
    monkeypatch.setattr(MemorySigner, "certificates", lambda *_: {"ca.crt": "a", "tls.crt": "new", "tls.key": "c"})
    desk.step()
    assert ("Secret", "orders-tls") not in desk.kube.objects  # it is not looked at all the time
    late_s = time.monotonic() + module.SIGN_S
    monkeypatch.setattr(module.time, "monotonic", lambda: late_s)
    desk.step()
    assert "new" == desk.kube.objects["Secret", "orders-tls"]["stringData"]["tls.crt"]
    after = desk.kube.objects["Deployment", "orders-gateway"]["spec"]["template"]["metadata"]["annotations"]
    assert before != after  # the pods read it at their start: they are rolled
    assert first.is_closed  # and the operator comes back with a certificate that is as new
