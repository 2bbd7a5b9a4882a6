"""Looks after one LoadTest: sees what there is, asks `reconcile_load` what to do, does it, writes the status.

`step` starts from what there is, so an operator that was killed goes on.
"""

import time
from collections.abc import Mapping
from typing import Any

from joinery.model.spec import JoinQuery
from joinery.operator.children import Manifest, accepted_of
from joinery.operator.kube import Kube, refused_of
from joinery.operator.load_children import LOAD_LABEL, LOAD_ROLE_LABEL
from joinery.operator.load_reconcile import ENDED, LoadSeen, reconcile_load, stalled
from joinery.operator.reconcile import Say, Wanted
from joinery.operator.settings import OperatorSettings
from joinery.operator.spark_jobs import driver_of, is_running

VERSION = "joinery.dev/v1alpha1"


class LoadAttendant:
    """One LoadTest's."""

    def __init__(self, kube: Kube, settings: OperatorSettings) -> None:
        self._kube, self._settings = kube, settings
        self._status: dict[str, Any] | None = None
        self.has_ended = False

    def step(self, wanted: Wanted, status: Mapping[str, Any]) -> list[Say]:
        """Look once, do what is to be done; what people should be told."""
        stands = dict(status) if self._status is None else self._status
        if stands.get("phase") in ENDED or wanted.is_paused:
            self.has_ended = stands.get("phase") in ENDED
            return []
        seen, now_ns = self._see(wanted, stands), time.time_ns()
        outcome = reconcile_load(wanted, seen, self._settings, now_ns)
        if (refused := refused_of(self._kube, (one.manifest for one in outcome.applies))) is not None:
            outcome = stalled(wanted, seen, refused, now_ns)
        if outcome.status != stands:
            self._kube.patch_status(wanted.namespace, wanted.name, outcome.status, kind="LoadTest")
        self._status, self.has_ended = outcome.status, outcome.has_ended
        return list(outcome.said)

    def _see(self, wanted: Wanted, status: Mapping[str, Any]) -> LoadSeen:
        if not self._settings.spark_image:  # it is told so; there are no rights to look at anything
            return LoadSeen(status=status)
        name = str(wanted.spec.get("query", ""))
        held = self._kube.read(VERSION, "JoinQuery", wanted.namespace, name) if name else None
        job = self._kube.read("batch/v1", "Job", wanted.namespace, f"{wanted.name}-load")
        # after the Job: what a Job tells of its pods is no newer than they are
        pods = self._kube.list("v1", "Pod", wanted.namespace, f"{LOAD_LABEL}={wanted.name}")
        return LoadSeen(
            query=self._query(wanted, held),
            query_status=(held or {}).get("status", {}),
            driver=driver_of(job, [pod for pod in pods if _role(pod) == "driver"], "sent"),
            executors=sum(_role(pod) == "executor" and is_running(pod) for pod in pods),
            status=status,
        )

    def _query(self, wanted: Wanted, held: Manifest | None) -> JoinQuery | None:
        """The query in force, as its own ConfigMap has it."""
        if held is None:
            return None
        config = self._kube.read("v1", "ConfigMap", wanted.namespace, f"{held['metadata']['name']}-query")
        return accepted_of(config, held["metadata"]["uid"])


def _role(pod: Manifest) -> str:
    return str(pod["metadata"].get("labels", {}).get(LOAD_ROLE_LABEL, ""))
