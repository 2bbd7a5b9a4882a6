"""Looks after one JoinQuery that Spark runs: sees what there is, asks `reconcile_engine`, does it, writes the status.

`step` starts from what there is, so an operator that was killed goes on.
"""

import time
from collections.abc import Mapping
from typing import Any

from joinery.operator.children import QUERY_LABEL, ROLE_LABEL, Manifest, accepted_of
from joinery.operator.engine_children import DRIVER, job_of
from joinery.operator.engine_reconcile import ENDED, EngineSeen, reconcile_engine, stalled
from joinery.operator.kube import Kube, refused_of
from joinery.operator.lookup_children import EXECUTOR
from joinery.operator.reconcile import Say, Wanted
from joinery.operator.settings import OperatorSettings
from joinery.operator.spark_jobs import driver_of, is_running


class EngineAttendant:
    """One such query's."""

    def __init__(self, kube: Kube, settings: OperatorSettings) -> None:
        self._kube, self._settings = kube, settings
        self._status: dict[str, Any] | None = None
        self.is_attending = False
        """Whether there may be news at any moment."""

    def step(self, wanted: Wanted, status: Mapping[str, Any]) -> list[Say]:
        """Look once, do what is to be done; what people should be told."""
        stands = dict(status) if self._status is None else self._status
        if stands.get("phase") in ENDED:
            self.is_attending = False
            return []
        seen, now_ns = self._see(wanted, stands), time.time_ns()
        outcome = reconcile_engine(wanted, seen, self._settings, now_ns)
        if (refused := refused_of(self._kube, (one.manifest for one in outcome.applies))) is not None:
            outcome = stalled(wanted, seen, refused, now_ns)
        if outcome.status != stands:
            self._kube.patch_status(wanted.namespace, wanted.name, outcome.status)
        self._status, self.is_attending = outcome.status, outcome.status["phase"] in ("Pending", "Running")
        return list(outcome.said)

    def close(self) -> None:
        """There is nothing to let go."""

    def _see(self, wanted: Wanted, status: Mapping[str, Any]) -> EngineSeen:
        if not self._settings.spark_image:  # it is told so; there are no rights to look at anything
            return EngineSeen(status=status)
        config = self._kube.read("v1", "ConfigMap", wanted.namespace, f"{wanted.name}-query")
        job = self._kube.read("batch/v1", "Job", wanted.namespace, job_of(wanted.name))
        # after the Job: what a Job tells of its pods is no newer than they are
        pods = self._kube.list("v1", "Pod", wanted.namespace, f"{QUERY_LABEL}={wanted.name}")
        return EngineSeen(
            accepted=accepted_of(config, wanted.uid),
            driver=driver_of(job, [pod for pod in pods if _role(pod) == DRIVER], "results"),
            executors=sum(_role(pod) == EXECUTOR and is_running(pod) for pod in pods),
            status=status,
        )


def _role(pod: Manifest) -> str:
    return str(pod["metadata"].get("labels", {}).get(ROLE_LABEL, ""))
