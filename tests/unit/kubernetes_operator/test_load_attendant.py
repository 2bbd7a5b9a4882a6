"""One LoadTest's attendant, with a cluster in memory: what it makes of a Job and its pods."""

import json
from typing import Any

import pytest
import yaml
from kubernetes.client.exceptions import ApiException

from joinery.operator.load_attendant import LoadAttendant
from tests.unit.kubernetes_operator.test_load_reconcile import READY, SPARK, WORDS, query, wanted


class MemoryKube:
    """Objects by kind and name."""

    def __init__(self) -> None:
        held = {"metadata": {"name": "orders", "uid": "q"}, "status": READY}
        accepted = yaml.safe_dump(query().to_dict())
        config = {"metadata": {"ownerReferences": [{"uid": "q"}]}, "data": {"accepted.yaml": accepted}}
        self.objects: dict[tuple[str, str], Any] = {
            ("JoinQuery", "orders"): held, ("ConfigMap", "orders-query"): config,
        }  # fmt: skip
        self.pods: list[Any] = []
        self.applied: list[str] = []
        self.status: dict[str, Any] = {}
        self.refuses = ""

    def apply(self, manifest: Any) -> Any:
        if manifest["kind"] == self.refuses:
            raise ApiException(status=403, body='{"message": "no quota"}')
        self.applied.append(manifest["kind"])
        self.objects[manifest["kind"], manifest["metadata"]["name"]] = manifest

    def read(self, _version: str, kind: str, _namespace: str, name: str) -> Any:
        return self.objects.get((kind, name))

    def list(self, _version: str, _kind: str, _namespace: str, _labels: str) -> list[Any]:
        return self.pods

    def patch_status(self, _namespace: str, _name: str, status: dict[str, Any], kind: str) -> None:
        assert kind == "LoadTest"
        self.status = status


def pod(role: str, phase: str, message: str | None = None) -> dict[str, Any]:
    ended = {"terminated": {"exitCode": 1, "message": message}} if message is not None else {}
    status = {"phase": phase, "containerStatuses": [{"state": ended}]}
    return {"metadata": {"labels": {"joinery.dev/load-role": role}}, "status": status}


@pytest.fixture
def kube() -> MemoryKube:
    return MemoryKube()


def test_a_load_from_its_start_to_its_end(kube: MemoryKube) -> None:
    attendant = LoadAttendant(kube, SPARK)  # type: ignore[arg-type]
    assert ["LoadStarted"] == [one.reason.value for one in attendant.step(wanted(), {})]
    assert "Job" == kube.applied[-1]
    kube.pods = [pod("driver", "Running"), pod("executor", "Running"), pod("executor", "Pending")]
    attendant.step(wanted(), {})
    assert ("Running", 1) == (kube.status["phase"], kube.status["executors"])
    kube.pods = [pod("driver", "Succeeded", json.dumps(WORDS))]
    kube.objects["Job", "evening-load"]["status"] = {"succeeded": 1}
    assert ["LoadFinished"] == [one.reason.value for one in attendant.step(wanted(), {})]
    assert ("Succeeded", 60_000, True) == (kube.status["phase"], kube.status["acknowledged"], attendant.has_ended)
    assert 4 == len(kube.applied)


@pytest.mark.parametrize(("message", "told"), [('{"failed": "no gateway"}', "no gateway"), ("a trace", "a trace")])
def test_a_failed_driver_is_quoted(kube: MemoryKube, message: str, told: str) -> None:
    attendant = LoadAttendant(kube, SPARK)  # type: ignore[arg-type]
    attendant.step(wanted(), {})
    kube.pods = [pod("driver", "Failed", message)]
    kube.objects["Job", "evening-load"]["status"] = {"failed": 1}
    assert [told] == [one.text for one in attendant.step(wanted(), {})]
    assert "Failed" == kube.status["phase"]


def test_what_the_api_server_does_not_take_is_told_and_tried_again(kube: MemoryKube) -> None:
    attendant = LoadAttendant(kube, SPARK)  # type: ignore[arg-type]
    kube.refuses = "Job"
    assert ["Job evening-load: no quota"] == [one.text for one in attendant.step(wanted(), {})]
    assert "Stalled" == kube.status["phase"]
    kube.refuses = ""
    assert ["LoadStarted"] == [one.reason.value for one in attendant.step(wanted(), {})]
    assert "Starting" == kube.status["phase"]


def test_an_operator_that_comes_later_goes_on_and_leaves_what_has_ended_alone(kube: MemoryKube) -> None:
    LoadAttendant(kube, SPARK).step(wanted(), {})  # type: ignore[arg-type]
    other = LoadAttendant(kube, SPARK)  # type: ignore[arg-type]
    assert [] == other.step(wanted(), kube.status)
    assert 4 == len(kube.applied)
    last = LoadAttendant(kube, SPARK)  # type: ignore[arg-type]
    assert [] == last.step(wanted(), {"phase": "Succeeded"})
    assert last.has_ended
