"""What kopf calls: watches that wake, a daemon per JoinQuery that steps, and the end of an object.

Level-based: no handler acts on what an event says. Events of objects, children and pods only wake the daemon of their
query, whose `Attendant` looks at what there is.
"""

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

import kopf
from kubernetes.client.exceptions import ApiException

from joinery.operator.attendant import Attendant, LastWords, Watched, version_of
from joinery.operator.authority import Signer
from joinery.operator.children import QUERY_LABEL, ROLE_LABEL
from joinery.operator.crd import GROUP, PLURAL, VERSION
from joinery.operator.ending import end_query
from joinery.operator.engine_attendant import EngineAttendant
from joinery.operator.kube import Kube
from joinery.operator.load_handlers import register_loads
from joinery.operator.lookup_children import LOOKUP
from joinery.operator.metrics import Metrics
from joinery.operator.reconcile import Say, wanted_of
from joinery.operator.settings import OperatorSettings

log = logging.getLogger(__name__)

LOOK_S: Final = 1.0
"""How long a query with news waits at most for its status."""
REST_S: Final = 30.0
"""How often a query is looked at that nobody tells anything of."""
STEP_S: Final = 30.0
"""How long a step may take that is under way when its query is deleted."""
RETRY_S: Final = 2.0
"""After a call that failed."""
_LABELLED: Final = {QUERY_LABEL: kopf.PRESENT}


class Operator:
    """All that the handlers share."""

    def __init__(self, settings: OperatorSettings, kube: Kube) -> None:
        self.settings, self.kube, self.metrics = settings, kube, Metrics()
        self.signer = Signer(kube, settings)
        self.turned_s = time.monotonic()
        """When the event loop turned last."""
        self.beat: asyncio.Task[None] | None = None
        """Held here: the loop alone does not keep a task."""
        self.stepping: dict[tuple[str, str], float] = {}
        """Since when a step has been under way."""
        self._watched: dict[tuple[str, str], Watched] = {}
        self._wakes: dict[tuple[str, str], Waker] = {}
        self.ending: set[tuple[str, str]] = set()
        """Queries that are being deleted."""
        self.enders = ThreadPoolExecutor(8, "end")
        """Apart: they wait for pods, and must not keep others from being looked after."""

    def watched(self, namespace: str, name: str) -> Watched:
        return self._watched.setdefault((namespace, name), Watched())

    def waker(self, namespace: str, name: str) -> "Waker":
        """Called in the event loop only."""
        if (namespace, name) not in self._wakes:
            self._wakes[namespace, name] = Waker(asyncio.get_running_loop())
        return self._wakes[namespace, name]

    def forget(self, namespace: str, name: str) -> None:
        self.ending.discard((namespace, name))
        self._watched.pop((namespace, name), None)
        self._wakes.pop((namespace, name), None)
        self.signer.forget(namespace, name)

    def stuck(self, limit_s: float) -> str | None:
        """What does not go on: the loop, or the step of a query."""
        now_s = time.monotonic()
        if now_s - self.turned_s > limit_s:
            return f"the event loop has not turned for {now_s - self.turned_s:.0f} s"
        late = [key for key, since in list(self.stepping.items()) if now_s - since > limit_s]
        return f"stuck at {late[0][0]}/{late[0][1]}" if late else None


class Waker:
    """Ends a wait in the event loop; from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._event = loop, asyncio.Event()

    def wake(self) -> None:
        with suppress(RuntimeError):  # the loop has ended, and everything with it
            self._loop.call_soon_threadsafe(self._event.set)

    def begin(self) -> None:
        """What happens from now on counts."""
        self._event.clear()

    async def wait(self, limit_s: float) -> None:
        """Until woken, or for so long."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), limit_s)


