"""Whatever a spec says about workers, partitions, slots, epochs, θ and methods, the result is DuckDB's.

Six specs are drawn in `make test`; `JOINERY_SPECS=100 pytest tests/integration/test_generated_specs.py` draws more.
"""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.integration.test_run import TRUTH, truth, write_input, write_query
from tests.support.running import called

SPECS = int(os.environ.get("JOINERY_SPECS", "6"))
KINDS = tuple(TRUTH)


def drawn(seed: int) -> tuple[str, dict[str, Any]]:
    """A join type and everything that must not matter."""
    rng = np.random.default_rng(seed)

    def one(*choices: Any) -> Any:
        return choices[int(rng.integers(len(choices)))]

    kind, replicas = KINDS[seed % len(KINDS)], int(rng.integers(1, 5))
    return kind, {
        "join": {"on": ["k"], "type": kind, "method": one("hash", "nested-loop")},
        "replicas": replicas,
        "partitions": one(1, 2, 7, 16, 60, 97),
        "epochs": {
            "distribution": one("auto", "5ms", "37ms", "200ms"),
            "reorganization": one("200ms", "700ms", "2s"),
            "subgroups": one(1, 2, 3, 4),
        },
        "fineTuning": {"enabled": one(True, False), "theta": one("1Ki", "8Ki", "1Mi"), "block": one("0.25Ki", "1Ki")},
        "worker": {"buffer": one("8Ki", "64Ki", "1Mi", "4Mi")},
        "scaling": {
            "mode": one("Auto", "Manual"),
            "max": max(replicas, one(1, 3, 5)),
            "rule": one("guarded", "paper"),
            "scaleUp": {"stabilization": "0s"},
            "scaleDown": {"stabilization": "500ms"},
        },
        "checkpoint": {"durability": "memory", "interval": one("50ms", "300ms", "1h")},
    }


@pytest.mark.parametrize("seed", range(SPECS))
def test_nothing_that_says_how_changes_what(seed: int, tmp_path: Path) -> None:
    kind, more = drawn(seed)
    write_input(tmp_path)
    done = called("run", str(write_query(tmp_path, kind, **more)))
    assert 0 == done.returncode, done.stderr
    found = Counter(tuple(row.values()) for row in pq.read_table(tmp_path / "out.parquet").to_pylist())
    assert truth(tmp_path, kind) == found
