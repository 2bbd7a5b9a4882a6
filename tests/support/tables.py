"""Sales with a stored table of items: a query, its rows, and versions of its table."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from joinery.cli.local import LocalRun

PATIENCE_S = 200.0
"""How long a test waits for what comes within seconds on an idle machine."""


def write_table(folder: Path, rows: int, text: str) -> None:
    """The table, replaced at once; some of its keys are there twice, one is null."""
    keys = [*range(rows), *range(0, rows, 50), None]
    table = pa.table({"id": pa.array(keys, pa.int64()), "name": [f"{text} {key}" for key in keys]})
    pq.write_table(table, folder / "half")
    (folder / "half").replace(folder / "items" / "part-0.parquet")


def write_query(folder: Path, **more: Any) -> Path:
    (folder / "items").mkdir()
    table = {"path": "items", "refresh": "200ms", "theta": "2Ki", "memory": "20Ki", "maxWait": "100ms"}
    spec = {
        "streams": [
            {"name": "sales", "schema": {"item": "int64", "n": "int64"}, "time": {"column": "n", "unit": "ms"}},
            {"name": "items", "schema": {"id": "int64", "name": "string"}, "table": table},
        ],
        "join": {"on": [{"sales": "item", "items": "id"}], "type": "left"},
        "sinks": [{"file": {"path": "out.parquet"}}],
        "partitions": 8, "replicas": 2, "scaling": {"mode": "Manual"}, "checkpoint": {"interval": "200ms"},
        "epochs": {"reorganization": "1s"}, **more,
    }  # fmt: skip
    query = {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": "sales"}, "spec": spec}
    path = folder / "query.yaml"
    path.write_text(yaml.safe_dump(query))
    return path


def sales(first: int, rows: int = 500) -> pa.Table:
    """Four of five have a hot item; some items are not in the table, some are null."""
    rng = np.random.default_rng(first)
    hot = rng.random(rows) < 0.8
    items = np.where(hot, rng.integers(0, 60, rows), rng.integers(0, 3000, rows))
    return pa.table({"item": pa.array(items, mask=rng.random(rows) < 0.01), "n": np.arange(first, first + rows)})


def until(run: LocalRun, is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, f"it did not come: {run.failed}"
        assert run.failed is None
        run.attend(lambda _: None)
        time.sleep(0.05)