def register(operator: Operator, registry: kopf.OperatorRegistry) -> None:
    """Every handler, bound to the operator."""

    @kopf.on.startup(registry=registry)
    async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.persistence.finalizer = f"operator.{GROUP}/finalizer"
        settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=f"operator.{GROUP}")
        settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(
            prefix=f"operator.{GROUP}", key="last-handled"
        )
        settings.posting.reporting_component = "joinery-operator"
        settings.posting.event_name_prefix = "joinery-"
        settings.networking.request_timeout = 30
        settings.scanning.disabled = bool(operator.settings.namespaces)
        settings.process.ultimate_exiting_timeout = 10
        operator.beat = asyncio.create_task(_beat(operator))

    @kopf.on.login(registry=registry)
    def login(**told: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_service_account(**told) or kopf.login_with_kubeconfig(**told)

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
    async def object_changed(namespace: Any, name: str, **_: Any) -> None:
        operator.waker(namespace, name).wake()

    for kind in ("configmaps", "services"):
        kopf.on.event("", "v1", kind, labels=_LABELLED, registry=registry)(_child_changed(operator))
    for kind in ("deployments", "statefulsets"):
        kopf.on.event("apps", "v1", kind, labels=_LABELLED, registry=registry)(_child_changed(operator))
    kopf.on.event("", "v1", "pods", labels=_LABELLED, registry=registry)(_pod_changed(operator))

    @kopf.daemon(GROUP, VERSION, PLURAL, cancellation_timeout=10, cancellation_backoff=1, registry=registry)
    async def attend(body: kopf.Body, namespace: Any, name: str, stopped: Any, **_: Any) -> None:
        await _attend(operator, body, namespace, name, stopped)

    @kopf.on.delete(GROUP, VERSION, PLURAL, registry=registry)
    async def deleted(body: kopf.Body, namespace: Any, name: str, **_: Any) -> None:
        key = (namespace, name)
        operator.ending.add(key)  # no step begins any more, and one that is under way ends first
        until_s = time.monotonic() + STEP_S
        while key in operator.stepping and time.monotonic() < until_s:
            await asyncio.sleep(0.1)
        loop = asyncio.get_running_loop()
        failed = await loop.run_in_executor(
            operator.enders, end_query, operator.kube, operator.settings, wanted_of(body)
        )
        if failed is not None:
            kopf.event(body, type="Warning", reason="CleanupFailed", message=failed)
        operator.forget(namespace, name)

    register_loads(operator.kube, operator.settings, operator.metrics, registry)


async def _attend(operator: Operator, body: kopf.Body, namespace: str, name: str, stopped: Any) -> None:
    """One query, until it is deleted or the operator ends."""
    wake, key = operator.waker(namespace, name), (namespace, name)
    watched = operator.watched(namespace, name)
    attendant: Attendant | EngineAttendant
    if dict(body.get("spec") or {}).get("engine") == "spark":  # it cannot change
        attendant = EngineAttendant(operator.kube, operator.settings)
    else:
        attendant = Attendant(operator.kube, operator.settings, operator.signer, watched, wake.wake)
    operator.metrics.queries += 1
    try:
        while not stopped and key not in operator.ending:
            wake.begin()
            operator.stepping[key] = time.monotonic()
            failed, said = True, list[Say]()
            try:
                said = await asyncio.to_thread(attendant.step, wanted_of(body), dict(body.get("status") or {}))
                failed = False
            except ApiException as error:
                log.warning("%s/%s: %s %s", namespace, name, error.status, (error.body or error.reason or "")[:500])
            except Exception:  # the API server is away, or a defect of ours: the query goes on, and is looked at again
                log.exception("%s/%s", namespace, name)
            finally:
                operator.metrics.reconciled(time.monotonic() - operator.stepping.pop(key), failed=failed)
            for one in said:
                operator.metrics.told(one.reason.value)
                kind = "Warning" if one.is_warning else "Normal"
                kopf.event(body, type=kind, reason=one.reason.value, message=one.text[:1000])
            if failed:
                await asyncio.sleep(RETRY_S)
            else:
                await wake.wait(LOOK_S if attendant.is_attending else REST_S)
    finally:
        operator.metrics.queries -= 1
        await asyncio.to_thread(attendant.close)


async def _beat(operator: Operator) -> None:
    while True:
        operator.turned_s = time.monotonic()
        await asyncio.sleep(1)


def _child_changed(operator: Operator) -> Any:
    async def changed(body: kopf.Body, namespace: str, name: str, labels: Any, event: Any, **_: Any) -> None:
        query = labels[QUERY_LABEL]
        is_gone = event.get("type") == "DELETED"
        operator.watched(namespace, query).versions[body["kind"], name] = None if is_gone else version_of(body)
        operator.waker(namespace, query).wake()

    return changed


def _last_words(status: Any) -> LastWords | None:
    """Of the container that ended last; one that failed and runs again has taken them back."""
    for container in status.get("containerStatuses", ()):
        now, before = container.get("state", {}), container.get("lastState", {})
        ended = now.get("terminated") or before.get("terminated")
        if ended is not None and (ended["exitCode"] == 0 or "running" not in now):
            return LastWords(int(ended["exitCode"]), str(ended.get("message", "")).strip())
    return None


def _pod_changed(operator: Operator) -> Any:
    async def changed(namespace: str, name: str, labels: Any, status: Any, event: Any, **_: Any) -> None:
        watched = operator.watched(namespace, labels[QUERY_LABEL])
        role, is_gone = labels.get(ROLE_LABEL, ""), event.get("type") == "DELETED"
        if is_gone:
            watched.pods.pop(name, None)
        else:
            ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", ()))
            watched.pods[name] = (role, ready)
        if role == "gateway":
            watched.last_words = None if is_gone else _last_words(status)
        elif role == LOOKUP:
            watched.lookup_words = None if is_gone else _last_words(status)
        operator.waker(namespace, labels[QUERY_LABEL]).wake()

    return changed
