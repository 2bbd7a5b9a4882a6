"""Queries and settings for the operator's tests."""

import copy
from typing import Any

from joinery.operator.reconcile import Wanted
from joinery.operator.settings import OperatorSettings

SETTINGS = OperatorSettings(image="joinery:test", redis_url="redis://:hunter2@redis:6379/0", token="open sesame")  # noqa: S106

COLUMNS: dict[str, Any] = {"schema": {"id": "int64", "ts": "int64"}, "time": {"column": "ts", "unit": "us"}}
SPEC: dict[str, Any] = {
    "streams": [
        {
            "name": "orders",
            "schema": {"id": "int64", "ts": "int64"},
            "window": "10m",
            "time": {"column": "ts", "unit": "us"},
        },
        {
            "name": "items",
            "schema": {"id": "int64", "ts": "int64"},
            "window": "1h",
            "time": {"column": "ts", "unit": "us"},
        },
    ],
    "join": {"on": ["id"]},
    "replicas": 2,
}


def wanted(annotations: dict[str, str] | None = None, **changed: Any) -> Wanted:
    """An object with these fields of its spec changed; a name with dots goes into the depth."""
    spec = copy.deepcopy(SPEC)
    for path, value in changed.items():
        *way, last = path.split("__")
        held: Any = spec
        for name in way:
            held = held[int(name)] if isinstance(held, list) else held.setdefault(name, {})
        held[last] = value
    return Wanted(
        namespace="shop", name="orders", uid="0123456789", generation=3, spec=spec, annotations=annotations or {}
    )
