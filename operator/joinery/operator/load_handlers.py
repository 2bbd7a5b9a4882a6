"""What kopf calls about LoadTests: a task per object that steps until its load has ended.

No finalizer: all that a load leaves belongs to its object and goes with it, whether an operator is there or not.
"""

import asyncio
import logging
from typing import Any, Final

import kopf
from kubernetes.client.exceptions import ApiException

from joinery.operator.kube import Kube
from joinery.operator.load_attendant import LoadAttendant
from joinery.operator.load_crd import PLURAL
from joinery.operator.metrics import Metrics
from joinery.operator.reconcile import wanted_of
from joinery.operator.settings import OperatorSettings

log = logging.getLogger(__name__)

LOOK_S: Final = 2.0
"""How often a load that has not ended is looked at."""
Key = tuple[str, str]


class Loads:
    """The LoadTests that are looked after."""

    def __init__(self, kube: Kube, settings: OperatorSettings, metrics: Metrics) -> None:
        self._kube, self._settings, self._metrics = kube, settings, metrics
        self._bodies: dict[Key, kopf.Body] = {}
        """Each as it was seen last."""
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    def saw(self, key: Key, body: kopf.Body, *, is_gone: bool) -> None:
        """An object came, changed or went; called in the event loop."""
        before = self._bodies.get(key)
        if before is not None and before["metadata"]["uid"] != body["metadata"]["uid"]:
            self._forget(key)
        if is_gone or body["metadata"].get("deletionTimestamp"):
            self._forget(key)
            return
        self._bodies[key] = body
        if key not in self._tasks:  # the context of this call goes along: kopf posts events by it
            self._tasks[key] = asyncio.create_task(self._attend(key))

    def _forget(self, key: Key) -> None:
        self._bodies.pop(key, None)
        if (task := self._tasks.pop(key, None)) is not None:
            task.cancel()

    async def _attend(self, key: Key) -> None:
        attendant = LoadAttendant(self._kube, self._settings)
        while not attendant.has_ended:
            body = self._bodies[key]
            try:
                said = await asyncio.to_thread(attendant.step, wanted_of(body), dict(body.get("status") or {}))
                for one in said:
                    self._metrics.told(one.reason.value)
                    kind = "Warning" if one.is_warning else "Normal"
                    kopf.event(body, type=kind, reason=one.reason.value, message=one.text[:1000])
            except ApiException as error:
                log.warning("load %s/%s: %s %s", *key, error.status, (error.body or error.reason or "")[:500])
            except Exception:  # the API server is away, or a defect of ours: it is looked at again
                log.exception("load %s/%s", *key)
            await asyncio.sleep(LOOK_S)


def register_loads(kube: Kube, settings: OperatorSettings, metrics: Metrics, registry: kopf.OperatorRegistry) -> None:
    """The watch of LoadTests."""
    loads = Loads(kube, settings, metrics)

    @kopf.on.event("joinery.dev", "v1alpha1", PLURAL, registry=registry)
    async def load_changed(body: kopf.Body, namespace: Any, name: str, event: Any, **_: Any) -> None:
        loads.saw((namespace, name), body, is_gone=event.get("type") == "DELETED")
