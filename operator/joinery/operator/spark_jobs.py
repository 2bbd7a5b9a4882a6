"""What a Job of Spark's driver and its pods tell: of a LoadTest, and of a query with `engine: spark`. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from joinery.operator.children import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The Job, as it was seen."""

    is_running: bool = False
    """Its pod runs."""
    has_succeeded: bool = False
    has_failed: bool = False
    """It will not be tried again."""
    words: Mapping[str, Any] | None = None
    """What the driver left to say."""
    text: str = ""
    """The same, or the last lines of its log."""


def driver_of(job: Manifest | None, pods: list[Manifest], word: str) -> Driver | None:
    """What they tell; a pod that is gone has left no words. `word`: what is in those of a driver that was through."""
    if job is None:
        return None
    told = job.get("status", {})
    newest = sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")), reverse=True)
    text = next((said for pod in newest if (said := _last_words(pod))), "")
    try:
        words = json.loads(text)
    except ValueError:
        words = None
    return Driver(
        is_running=any(is_running(pod) for pod in pods),
        has_succeeded=bool(told.get("succeeded")),
        has_failed=_has_failed(job),
        words=words if isinstance(words, dict) and word in words else None,
        text=str(words["failed"]) if isinstance(words, dict) and "failed" in words else text,
    )


def is_running(pod: Manifest) -> bool:
    """Whether its containers run."""
    return bool(pod.get("status", {}).get("phase") == "Running")


def _has_failed(job: Manifest) -> bool:
    """A Job that is tried again counts pods that failed, and goes on."""
    told = job.get("status", {})
    if job.get("spec", {}).get("backoffLimit", 0) == 0:
        return bool(told.get("failed"))
    return any(one["type"] == "Failed" and one["status"] == "True" for one in told.get("conditions", ()))


def _last_words(pod: Manifest) -> str:
    for container in pod.get("status", {}).get("containerStatuses", ()):
        if (ended := container.get("state", {}).get("terminated")) is not None:
            return str(ended.get("message") or f"exit code {ended['exitCode']} ({ended.get('reason', '')})")
    return ""
