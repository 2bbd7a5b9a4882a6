"""The comparison with other engines, without the engines: small processes stand in for them."""

import ast
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from bench.answer import Answer, BenchError
from bench.inputs import packed_columns, written
from bench.lab import Lab
from bench.measure import Sample
from bench.peers import __main__ as command
from bench.peers import compare, engines, home
from bench.peers.compare import metrics_of, rate_of, taken_in_turns, true_answer
from bench.peers.engines import DATAFUSION, ENGINES, FLINK, SPARK, Engine, outcome_of, read_answer
from bench.peers.forms import FILES, converted
from bench.peers.home import Home, home_folder, missing, parsed_version
from bench.peers.job import CSV, PARTS, Input, Job, Outcome
from joinery.generate.keys import UniformKeys
from joinery.generate.workloads import Workload

SMALL = Workload(name="U1", rows_per_stream=2_000, rate_hz=10_000, keys=UniformKeys(200), window_ns=10**9 // 20, seed=1)
ENGINE = Engine("stand_in", "Stand-in 1.0", ("nothing==1",), CSV, memory_gb=0)
TRUTH = Answer(pairs=3, checksum=70)


def quiet(_: str) -> None:
    pass


def job_in(folder: Path) -> Job:
    given = Input(str(folder), 10, 1000)
    return Job(given, given, str(folder), "")


@pytest.fixture
def python(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a program that runs this code with the job in `job`, whatever module it is asked to run."""

    def make(code: str) -> Path:
        path = tmp_path / "python"
        path.write_text(
            f"#!{sys.executable}\nimport json, os, sys, time\njob = json.loads(sys.argv[3])\n"
            f"answer = job['scratch'] + '/answer.json'\n{code}\n"
        )
        path.chmod(0o755)
        return path

    return make


# --- what an engine says


def test_a_job_survives_its_way_to_the_engine() -> None:
    job = replace(job_in(Path("/x")), timed=Input("/y z", 7, 5), connector="/a.jar")
    assert job == Job.from_text(job.to_text())


def test_an_engine_is_asked_by_its_module_and_its_answer_is_read(tmp_path: Path, python: Callable[[str], Path]) -> None:
    code = "assert sys.argv[1:3] == ['-m', 'bench.peers.stand_in_join']\n"
    code += "open(answer, 'w').write(json.dumps({'pairs': job['timed']['rows'], 'checksum': 70, 'seconds': 2.5}))"
    assert Outcome(10, 70, 2.5) == outcome_of(ENGINE, python(code), job_in(tmp_path), tmp_path / "log")


def test_an_engine_that_fails_is_told_with_the_end_of_its_log(tmp_path: Path, python: Callable[[str], Path]) -> None:
    code = "print('the heap is full')\nsys.exit(3)"
    with pytest.raises(BenchError, match=r"Stand-in 1.0: ended with code 3 [\s\S]*the heap is full"):
        outcome_of(ENGINE, python(code), job_in(tmp_path), tmp_path / "log")


def test_the_answer_of_an_earlier_run_is_not_taken_for_this_one(tmp_path: Path, python: Callable[[str], Path]) -> None:
    job = job_in(tmp_path)
    job.answer.write_text(json.dumps({"pairs": 3, "checksum": 70, "seconds": 1}))
    with pytest.raises(BenchError, match="left no answer"):
        outcome_of(ENGINE, python("pass"), job, tmp_path / "log")


def test_an_engine_that_hangs_is_ended_with_its_children(tmp_path: Path, python: Callable[[str], Path]) -> None:
    code = "child = os.fork()\nopen(job['scratch'] + '/pid', 'w').write(str(child)) if child else None\ntime.sleep(60)"
    with pytest.raises(BenchError, match="stopped after 2 s"):
        outcome_of(ENGINE, python(code), job_in(tmp_path), tmp_path / "log", limit_s=2)
    assert ended(int((tmp_path / "pid").read_text()))


def ended(pid: int) -> bool:
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_an_engine_is_ended_when_the_benchmark_is_interrupted(
    tmp_path: Path, python: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "pid"

    def interrupted() -> float:
        if pid.exists() and pid.read_text():
            raise KeyboardInterrupt
        return 100.0

    monkeypatch.setattr(engines, "free_memory_gb", interrupted)
    code = "open(job['scratch'] + '/pid', 'w').write(str(os.getpid()))\ntime.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        outcome_of(ENGINE, python(code), job_in(tmp_path), tmp_path / "log")
    assert ended(int(pid.read_text()))


def test_an_engine_that_would_not_fit_the_memory_is_not_started(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"found .* GB of free memory, wanted 1e\+06 GB: end other programs"):
        outcome_of(replace(ENGINE, memory_gb=1e6), tmp_path / "none", job_in(tmp_path), tmp_path / "log")


def test_an_engine_is_stopped_before_it_takes_the_last_memory(
    tmp_path: Path, python: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "free_memory_gb", lambda: 0.5)
    with pytest.raises(BenchError, match=r"less than 0.7 GB of memory were left"):
        outcome_of(ENGINE, python("time.sleep(60)"), job_in(tmp_path), tmp_path / "log")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", '{"pairs": 3, "checksum": 70}', '{"pairs": null, "checksum": 70, "seconds": 1}', '{"pairs"'],
)
def test_an_answer_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "answer.json"
    path.write_text(text)
    with pytest.raises(BenchError, match="left no answer that can be read"):
        read_answer(ENGINE, path)


@pytest.mark.parametrize("seconds", ["0", "-1", "NaN"])
def test_an_answer_in_no_time_is_refused(tmp_path: Path, seconds: str) -> None:
    path = tmp_path / "answer.json"
    path.write_text(f'{{"pairs": 3, "checksum": 70, "seconds": {seconds}}}')
    with pytest.raises(BenchError, match="wanted more than 0"):
        read_answer(ENGINE, path)


# --- rates and ratios


def test_a_rate_is_tuples_over_seconds() -> None:
    assert 20.0 == rate_of("x", Outcome(TRUTH.pairs, TRUTH.checksum, 0.5), TRUTH, 10)


@pytest.mark.parametrize("outcome", [Outcome(2, 70, 0.5), Outcome(3, 71, 0.5)], ids=["pairs", "checksum"])
def test_a_wrong_answer_has_no_rate(outcome: Outcome) -> None:
    with pytest.raises(BenchError, match="a wrong result has no rate"):
        rate_of("x", outcome, TRUTH, 10)


def test_the_ratio_is_ours_over_theirs_by_medians() -> None:
    samples = {
        "service": Sample((30.0, 10.0, 20.0)),
        "flink": Sample((2.0, 4.0, 6.0)),
        "spark": Sample((1.0, 1.0, 2.0)),
    }
    found = {metric.name: metric.value for metric in metrics_of("U1", samples)}
    assert found == {
        "service.U1.tuples_per_s": 20.0,
        "peers.flink.U1.tuples_per_s": 4.0,
        "peers.spark.U1.tuples_per_s": 1.0,
        "service.U1.ratio_to_flink": 5.0,
        "service.U1.ratio_to_spark": 20.0,
    }


def test_without_ours_there_are_rates_but_no_ratios() -> None:
    assert ["peers.flink.U1.tuples_per_s"] == [metric.name for metric in metrics_of("U1", {"flink": Sample((2.0,))})]


def test_who_fails_once_gets_no_figure_and_no_further_turn_and_the_others_go_on() -> None:
    turns: list[str] = []

    def good() -> float:
        turns.append("service")
        return 2.0

    def bad() -> float:
        turns.append("flink")
        return 1.0 if turns.count("flink") == 1 else rate_of("Flink", Outcome(2, 70, 1.0), TRUTH, 10)

    told: list[str] = []
    samples, failed = taken_in_turns({"service": good, "flink": bad}, 3, told.append)
    assert ["service", "flink", "service", "flink", "service"] == turns
    assert {"service": Sample((2.0, 2.0, 2.0))} == samples
    assert ["flink"] == list(failed)
    assert told == list(failed.values())


def test_the_right_answer_is_the_c_programs_if_it_has_the_counted_pairs(tmp_path: Path) -> None:
    lab = Lab(tmp_path, {"U1": SMALL}, reps=1, scale=1, say=quiet)
    files = written(SMALL, tmp_path / "data" / "U1", quiet)
    assert files.pairs == true_answer(lab, files).pairs
    with pytest.raises(BenchError, match="the C program found"):
        true_answer(lab, replace(files, pairs=files.pairs + 1))


def test_a_comparison_has_ours_and_the_engines_that_were_right(
    tmp_path: Path, python: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(tmp_path, {"U1": SMALL, "U1small": SMALL}, reps=2, scale=1, say=quiet)
    truth = true_answer(lab, written(SMALL, tmp_path / "data" / "U1", quiet))
    said = {"right": truth.pairs, "wrong": truth.pairs - 1}
    code = f"pairs = {said}[sys.argv[2].split('.')[2].split('_')[0]]\n"
    code += f"open(answer, 'w').write(json.dumps({{'pairs': pairs, 'checksum': {truth.checksum}, 'seconds': 2}}))"
    program = python(code)

    def python_of(_: Home, engine: Engine) -> Path:
        if engine.name == "absent":
            raise BenchError("set-up step absent-packages failed")
        return program

    monkeypatch.setattr(Home, "python", python_of)
    monkeypatch.setattr(compare, "_ours", lambda *_: 8_000.0)
    asked = [replace(ENGINE, name=name) for name in ("right", "wrong", "absent")]
    found = compare.compare(lab, "U1", asked, workers=2)
    assert {metric.name: metric.value for metric in found.metrics} == {
        "service.U1.tuples_per_s": 8_000.0,
        "peers.right.U1.tuples_per_s": 2_000.0,
        "service.U1.ratio_to_right": 4.0,
    }
    assert {"wrong", "absent"} == set(found.failed)
    assert [] == list(tmp_path.glob("*-run-*")), "scratch folders stay behind"


# --- input


def test_every_form_holds_the_rows_of_the_packed_records(tmp_path: Path) -> None:
    files = written(SMALL, tmp_path, quiet)
    given = converted(files, quiet)
    assert Input(str(tmp_path), 2_000, 50_000) == given
    for stream in (1, 2):
        rows = pa.Table.from_batches([packed_columns(tmp_path / f"s{stream}.raw")])
        numbered = rows.add_column(0, "id", pa.array(range(2_000)))
        text = pa.csv.read_csv(given.path(CSV, stream))
        at = text.schema.get_field_index("payload")
        assert numbered.equals(text.set_column(at, "payload", text.column("payload").cast(rows.schema.field(2).type)))
        parts = sorted(Path(given.path(PARTS, stream)).iterdir(), key=lambda path: path.stat().st_mtime)
        assert FILES == len(parts)
        assert numbered.equals(pa.concat_tables([pa.parquet.read_table(part) for part in parts]))


def test_forms_are_written_once_for_a_workload(tmp_path: Path) -> None:
    told: list[str] = []
    for workload in (SMALL, SMALL, replace(SMALL, seed=2)):
        converted(written(workload, tmp_path, quiet), told.append)
    assert 2 == len(told)


# --- set-up


def test_the_cache_is_where_the_environment_says(tmp_path: Path) -> None:
    assert tmp_path == home_folder({"JOINERY_PEERS": str(tmp_path)})
    assert Path.home() / ".cache/joinery/peers" == home_folder({"JOINERY_PEERS": ""})
    assert Path.cwd() / "here" == home_folder({"JOINERY_PEERS": "here"})


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("javac 17.0.15\n", 17),
        ("javac 21\n", 21),
        ("javac 1.8.0_402\n", 8),
        ("Picked up X\njavac 25-ea", 25),
        ("", None),
    ],
)
def test_the_version_of_a_jdk_is_read(said: str, version: int | None) -> None:
    assert version == parsed_version(said)


def test_all_that_is_missing_is_named_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(home, "_free_gb", lambda _: 0.5)
    gcc, jdk, disk = missing(tmp_path, ENGINES)
    assert "apt-get install gcc" in gcc
    assert "flink and spark: found no JDK, wanted JDK 17 or newer" in jdk
    assert "found 0.5 GB free, wanted 10 GB: make room, or name another folder in JOINERY_PEERS" in disk
    assert 2 == len(missing(tmp_path, [DATAFUSION])), "DataFusion needs no JDK"


@pytest.mark.parametrize(("version", "lacks"), [(11, True), (17, False), (21, False)])
def test_an_old_jdk_is_not_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, lacks: bool) -> None:
    monkeypatch.setattr(home, "jdk_version", lambda: version)
    monkeypatch.setattr(home, "_free_gb", lambda _: 100.0)
    assert lacks == any(f"found JDK {version}" in line for line in missing(tmp_path, [FLINK]))


def test_the_command_stops_at_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "missing", lambda *_: ["gcc is missing: install it"])
    assert 2 == command.main([])
    assert "gcc is missing: install it\n" == capsys.readouterr().err


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps of the set-up, which are not carried out."""
    found: list[str] = []
    monkeypatch.setattr(Home, "step", lambda _, name, command: found.append(f"{name}: {' '.join(command[-2:])}"))
    return found


def test_an_environment_is_made_once_and_again_for_other_packages(tmp_path: Path, steps: list[str]) -> None:
    there = Home(tmp_path, quiet)
    for engine in (SPARK, SPARK, replace(SPARK, packages=("pyspark==9",))):
        assert tmp_path / "spark" / "env" / "bin" / "python" == there.python(engine)
    assert ["spark-packages: --disable-pip-version-check pyspark==4.3.0", "spark-packages: --disable-pip-version-check "
            "pyspark==9"] == steps[1::2]  # fmt: skip
    assert 4 == len(steps)


def test_an_environment_that_was_not_finished_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, begun = Home(tmp_path, quiet), []

    def failing(_: Home, name: str, command: list[str]) -> None:
        begun.append(name)
        (tmp_path / "spark" / "half").touch()
        if len(begun) == 2:
            raise BenchError("no network")

    monkeypatch.setattr(Home, "step", failing)
    with pytest.raises(BenchError, match="no network"):
        there.python(SPARK)
    (tmp_path / "spark" / "left over").touch()
    there.python(SPARK)
    assert ["spark-environment", "spark-packages"] * 2 == begun
    assert not (tmp_path / "spark" / "left over").exists()


def test_a_step_that_fails_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    told: list[str] = []
    with pytest.raises(BenchError, match=r"set-up step flink-packages failed [\s\S]*no such package"):
        Home(tmp_path, told.append).step("flink-packages", ["sh", "-c", "echo no such package; exit 1"])
    assert ["setting up: flink-packages"] == told


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_every_package_of_an_engine_is_pinned_and_its_module_is_there(engine: Engine) -> None:
    assert [] == [package for package in engine.packages if "==" not in package]
    assert (engines.ROOT / (engine.module.replace(".", "/") + ".py")).exists()


def test_what_runs_under_the_python_of_an_engine_needs_nothing_of_ours() -> None:
    code = "import sys; import bench.peers.job; print({name.split('.')[0] for name in sys.modules})"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], cwd=engines.ROOT, capture_output=True, text=True, check=True
    )
    assert not {"joinery", "numpy", "pyarrow"} & ast.literal_eval(done.stdout)
