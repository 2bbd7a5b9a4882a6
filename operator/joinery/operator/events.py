"""The events of a JoinQuery and of a LoadTest: a fixed list, so that alerts and tests can rely on their names."""

from enum import StrEnum


class Reason(StrEnum):
    """Why an event is told."""

    CREATED = "Created"
    SPEC_CHANGED = "SpecChanged"
    SCALED_UP = "ScaledUp"
    SCALED_DOWN = "ScaledDown"
    SCALE_BLOCKED = "ScaleBlocked"
    MANUAL_SCALE_HELD = "ManualScaleHeld"
    PARTITION_GROUP_MIGRATED = "PartitionGroupMigrated"
    WORKER_LOST = "WorkerLost"
    STATE_LOST = "StateLost"
    CHECKPOINT_FAILED = "CheckpointFailed"
    VALIDATION_ERROR = "ValidationError"
    FINISHED = "Finished"
    FAILED = "Failed"
    CLEANUP_FAILED = "CleanupFailed"
    LOAD_WAITING = "LoadWaiting"
    LOAD_STARTED = "LoadStarted"
    LOAD_FINISHED = "LoadFinished"
    LOAD_FAILED = "LoadFailed"
