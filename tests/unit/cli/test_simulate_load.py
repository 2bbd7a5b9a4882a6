import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from joinery.cli import load_story
from joinery.cli.main import app

ROOT = Path(__file__).parents[3]
SMALL = ("--row-ns", "400000", "--method", "hash", "--window", "60s")
"""A worker bears 2500 rows/s."""

QUERY = """
apiVersion: joinery.dev/v1alpha1
kind: JoinQuery
metadata: {name: small}
spec:
  streams:
    - {name: left, schema: {id: int64, ts: int64}, window: 30s}
    - {name: right, schema: {id: int64, ts: int64}, window: WINDOW}
  join: {on: [id]}
  epochs: {distribution: 500ms, reorganization: 5s}
  scaling: {rule: paper, beta: 0.25, max: 3}
  worker: {speed: 2500}
"""


def run(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["simulate", "load", *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_a_picture_that_cannot_be_drawn_is_refused_before_anything_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_story, "find_spec", lambda _: None)
    code, text, errors = run(*SMALL, "--plot", str(tmp_path / "out.png"))
    assert (2, "") == (code, text)
    assert "--plot: found matplotlib is not installed, wanted matplotlib; make venv" in errors


def test_a_query_file_that_is_no_query_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("- 1\n")
    code, _, errors = run(str(path))
    assert 2 == code
    assert errors.startswith(f"{path}: found a list of 1, wanted a mapping")


def test_a_step_of_the_rate_makes_the_cluster_grow_and_the_run_is_written_down(tmp_path: Path) -> None:
    out, picture = tmp_path / "out.json", tmp_path / "out.png"
    words = ("--profile", "step:500,2000,20s", "--until", "120s", "--json", str(out), "--plot", str(picture))
    code, text, _ = run(*SMALL, *words, "--scale-up", "10s")
    assert 0 == code
    assert "grow by 1" in text
    assert "suppliers > 0.5 x" in text
    assert "[blocked by stabilization]" in text
    assert "delay: mean" in text
    told = json.loads(out.read_text())
    assert ["guarded", 0.5] == [told["rule"], told["beta"]]
    assert 2 <= max(sample["degree"] for sample in told["samples"])
    assert {"nSup", "n_sup"} & told["decisions"][0].keys() == {"n_sup"}
    assert b"\x89PNG" == picture.read_bytes()[:4]


def test_the_same_words_tell_the_same_story() -> None:
    words = (*SMALL, "--profile", "constant:1500", "--until", "60s")
    assert run(*words) == run(*words)
    assert run(*words) != run(*words, "--seed", "1")


def test_a_query_file_gives_the_rules_and_the_options_override_them(tmp_path: Path) -> None:
    file, out = tmp_path / "query.yaml", tmp_path / "out.json"
    file.write_text(QUERY.replace("WINDOW", "30s"))
    code, text, _ = run(str(file), "--profile", "constant:2000", "--until", "60s", "--json", str(out))
    assert 0 == code
    assert "query.yaml: 60 s simulated, rule paper, hash join, t_d 0.5 s, t_r 5 s" in text
    assert 3 == max(sample["degree"] for sample in json.loads(out.read_text())["samples"])
    assert 0.25 == json.loads(out.read_text())["beta"]
    run(str(file), "--profile", "constant:2000", "--until", "60s", "--max", "2", "--beta", "0.75", "--json", str(out))
    assert 2 == max(sample["degree"] for sample in json.loads(out.read_text())["samples"])
    assert 0.75 == json.loads(out.read_text())["beta"]


def test_the_example_of_the_repository_is_simulated_with_its_generators_rates(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    code, _, _ = run(str(ROOT / "examples/00-core-join/query.yaml"), "--until", "20s", "--json", str(out))
    assert 0 == code
    assert [10_000, 10_000] == [
        pytest.approx(hz, rel=0.05) for hz in json.loads(out.read_text())["samples"][-1]["rates_hz"]
    ]


def test_a_trace_is_followed_stream_by_stream(tmp_path: Path) -> None:
    trace, out = tmp_path / "rates.csv", tmp_path / "out.json"
    trace.write_text("time_s,left,right\n0,1000,100\n40,100,1000\n")
    code, _, _ = run(*SMALL, "--trace", str(trace), "--until", "80s", "--json", str(out))
    assert 0 == code
    rates = [sample["rates_hz"] for sample in json.loads(out.read_text())["samples"]]
    assert [1000, 100] == [pytest.approx(hz, rel=0.2) for hz in rates[0]]
    assert [100, 1000] == [pytest.approx(hz, rel=0.2) for hz in rates[-1]]


def test_a_slowed_worker_loses_groups(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    words = ("--profile", "constant:1500", "--workers", "2", "--fixed", "--slow", "1@40s:0.25", "--until", "200s")
    assert 0 == run(*SMALL, *words, "--json", str(out))[0]
    assert {"worker-1"} == {move["source"] for move in json.loads(out.read_text())["moves"][:3]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--profile", "stairs:1,2"), "--profile: found stairs:1,2, wanted one of constant:1500"),
        (("--profile", "step:500"), "--profile: found step:500, wanted one of"),
        (("--profile", "step:10s,500"), "--profile: found step:10s,500, wanted one of"),
        (("--profile", "step:fast,2000"), "--profile: found step:fast,2000, wanted one of"),
        (("--profile", "constant:-5"), "--profile: found constant:-5, wanted one of"),
        (("--plot", "no/such/out.png"), "--plot: found no/such/out.png, and there is no folder no/such, wanted a file"),
        (("--until", "600"), "--until: found '600', wanted a duration such as"),
        (("--rule", "wild"), "--rule: found wild, wanted paper or guarded"),
        (("--beta", "1.5"), "spec.scaling.beta: found 1.5, wanted 0 < beta < 1"),
        (("--slow", "soon"), "--slow: found soon, wanted WORKER@TIME:SPEED"),
        (("--profile", "constant:1", "--trace", "x.csv"), "--profile and --trace: found both, wanted one of them"),
        (("--trace", "nowhere.csv"), "nowhere.csv: found No such file or directory, wanted a readable file"),
        (("nowhere.yaml",), "nowhere.yaml: found No such file or directory"),
        (("--method", "hash", "--comparison-ns", "3"), "--comparison-ns: found a hash join, wanted nested loops"),
        (("--until", "1s", "--json", "/proc/no/way.json"), "wanted a file that can be written"),
    ],
)
def test_bad_input_is_refused_with_found_wanted_remedy_and_exit_code_2(words: tuple[str, ...], said: str) -> None:
    code, _, complaint = run(*words)
    assert 2 == code
    assert said in complaint
    assert "; " in complaint


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "header: found nothing, wanted time_s and one or 2 columns"),
        ("time_s,a\n0,fast\n", "line 2: found 0, fast, wanted 2 numbers"),
        ("time_s,a\n5,10\n5,20\n", "trace times: found 'not ascending'"),
        ("time_s,a\n", "trace: found 'no row'"),
    ],
)
def test_a_bad_trace_is_refused(tmp_path: Path, content: str, said: str) -> None:
    trace = tmp_path / "rates.csv"
    trace.write_text(content)
    code, _, complaint = run("--trace", str(trace))
    assert 2 == code
    assert said in complaint


