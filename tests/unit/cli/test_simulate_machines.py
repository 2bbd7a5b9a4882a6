import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from joinery.cli.main import app

QUERY = """
apiVersion: joinery.dev/v1alpha1
kind: JoinQuery
metadata: {name: small}
spec:
  streams:
    - {name: left, schema: {id: int64, ts: int64}, window: 2s, time: {column: ts, unit: us}, source: SOURCE}
    - {name: right, schema: {id: int64, ts: int64}, window: 2s, time: {column: ts, unit: us}, source: SOURCE}
  join: {on: [id]}
  partitions: 12
  epochs: {distribution: 200ms, reorganization: 1s}
  scaling: {rule: paper, beta: 0.25, max: 2, supplierThreshold: 0.3}
  worker: {speed: 600, buffer: 16Ki}
  sinks: [{file: {path: never-written.csv}}]
"""
GENERATOR = "{generator: {rate: 100, keys: {distribution: uniform, range: 500}, seed: 3}}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "query.yaml"
    path.write_text(QUERY.replace("SOURCE", GENERATOR))
    return path


def run(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["simulate", "machines", *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_the_machines_tell_their_decisions_delays_and_results_and_write_them_down(file: Path, tmp_path: Path) -> None:
    out, picture = tmp_path / "out.json", tmp_path / "out.png"
    words = ("--profile", "step:100,500,4s", "--until", "16s", "--start-delay", "1s")
    code, text, _ = run(str(file), *words, "--json", str(out), "--plot", str(picture))
    assert 0 == code
    assert "query.yaml: 16 s simulated, rule paper, hash join, t_d 0.2 s, t_r 1 s" in text
    assert "1 supplier > 0.25 x 0 consumers" in text
    assert "delay: mean" in text
    assert "all committed after" in text
    told = json.loads(out.read_text())
    assert 2 == max(sample["degree"] for sample in told["samples"])
    assert 0.25 == told["beta"]
    assert {"worker-0"} == {move["source"] for move in told["moves"][:1]}
    assert b"\x89PNG" == picture.read_bytes()[:4]
    assert not (tmp_path / "never-written.csv").exists()


def test_the_rates_of_the_generators_are_used_and_the_same_words_tell_the_same_story(file: Path) -> None:
    first, second = (run(str(file), "--until", "4s") for _ in range(2))
    assert first == second
    assert 0 == first[0]
    assert "no decision changed the degree" in first[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--until", "10h"), "rows: found about 7.2e+06, wanted at most 5,000,000; shorten --until"),
        (("--until", "soon"), "--until: found 'soon', wanted a duration"),
        (("--profile", "step:1"), "--profile: found step:1, wanted one of"),
        (("--plot", "nowhere/out.png"), "--plot: found nowhere/out.png, and there is no folder nowhere"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(file: Path, words: tuple[str, ...], said: str) -> None:
    code, _, complaint = run(str(file), *words)
    assert 2 == code
    assert said in complaint
    assert "; " in complaint


def test_a_query_without_generators_needs_rates(tmp_path: Path) -> None:
    file = tmp_path / "query.yaml"
    file.write_text(QUERY.replace(", source: SOURCE", ""))
    assert "rates: found a stream without a generator" in run(str(file))[2]
    assert 0 == run(str(file), "--profile", "constant:50", "--until", "2s")[0]
