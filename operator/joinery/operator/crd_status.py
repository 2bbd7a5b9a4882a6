"""The schema of a JoinQuery's status: what `status.py` writes, and nothing else."""

from typing import Any, Final

Schema = dict[str, Any]


def schema_of(kind: str, about: str = "", **more: Any) -> Schema:
    """A field of one type."""
    return {"type": kind, **({"description": about} if about else {}), **more}


def time_of(about: str) -> Schema:
    """A moment."""
    return schema_of("string", about, format="date-time")


def fields_of(about: str, **properties: Schema) -> Schema:
    """A mapping."""
    return schema_of("object", about, properties=properties)


def listed(about: str, item: Schema, key: str | None = None) -> Schema:
    """A list; with a key, each of its entries is one of its own."""
    as_map = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]} if key else {}
    held = {**item, "required": [key]} if key else item
    return schema_of("array", about, items=held, **(as_map or {"x-kubernetes-list-type": "atomic"}))


_INTEGER: Final = {"format": "int64"}


def count_of(about: str) -> Schema:
    """A number that may be large."""
    return schema_of("integer", about, **_INTEGER)


_COUNT: Final = schema_of("integer", **_INTEGER)

CONDITION: Final = {
    **fields_of(
        "One condition, as every Kubernetes object has them.",
        type=schema_of("string"),
        status=schema_of("string", enum=["True", "False", "Unknown"]),
        reason=schema_of("string", minLength=1),
        message=schema_of("string"),
        observedGeneration=_COUNT,
        lastTransitionTime=time_of(""),
    )
}

_DECISION: Final = fields_of(
    "The last decision on the number of workers, with its inputs.",
    nSup=_COUNT,
    nCon=_COUNT,
    beta=schema_of("number"),
    busy=schema_of("number", "Sum of the workers' busy shares."),
    action=schema_of("string", "Grow, Shrink or Keep."),
    because=schema_of("string", "The rule that decided, in words."),
    blockedBy=schema_of("string", "What kept it from doing more."),
)

STATUS: Final = fields_of(
    "What the operator saw last.",
    observedGeneration=_COUNT,
    phase=schema_of("string", "Pending, Running, Scaling, Paused, Stalled, Finished or Failed."),
    selector=schema_of("string", "Labels of the worker pods, for autoscalers."),
    replicas=schema_of("integer", "Worker pods that are there."),
    readyReplicas=schema_of("integer", "Worker pods that are ready."),
    desiredReplicas=schema_of("integer", "Worker pods that the rule or a person wants."),
    conditions=listed("Ready, Reconciling, Stalled and what they are made of.", CONDITION, "type"),
    scaling=fields_of(
        "The β-rule's numbers.",
        nSup=_COUNT,
        nCon=_COUNT,
        lastDecision=_DECISION,
        decisions=schema_of("integer", "Decisions made since the operator attends the query."),
        heldUntil=time_of("A person scaled the query by hand: until then the rule decides nothing."),
    ),
    lag=schema_of("string", "How far the slowest stream's watermark is behind the clock."),
    records=schema_of("integer", "Records in the log.", **_INTEGER),
    oldestUncommitted=schema_of("integer", "The first record that is not committed for every group.", **_INTEGER),
    results=schema_of("integer", "Committed results.", **_INTEGER),
    late=schema_of("integer", "Late rows.", **_INTEGER),
    rejected=schema_of("integer", "Batches that were refused.", **_INTEGER),
    stateBytes=schema_of("integer", "Bytes of the windows, over all workers.", **_INTEGER),
    redisBytes=schema_of("integer", "Memory of the query's Redis, with all that others have in it.", **_INTEGER),
    lastCheckpoint=time_of("When an increment of a group was written last."),
    delayP50=schema_of("string", "Arrival of the later member to the result's commit: half are faster."),
    delayP99=schema_of("string", "The same: 99 of 100 are faster."),
    slots=fields_of(
        "How workers are served.",
        epoch=schema_of("string", "t_d."),
        subgroups=schema_of("integer", "n_g, as the gateway serves them: at most one for each worker."),
        bufferPeakBytes=schema_of("integer", "The most that waited in the mini-buffers.", **_INTEGER),
        bufferBytes=schema_of("integer", "What waits now.", **_INTEGER),
    ),
    streams=listed(
        "The streams.",
        fields_of(
            "",
            name=schema_of("string"),
            rows=_COUNT,
            late=_COUNT,
            rowsPerSecond=schema_of("number"),
            watermark=time_of(""),
        ),
        "name",
    ),
    workers=listed(
        "The workers of the map.",
        fields_of(
            "",
            name=schema_of("string"),
            role=schema_of("string", "supplier, neutral or consumer"),
            slot=schema_of("integer", "In which slot of an epoch it is served, with the others of its sub-group."),
            ready=schema_of("boolean"),
            groups=_COUNT,
            occupancy=schema_of("number"),
            busy=schema_of("number"),
            stateBytes=_COUNT,
        ),
        "name",
    ),
    migrations=listed(
        "The newest moves of partition-groups.",
        fields_of(
            "",
            group=_COUNT,
            source=schema_of("string"),
            target=schema_of("string"),
            bytes=_COUNT,
            pause=schema_of("string"),
            planned=schema_of("boolean"),
            at=time_of(""),
        ),
    ),
    migrationsTotal=schema_of("integer", **_INTEGER),
    pauseP50=schema_of("string", "Of the newest moves: half pause for less."),
    pauseP99=schema_of("string", "Of the newest moves: 99 of 100 pause for less."),
)
