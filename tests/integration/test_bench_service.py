"""The benchmark of the service, small: it runs, counts right, and says what was used."""

from pathlib import Path

import numpy as np

from bench.lab import Lab, small
from bench.service import latencies_ms, throughput
from joinery.generate.workloads import WORKLOADS


def lab(folder: Path) -> Lab:
    workloads = {name: small(WORKLOADS[name], factor) for name, factor in (("U1", 100), ("L1", 60))}
    return Lab(folder, workloads, 1, 100, lambda _: None)


def test_throughput_is_of_all_tuples_and_cpu_of_all_processes(tmp_path: Path) -> None:
    ran = throughput(lab(tmp_path), "U1", 2, "count")
    assert 100_000 == ran.tuples
    assert ran.seconds > 0
    assert {"producer", "gateway", "collector", "worker-0", "worker-1", "redis"} == set(ran.used.rss_bytes)


def test_latencies_are_of_every_result_and_never_before_their_later_row(tmp_path: Path) -> None:
    found = latencies_ms(lab(tmp_path), "L1", 1)
    assert found.size > 0
    assert np.isfinite(found).all()
    assert found.min() > 0
