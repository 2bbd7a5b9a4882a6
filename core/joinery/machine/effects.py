"""What an order does to the world: where the simulator can stop a process."""

from enum import StrEnum


class Effect(StrEnum):
    """The kinds of effects: the crash points of docs/protocol.md."""

    OPEN = "open"
    APPEND = "append"
    ACKNOWLEDGE = "acknowledge"
    SEND = "send"
    EXCHANGE = "exchange"
    MAP = "map"
    JOIN = "join"
    EMIT = "emit"
    TAKE = "take"
    STAGE = "stage"
    COMMIT = "commit"
    FINISH = "finish"
    BLOCK = "checkpoint block"
    HEAD = "checkpoint head"
    READ = "checkpoint read"
    TRIM = "trim"
    TIMER = "timer"
    STOP = "stop"
