"""`joinery run` with Parquet sources and sink: real processes, real gRPC, real Redis; the truth is DuckDB's."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.support.running import called

ROWS = 4000
WINDOWS_MS = (300, 120)
PAIR = (
    f"a.k = b.k and ((a.ts between b.ts - {WINDOWS_MS[0]} and b.ts) or (b.ts between a.ts - {WINDOWS_MS[1]} and a.ts))"
)
BOTH = "a.k, a.n, a.ts, b.k, b.n, b.ts"
TRUTH = {
    "inner": f"select {BOTH} from a join b on {PAIR}",
    "left": f"select {BOTH} from a left join b on {PAIR}",
    "right": f"select {BOTH} from a right join b on {PAIR}",
    "full": f"select {BOTH} from a full join b on {PAIR}",
    "semi": f"select a.k, a.n, a.ts from a where exists (select 1 from b where {PAIR})",
    "anti": f"select a.k, a.n, a.ts from a where not exists (select 1 from b where {PAIR})",
}
SHAPES: dict[str, dict[str, Any]] = {
    "inner": {"replicas": 1},
    "left": {"replicas": 3, "partitions": 7, "epochs": {"distribution": "20ms", "subgroups": 3}},
    "right": {"replicas": 2, "partitions": 1},
    "full": {"replicas": 2, "epochs": {"distribution": "50ms", "subgroups": 1}, "fineTuning": {"theta": "4Ki"}},
    "semi": {"replicas": 2, "partitions": 30},
    "anti": {"replicas": 3, "fineTuning": {"enabled": False}},
}


def write_input(folder: Path) -> None:
    rng = np.random.default_rng(7)
    for name in ("a", "b"):
        keys = pa.array(rng.integers(0, 400, ROWS), mask=rng.random(ROWS) < 0.02)
        times = np.sort(rng.integers(0, 20_000, ROWS))
        pq.write_table(pa.table({"k": keys, "n": np.arange(ROWS), "ts": times}), folder / f"{name}.parquet")


def write_query(folder: Path, kind: str, **more: Any) -> Path:
    streams = [
        {
            "name": name,
            "schema": {"k": "int64", "n": "int64", "ts": "int64"},
            "window": f"{window}ms",
            "time": {"column": "ts", "unit": "ms"},
            "source": {"file": {"path": f"{name}.parquet"}},
        }
        for name, window in zip("ab", WINDOWS_MS, strict=True)
    ]
    spec = {
        "streams": streams,
        "join": {"on": ["k"], "type": kind},
        "sinks": [{"file": {"path": "out.parquet"}}],
        "checkpoint": {"durability": "memory", "interval": "200ms"},
        **more,
    }
    query = {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": "trial"}, "spec": spec}
    path = folder / "query.yaml"
    path.write_text(yaml.safe_dump(query))
    return path


COMMAND = [sys.executable, "-c", "from joinery.cli.main import app; app()"]


def joinery(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False)  # noqa: S603


def started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603


def until(is_so: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def children(pid: int) -> dict[str, int]:
    """The processes of a run that is under way, by name: the children of its nursery."""
    words, parents = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words[int(folder.name)] = (folder / "cmdline").read_text().split("\0")
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found = [one for one, parent in parents.items() if parents.get(parent) == pid and "--name" in words[one]]
    return {words[one][words[one].index("--name") + 1]: one for one in found}


def parts(folder: Path) -> list[Path]:
    return list(folder.glob("*.parts*"))


def truth(folder: Path, kind: str) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name in "ab":
            connection.execute(f"create view {name} as select * from '{folder}/{name}.parquet'")
        return Counter(connection.execute(TRUTH[kind]).fetchall())


@pytest.mark.parametrize("kind", TRUTH)
def test_a_run_from_files_to_a_file_is_exact(kind: str, tmp_path: Path) -> None:
    write_input(tmp_path)
    done = called("run", str(write_query(tmp_path, kind, **SHAPES[kind])))
    assert 0 == done.returncode, done.stderr
    found = Counter(tuple(row.values()) for row in pq.read_table(tmp_path / "out.parquet").to_pylist())
    assert truth(tmp_path, kind) == found


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("a.parquet/out.csv", "a.parquet is no folder"),
        ("/proc/out.csv", "nothing can be made in /proc (No such file or directory)"),
        ("/proc/new/out.csv", "nothing can be made in /proc"),
        ("folder.csv", "found the directory"),
    ],
)
def test_an_output_in_an_impossible_place_is_refused_before_anything_starts(
    path: str, why: str, tmp_path: Path
) -> None:
    write_input(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    done = called("run", str(write_query(tmp_path, "inner", sinks=[{"file": {"path": path}}])))
    assert 2 == done.returncode
    assert why in done.stderr
    assert done.stderr.startswith("spec.sinks[0].file.path: found ")


def test_an_output_in_a_folder_that_is_not_there_yet_is_written(tmp_path: Path) -> None:
    write_input(tmp_path)
    done = called("run", str(write_query(tmp_path, "inner", sinks=[{"file": {"path": "new/er/out.csv"}}])))
    assert (0, True) == (done.returncode, (tmp_path / "new" / "er" / "out.csv").is_file()), done.stderr


def test_a_missing_query_file_is_told(tmp_path: Path) -> None:
    done = called("run", str(tmp_path / "nowhere.yaml"))
    assert (2, True) == (done.returncode, "wanted a query file" in done.stderr)


def test_a_sink_that_would_replace_a_source_is_refused(tmp_path: Path) -> None:
    write_input(tmp_path)
    done = called("run", str(write_query(tmp_path, "inner", sinks=[{"file": {"path": "a.parquet"}}])))
    assert (2, True) == (done.returncode, "a.parquet, a source" in done.stderr)


def test_without_a_word_about_durability_the_log_is_on_disk(tmp_path: Path) -> None:
    write_input(tmp_path)
    done = called("run", str(write_query(tmp_path, "inner", checkpoint={"interval": "200ms"})))
    assert 0 == done.returncode, done.stderr


def test_the_summary_tells_rows_results_workers_and_where_they_are(tmp_path: Path) -> None:
    write_input(tmp_path)
    late = {"sink": {"file": {"path": "late.csv"}}}
    done = joinery("run", str(write_query(tmp_path, "inner", replicas=2, late=late)), "--json")
    assert 0 == done.returncode, done.stderr
    told = json.loads(done.stdout)
    wanted = truth(tmp_path, "inner").total()
    assert ("trial", "done", {"a": ROWS, "b": ROWS}) == (told["query"], told["state"], told["rows"])
    assert (wanted, wanted, [2]) == (
        told["results"],
        told["delay"]["results"],
        [one["workers"] for one in told["degree"]],
    )
    assert 0 < told["delay"]["p50"] <= told["delay"]["p99"] <= told["delay"]["max"] < told["seconds"]
    assert told["delay"]["mean"] <= told["delivery"]["mean"]
    assert [
        "trial: done in",
        f"  rows in  a {ROWS:,}, b {ROWS:,}",
        f"  results  {wanted:,} in {tmp_path / 'out.parquet'}",
    ] == [
        line[: len(start)]
        for line, start in zip(
            done.stderr.splitlines()[-5:],
            (
                "trial: done in",
                f"  rows in  a {ROWS:,}, b {ROWS:,}",
                f"  results  {wanted:,} in {tmp_path / 'out.parquet'}",
            ),
            strict=False,
        )
    ]


def test_late_rows_are_counted_and_it_is_said_where_they_are(tmp_path: Path) -> None:
    write_input(tmp_path)
    times = pq.read_table(tmp_path / "a.parquet").column("ts").to_numpy().copy()
    times[[100, 200, 300]] -= 5000
    table = pq.read_table(tmp_path / "a.parquet").set_column(2, "ts", pa.array(times))
    pq.write_table(table, tmp_path / "a.parquet")
    late = {"sink": {"file": {"path": "late.csv"}}}
    done = called("run", str(write_query(tmp_path, "inner", late=late)), "--json")
    told = json.loads(done.stdout)["late"]
    written = (tmp_path / "late-a.csv").read_text().splitlines()
    assert ({"a": 3, "b": 0}, str(tmp_path / "late-a.csv")) == (told["rows"], told["files"]["a"])
    assert 1 + 3 == len(written)
    assert f"3 rows (a 3) in {tmp_path / 'late-a.csv'}" in done.stderr


def test_quiet_is_quiet(tmp_path: Path) -> None:
    write_input(tmp_path)
    done = joinery("run", str(write_query(tmp_path, "inner")), "--quiet")
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


def test_a_file_that_will_be_replaced_is_named_first_or_refused(tmp_path: Path) -> None:
    write_input(tmp_path)
    (tmp_path / "out.parquet").write_text("old")
    query = str(write_query(tmp_path, "inner"))
    refused = called("run", query, "--no-clobber")
    assert (2, True, "old") == (
        refused.returncode, "--no-clobber: found" in refused.stderr, (tmp_path / "out.parquet").read_text(),
    )  # fmt: skip
    done = called("run", query)
    assert f"{tmp_path / 'out.parquet'} (3 B) is there, and will be replaced" in done.stderr.splitlines()[0]
    assert truth(tmp_path, "inner").total() == pq.read_metadata(tmp_path / "out.parquet").num_rows


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda folder: (folder / "b.parquet").unlink(), "found no file"),
        (lambda folder: (folder / "b.parquet").write_text("nonsense"), "found what cannot be read"),
        (lambda folder: pq.write_table(pa.table({"k": [1], "n": [1]}), folder / "b.parquet"), "ts"),
    ],
)
def test_a_bad_input_is_refused_before_a_process_starts(
    break_it: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    write_input(tmp_path)
    break_it(tmp_path)
    done = called("run", str(write_query(tmp_path, "inner")))
    assert (2, True, True) == (done.returncode, "spec.streams[1].source" in done.stderr, said in done.stderr), (
        done.stderr
    )
    assert "gateway" not in done.stderr


def slow(folder: Path) -> Path:
    """A run that takes a while: rows come as fast as their times say."""
    write_input(folder)
    path = write_query(folder, "inner", replicas=2)
    query = yaml.safe_load(path.read_text())
    for stream in query["spec"]["streams"]:
        stream["source"]["pace"] = "time"
    path.write_text(yaml.safe_dump(query))
    return path


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_leaves_no_process_and_no_half_written_file(how: signal.Signals, tmp_path: Path) -> None:
    run = started("run", str(slow(tmp_path)))
    until(lambda: bool(parts(tmp_path)))
    pids = list(children(run.pid).values())
    run.send_signal(how)
    _, said = run.communicate(timeout=60)
    assert (1, []) == (run.returncode, parts(tmp_path))
    assert "trial: stopped after" in said
    assert [] == [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_a_collector_that_is_killed_is_replaced_and_leaves_no_parts(tmp_path: Path) -> None:
    run = started("run", str(slow(tmp_path)))
    until(lambda: bool(parts(tmp_path)))
    os.kill(children(run.pid)["collector"], signal.SIGKILL)
    _, said = run.communicate(timeout=100)
    assert (0, []) == (run.returncode, parts(tmp_path)), said
    assert "collector was killed (SIGKILL); another one takes its place" in said
    found = Counter(tuple(row.values()) for row in pq.read_table(tmp_path / "out.parquet").to_pylist())
    assert truth(tmp_path, "inner") == found


def test_a_worker_that_is_killed_is_mentioned_and_the_output_is_exact(tmp_path: Path) -> None:
    run = started("run", str(slow(tmp_path)))
    until(lambda: bool(parts(tmp_path)) and "worker-1" in children(run.pid))
    time.sleep(1)
    os.kill(children(run.pid)["worker-1"], signal.SIGKILL)
    _, said = run.communicate(timeout=100)
    assert 0 == run.returncode, said
    assert "worker-1 was killed (SIGKILL); another one takes its place" in said
    found = Counter(tuple(row.values()) for row in pq.read_table(tmp_path / "out.parquet").to_pylist())
    assert truth(tmp_path, "inner") == found
