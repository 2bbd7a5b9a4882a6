"""A machine's state as plain data: for a look at it, for a log of a crash, and to compare two runs.

`plain` knows no machine: it goes through attributes, dataclasses, containers, arrays and Arrow batches, and gives what
JSON can hold. Settings (the spec, the plan) are left out; stored windows are summed up, their rows are in checkpoints.
"""

from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

import numpy as np
import pyarrow as pa

from joinery.join.plan import JoinPlan
from joinery.model.spec import JoinQuerySpec

_SETTINGS: Final = (JoinQuerySpec, JoinPlan)


def plain(value: object, _seen: frozenset[int] = frozenset()) -> Any:
    """The value as dicts, lists, texts and numbers; what stands in itself is named where it comes again."""
    if value is None or isinstance(value, bool | int | float | str):
        return value.value if isinstance(value, Enum) else value
    if id(value) in _seen:
        return f"<{type(value).__name__}>"
    return _inside(value, _seen | {id(value)})


def _inside(value: object, seen: frozenset[int]) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, pa.RecordBatch):
        return value.to_pylist()
    if isinstance(value, Mapping):
        return {_key(key): plain(item, seen) for key, item in value.items()}
    if isinstance(value, Set):
        return sorted((plain(item, seen) for item in value), key=str)
    if isinstance(value, _SETTINGS):
        return f"<{type(value).__name__}>"
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name), seen) for field in fields(value)}
    if hasattr(value, "__iter__"):
        return [plain(item, seen) for item in value]
    if hasattr(value, "__dict__") and type(value).__module__.startswith("joinery.machine"):
        return {name: plain(item, seen) for name, item in vars(value).items()}
    return f"<{type(value).__name__}>"


def _key(key: object) -> str:
    return key if isinstance(key, str) else "/".join(map(str, key)) if isinstance(key, tuple) else str(key)
