"""The schema of a JoinQuery's status: what `status.py` writes, and nothing else."""

from typing import Any, Final

Schema = dict[str, Any]


def _of(kind: str, about: str = "", **more: Any) -> Schema:
    return {"type": kind, **({"description": about} if about else {}), **more}


def _time(about: str) -> Schema:
    return _of("string", about, format="date-time")


def _fields(about: str, **properties: Schema) -> Schema:
    return _of("object", about, properties=properties)


def _listed(about: str, item: Schema, key: str | None = None) -> Schema:
    as_map = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]} if key else {}
    held = {**item, "required": [key]} if key else item
    return _of("array", about, items=held, **(as_map or {"x-kubernetes-list-type": "atomic"}))


_INTEGER: Final = {"format": "int64"}
_COUNT: Final = _of("integer", **_INTEGER)

_CONDITION: Final = {
    **_fields(
        "One condition, as every Kubernetes object has them.",
        type=_of("string"),
        status=_of("string", enum=["True", "False", "Unknown"]),
        reason=_of("string", minLength=1),
        message=_of("string"),
        observedGeneration=_COUNT,
        lastTransitionTime=_time(""),
    )
}

_DECISION: Final = _fields(
    "The last decision on the number of workers, with its inputs.",
    at=_time("When."),
    nSup=_COUNT,
    nCon=_COUNT,
    beta=_of("number"),
    busy=_of("number", "Sum of the workers' busy shares."),
    action=_of("string", "Grow, Shrink or Stay."),
    because=_of("string", "The rule that decided, in words."),
    blockedBy=_of("string", "What kept it from doing more."),
)

STATUS: Final = _fields(
    "What the operator saw last.",
    observedGeneration=_COUNT,
    phase=_of("string", "Pending, Running, Scaling, Paused, Stalled, Finished or Deleting."),
    selector=_of("string", "Labels of the worker pods, for autoscalers."),
    replicas=_of("integer", "Worker pods that are there."),
    readyReplicas=_of("integer", "Worker pods that are ready."),
    desiredReplicas=_of("integer", "Worker pods that the rule or a person wants."),
    conditions=_listed("Ready, Reconciling, Stalled and what they are made of.", _CONDITION, "type"),
    scaling=_fields(
        "The β-rule's numbers.",
        nSup=_COUNT,
        nCon=_COUNT,
        lastDecision=_DECISION,
        decisions=_of("integer", "Decisions made since the operator attends the query."),
        heldUntil=_time("A person scaled the query by hand: until then the rule decides nothing."),
    ),
    lag=_of("string", "How far the slowest stream's watermark is behind the clock."),
    records=_of("integer", "Records in the log.", **_INTEGER),
    oldestUncommitted=_of("integer", "The first record that is not committed for every group.", **_INTEGER),
    results=_of("integer", "Committed results.", **_INTEGER),
    late=_of("integer", "Late rows.", **_INTEGER),
    rejected=_of("integer", "Batches that were refused.", **_INTEGER),
    stateBytes=_of("integer", "Bytes of the windows, over all workers.", **_INTEGER),
    redisBytes=_of("integer", "Memory of the query's Redis, with all that others have in it.", **_INTEGER),
    lastCheckpoint=_time("When an increment of a group was written last."),
    delayP50=_of("string", "Arrival of the later member to the result's commit: half are faster."),
    delayP99=_of("string", "The same: 99 of 100 are faster."),
    slots=_fields(
        "How workers are served.",
        epoch=_of("string", "t_d."),
        subgroups=_of("integer", "n_g."),
        bufferPeakBytes=_of("integer", "The most that waited in the mini-buffers.", **_INTEGER),
        bufferBytes=_of("integer", "What waits now.", **_INTEGER),
    ),
    streams=_listed(
        "The streams.",
        _fields("", name=_of("string"), rows=_COUNT, late=_COUNT, rowsPerSecond=_of("number"), watermark=_time("")),
        "name",
    ),
    workers=_listed(
        "The workers of the map.",
        _fields(
            "",
            name=_of("string"),
            role=_of("string", "supplier, neutral or consumer"),
            ready=_of("boolean"),
            groups=_COUNT,
            occupancy=_of("number"),
            busy=_of("number"),
            stateBytes=_COUNT,
        ),
        "name",
    ),
    migrations=_listed(
        "The newest moves of partition-groups.",
        _fields(
            "",
            group=_COUNT,
            source=_of("string"),
            target=_of("string"),
            bytes=_COUNT,
            pause=_of("string"),
            planned=_of("boolean"),
            at=_time(""),
        ),
    ),
    migrationsTotal=_of("integer", **_INTEGER),
    pauseP50=_of("string", "Of the newest moves: half pause for less."),
    pauseP99=_of("string", "Of the newest moves: 99 of 100 pause for less."),
)
