"""The benchmark on inputs of a few thousand rows: what it says is right, whatever the figures are."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from bench import steady, throughput
from bench.answer import Answer, BenchError
from bench.c_program import FLAGS, SOURCE, CProgram
from bench.cli import Job, jobs, main, run
from bench.core_join import answer_of, living_rows, plan_of, read
from bench.inputs import count_pairs, turns, written
from bench.lab import HEADLINE, Lab, described
from bench.report import Metric, goal_of, table, write_json
from joinery.generate.bmodel import BModelKeys
from joinery.generate.keys import UniformKeys
from joinery.generate.workloads import WORKLOADS, Workload

SECOND = 10**9
UNIFORM = Workload(
    name="U1", rows_per_stream=20_000, rate_hz=10_000, keys=UniformKeys(2_000), window_ns=SECOND // 4, seed=1
)
SKEWED = replace(UNIFORM, name="B8", keys=BModelKeys(10**5, 0.8), seed=2)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path, {"U1": UNIFORM, "B8": SKEWED}, reps=1, scale=100, say=lambda _: None)


def slow_pairs(streams: tuple[pa.RecordBatch, pa.RecordBatch], window_us: int) -> list[tuple[int, int]]:
    left, right = (
        list(enumerate(zip(*rows.select(["ts", "key"]).to_pydict().values(), strict=True))) for rows in streams
    )
    same_key: dict[int, list[tuple[int, int]]] = {}
    for place, (time, key) in right:
        same_key.setdefault(key, []).append((place, time))
    return [
        (place, other)
        for place, (time, key) in left
        for other, its_time in same_key.get(key, ())
        if abs(time - its_time) <= window_us
    ]


@pytest.mark.parametrize("name", ["U1", "B8"])
@pytest.mark.parametrize("full", [False, True], ids=["ids", "rows"])
def test_the_c_program_and_the_core_give_the_pairs_of_nested_loops(lab: Lab, name: str, full: bool) -> None:
    opened = lab.open(name)
    pairs = slow_pairs(opened.streams, opened.files.window_us)
    truth = Answer(len(pairs), sum((a * 1000003 + b * 7919) % 1000000007 for a, b in pairs))
    plan = plan_of(opened.workload, rows=full)
    with lab.program().loaded(opened.files, full=full) as program:
        assert [truth, truth] == [program.run().answer, program.run().answer]
    assert truth == answer_of(plan, read(plan, opened.turns), opened.streams if full else ())
    assert truth.pairs == opened.files.pairs


def test_a_run_writes_every_metric_that_its_jobs_promise(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    wanted = [job for job in jobs() if not any(".B7." in name or name.startswith("service.") for name in job.names)]
    run(lab, wanted, path)
    found = json.loads(path.read_text())
    assert sorted(name for job in wanted for name in job.names) == sorted(one["name"] for one in found)
    assert [{"name", "value", "unit"}] * len(found) == [set(one) for one in found]
    assert all(isinstance(one["value"], float) and one["value"] > 0 for one in found)


def test_a_wrong_answer_stops_the_run_before_anything_is_timed(lab: Lab) -> None:
    files = lab.open("U1").files
    right, wrong = Answer(files.pairs, 1), Answer(files.pairs, 2)
    throughput.agree(files, right, right)
    with pytest.raises(BenchError, match="the answers differ"):
        throughput.agree(files, right, wrong)
    with pytest.raises(BenchError, match="the answers differ"):
        throughput.agree(files, Answer(1, 1), Answer(1, 1))


def test_a_result_row_that_is_not_its_members_columns_is_refused(lab: Lab) -> None:
    opened = lab.open("U1")
    plan = plan_of(opened.workload, rows=True)
    swapped = opened.streams[1], opened.streams[0]
    with pytest.raises(BenchError, match="is not what came in"):
        answer_of(plan, read(plan, opened.turns), swapped)


def test_without_gcc_the_remedy_is_said_even_if_a_binary_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shj").touch()
    assert tmp_path / "shj" == CProgram.compiled(tmp_path).path
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(BenchError, match="install it"):
        CProgram.compiled(tmp_path)


def test_without_gcc_no_rows_are_made(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(BenchError, match="install it"):
        run(lab, jobs(), lab.folder / "bench.json")
    assert [] == list(lab.folder.iterdir())


def test_a_measurement_of_the_core_alone_needs_no_gcc(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    alone = [job for job in jobs() if job.is_wanted("core.hash.memory_factor")]
    assert ["core.hash.memory_factor"] == [one.name for one in run(lab, alone, lab.folder / "bench.json")]


def test_a_quick_look_says_the_windows_that_it_really_has(lab: Lab) -> None:
    said: list[str] = []
    steady.window_growth(replace(lab, scale=100, say=said.append))
    assert ["0.01 s", "0.1 s", "1 s"] * 2 == [line.split("window of ")[1].split(":")[0] for line in said]


def test_help_explains_every_workload(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert "U1: 5,000,000 rows at 100,000/s, 1,000,000 keys all alike, windows of 10 s" in shown
    assert all(described(WORKLOADS[name]) in shown for name in HEADLINE)


def test_the_compiler_keeps_the_prefetches_of_the_c_program() -> None:
    gcc = shutil.which("gcc")
    assert gcc is not None, "gcc is missing: install it (Debian: apt-get install gcc)"
    text = subprocess.run([gcc, *FLAGS, "-S", SOURCE, "-o", "-"], capture_output=True, text=True, check=True).stdout  # noqa: S603
    wanted = SOURCE.read_text().count("__builtin_prefetch")
    assert wanted <= sum(text.count(name) for name in ("prefetch", "prfm"))  # without them it is a third slower


def test_files_are_made_once_per_workload_and_anew_for_another_seed(tmp_path: Path) -> None:
    said: list[str] = []
    first = written(UNIFORM, tmp_path, said.append)
    assert first == written(UNIFORM, tmp_path, said.append)
    assert 1 == len(said)
    written(replace(UNIFORM, seed=9), tmp_path, said.append)
    assert 2 == len(said)


def test_turns_are_cut_at_the_same_times_and_hold_every_row() -> None:
    streams = tuple(
        pa.RecordBatch.from_pydict({"ts": pa.array(times, pa.int64()), "key": pa.array(times, pa.int64())})
        for times in ([1, 2, 3, 3, 5], [2, 2, 3, 4, 9])
    )
    found = turns(streams, batch_rows=2)
    #                   s1: 1 2 | 3 3 | 5      s2: 2 2 | 3 | 4 9
    assert [([1, 2], [2, 2]), ([3, 3], [3]), ([5], [4, 9])] == [
        tuple(batch.column("ts").to_pylist() for batch in turn.batches) for turn in found
    ]
    assert [(0, 0), (2, 2), (4, 3)] == [turn.firsts for turn in found]
    assert [(2000, 2000), (3000, 3000), (5000, 9000)] == [turn.marks.watermarks for turn in found]
    assert 1 + 5 == living_rows(found, window_ns=4000)  # s1 from 9 - 4 on, s2 from 5 - 4 on


def test_pairs_are_counted_with_both_ends_of_the_window() -> None:
    def rows(times: list[int]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"ts": times, "key": [7] * len(times)})

    assert 3 == count_pairs([rows([10]), rows([4, 5, 10, 15, 16])], window_us=5)


def test_the_file_keeps_what_an_earlier_run_put_there(tmp_path: Path) -> None:
    path = tmp_path / "build" / "bench.json"
    write_json(path, [Metric("a", 1.0, "ratio"), Metric("b", 2.0, "ratio")])
    write_json(path, [Metric("b", 3.0, "ratio")])
    assert [("a", 1.0), ("b", 3.0)] == [(one["name"], one["value"]) for one in json.loads(path.read_text())]


@pytest.mark.parametrize(
    ("name", "value", "verdict"),
    [
        ("core.hash.U1.ratio_to_c", 0.9, "met"),
        ("core.hash.U1.ratio_to_c", 0.89, "NOT MET"),
        ("core.hash.B8.rows.ratio_to_c", 0.7, "met"),
        ("core.hash.window_growth", 1.31, "NOT MET"),
        ("core.hash.memory_factor", 1.6, "met"),
        ("core.fine_tuning.speedup", 4.9, "NOT MET"),
        ("core.hash.U1.tuples_per_s", 1.0, "ratio"),
    ],
)
def test_the_table_says_whether_a_goal_is_met(name: str, value: float, verdict: str) -> None:
    assert table([Metric(name, value, "ratio")]).endswith(verdict)


def test_only_a_pattern_of_metrics_is_wanted() -> None:
    job = Job(("core.hash.U1.ratio_to_c", "c.U1.tuples_per_s"), lambda _: [])
    assert [True, True, False] == [job.is_wanted(pattern) for pattern in ("*", "c.U1.*", "core.hash.B7.*")]
    assert goal_of("c.U1.tuples_per_s") is None
