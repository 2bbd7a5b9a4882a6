"""The load generator of Spark: how fast its tasks make and send rows into a gateway that keeps nothing, on two cores.

And how well it keeps a rate: a load of 10 s at 20,000 rows/s and stream, by two producers each. Rows are those of the
cluster paper: 64 bytes, keys by the b-model.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench.answer import BenchError
from bench.lab import Lab
from bench.measure import Sample
from bench.report import Metric

NAMES: Final = ("spark.generate.tuples_per_s", "spark.load.pace_error")
ROWS: Final = 6_000_000
"""Of a turn, both streams together."""
PACED_HZ: Final = 20_000.0
PACED_S: Final = 10
_STREAM: Final[dict[str, Any]] = {
    "schema": {"key": "int64", "payload": "binary(48)", "ts": "int64"}, "window": "10s",
    "time": {"column": "ts", "unit": "us"},
}  # fmt: skip


def load(lab: Lab) -> list[Metric]:
    """Rows per second, and the share by which a paced load misses its rate."""
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        lab.say("spark: found no Java, wanted 17 or newer; left out")
        return []
    from pyspark.sql import SparkSession  # noqa: PLC0415 - it takes a second, and few measure it

    from joinery.generate.profiles import Constant  # noqa: PLC0415
    from joinery.model.spec import JoinQuery  # noqa: PLC0415
    from joinery.spark import session  # noqa: PLC0415
    from joinery.spark.loading import Load, Whole, send  # noqa: PLC0415

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    query = _query(lab.folder)
    spec = JoinQuery.parse_yaml(query.read_text()).spec

    def turn(
        spark: SparkSession, name: str, rate_hz: float, seconds: float, *, producers: int, is_paced: bool
    ) -> Whole:
        with _gateway(query) as (port, counted):
            profile, length_ns = Constant(rate_hz=rate_hz), int(seconds * 1e9)
            wanted = Load(
                f"127.0.0.1:{port}", spec, ("s1", "s2"), profile, length_ns, producers, 1, name, is_paced, ends=True
            )
            whole = Whole.of(send(wanted, spark, {}))
        if (found := counted()) != whole.sent or whole.sent != int(2 * rate_hz * seconds):
            raise BenchError(f"spark load: found {found} rows at the gateway, {whole.sent} sent, wanted all of them")
        return whole

    with session.local("bench", slots=4) as spark:
        rows = ROWS // lab.scale
        turn(spark, "warm", rows / 20, 1.0, producers=1, is_paced=False)
        fast = [turn(spark, f"fast-{n}", rows / 2, 1.0, producers=1, is_paced=False) for n in range(lab.reps)]
        paced = turn(spark, "paced", PACED_HZ, PACED_S / min(lab.scale, 5), producers=2, is_paced=True)
    sample = Sample(tuple(one.rate for one in fast))
    error = abs(paced.rate / (2 * PACED_HZ) - 1)
    lab.say(f"spark: {sample.median:,.0f} tuples/s made and sent; a paced load is off by {error:.2%}")
    return [Metric.rate(NAMES[0], sample), Metric(NAMES[1], error, "share")]


def _query(folder: Path) -> Path:
    spec = {"streams": [{"name": name, **_STREAM} for name in ("s1", "s2")], "join": {"on": ["key"]}}
    whole = {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": "load"}, "spec": spec}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "load.yaml"
    path.write_text(json.dumps(whole))
    return path


@contextmanager
def _gateway(query: Path) -> Iterator[tuple[int, Any]]:
    """Its port, and what tells how many rows it was sent."""
    words = [sys.executable, "-m", "bench.null_gateway", str(query)]
    root = Path(__file__).parents[1]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdin is not None  # noqa: S101 - as it was started
        assert process.stdout is not None  # noqa: S101
        try:
            port, said = int(process.stdout.readline()), list[int]()
            yield port, lambda: said[0]
        finally:
            process.stdin.close()
            said.append(int(process.stdout.readline() or -1))