def test_a_count_window_needs_its_usual_length(tmp_path: Path) -> None:
    file = tmp_path / "query.yaml"
    file.write_text(QUERY.replace("WINDOW", "{count: 1000}"))
    code, _, complaint = run(str(file), "--profile", "constant:100", "--until", "10s")
    assert 2 == code
    assert "spec.streams.right.window: found {count: 1000}, wanted a window in time" in complaint
    assert 0 == run(str(file), "--profile", "constant:100", "--until", "10s", "--window", "10s")[0]


def test_a_query_without_generators_needs_rates(tmp_path: Path) -> None:
    file = tmp_path / "query.yaml"
    file.write_text(QUERY.replace("WINDOW", "30s"))
    code, _, complaint = run(str(file))
    assert 2 == code
    assert "rates: found a stream without a generator" in complaint


def test_a_run_without_results_says_so() -> None:
    code, text, _ = run(*SMALL, "--profile", "constant:0.001", "--until", "10s")
    assert 0 == code
    assert "delay: no result came out" in text
    assert "nan" not in text


def test_bare_commands_teach() -> None:
    runner = CliRunner()
    assert "load" in runner.invoke(app, ["simulate"]).output
    helped = runner.invoke(app, ["simulate", "load", "--help"]).output
    assert "joinery simulate load --profile step:500,2000" in helped
    assert "--rule" in helped
    assert runner.invoke(app, ["version"]).output.startswith("joinery ")
