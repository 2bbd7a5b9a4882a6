"""The end of a query that is deleted: its pods, then what it has in Redis; with a deadline, so that a delete ends.

The other children go with the object, whose they are. Keys in Redis would stay for ever: nobody else knows of them.
"""

import logging
import time
from typing import Final

from joinery.adapters.redis_calls import prefix_of
from joinery.adapters.redis_urls import client_of
from joinery.model.errors import BadSpec
from joinery.operator.children import QUERY_LABEL, accepted_of, keys_of
from joinery.operator.kube import Kube
from joinery.operator.reconcile import Wanted
from joinery.operator.settings import OperatorSettings

log = logging.getLogger(__name__)

_LOOK_S: Final = 0.5
_BATCH: Final = 1000


def end_query(kube: Kube, settings: OperatorSettings, wanted: Wanted) -> str | None:
    """End it; what could not be done, None if all was."""
    until_s = time.monotonic() + settings.delete_s
    try:
        is_sparks = wanted.spec.get("engine") == "spark"
        workloads = _WORKLOADS if not is_sparks else _SPARKS if settings.spark_image else ()
        for version, kind, role in workloads:
            kube.delete(version, kind, wanted.namespace, f"{wanted.name}-{role}")
        while kube.list("v1", "Pod", wanted.namespace, f"{QUERY_LABEL}={wanted.name}"):
            if time.monotonic() > until_s:
                return f"pods of {wanted.name} are still there after {settings.delete_s:g} s; its keys in Redis stay"
            time.sleep(_LOOK_S)
        if is_sparks:
            return None
        if (url := _redis_of(kube, settings, wanted)) is not None:
            forget_keys(url, keys_of(wanted.namespace, wanted.name, wanted.uid), until_s)
        else:
            return "its Redis is named by a Secret of yours: its keys there stay, and are yours to delete"
    except Exception as error:  # a delete must end; what the error says may hold a password
        log.exception("the end of %s/%s", wanted.namespace, wanted.name)
        return f"{type(error).__name__}: keys in Redis may be left; see the operator's log"
    return None


_WORKLOADS: Final = (
    ("apps/v1", "StatefulSet", "worker"),
    ("apps/v1", "StatefulSet", "lookup"),
    ("apps/v1", "Deployment", "gateway"),
    ("apps/v1", "Deployment", "collector"),
)
_SPARKS: Final = (("batch/v1", "Job", "spark"),)


def _redis_of(kube: Kube, settings: OperatorSettings, wanted: Wanted) -> str | None:
    """Where the keys of the query in force are, whatever the object says by now; None: not ours to clear."""
    query = accepted_of(kube.read("v1", "ConfigMap", wanted.namespace, f"{wanted.name}-query"), wanted.uid)
    if query is None:
        try:
            query = wanted.query()
        except BadSpec:
            return settings.redis_url or None
    redis = query.spec.redis
    return None if redis.secret_name else redis.url or settings.redis_url or None


def forget_keys(url: str, query: str, until_s: float) -> int:
    """Delete all keys of a query; how many there were."""
    gone = 0
    with client_of(url) as client:
        batch: list[bytes] = []
        for key in client.scan_iter(match=f"{prefix_of(query)}*", count=_BATCH):
            batch.append(key)
            if len(batch) >= _BATCH:
                gone += int(client.unlink(*batch))
                batch.clear()
            if time.monotonic() > until_s:
                raise TimeoutError(f"{gone} keys of {query} were deleted, then the time was over")
        gone += int(client.unlink(*batch)) if batch else 0
    return gone
