"""`joinery load`: Spark's tasks send what the profile says, all of it is recorded, and the same in every run."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from pyspark.sql import SparkSession

from joinery.client import connect
from joinery.generate.profiles import Burst, Constant, Ramp, Sine, Step
from joinery.model.errors import UserMustAct
from joinery.model.spec import JoinQuerySpec
from joinery.spark.load_job import load_of, main
from joinery.spark.loading import Load, _read, _text, rows_of, send
from tests.support.running import running, write_query

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
SECOND = 1_000_000_000


def spec_of(query: Path) -> JoinQuerySpec:
    return JoinQuerySpec.parse(yaml.safe_load(query.read_text())["spec"])


def test_every_row_of_the_profile_is_sent_paced_and_recorded(spark: SparkSession, tmp_path: Path) -> None:
    query = write_query(tmp_path, "inner")
    profile = Step(before_hz=300, after_hz=900, at_ns=SECOND)
    with running(query) as run:
        load = Load(run.gateway, spec_of(query), ("a",), profile, 3 * SECOND, producers=2, seed=5, ends=True)
        told = send(load, spark, {})
        with connect(run.gateway) as other:
            again = [other.producer("b", name) for name in ("x",)]
            again[0].end()
    assert 300 + 2 * 900 == sum(one.sent for one in told) == sum(one.acknowledged for one in told)
    assert {"load/0", "load/1"} == {one.producer for one in told}
    assert all(one.seconds > 2.9 for one in told), "rows came when they were due"


def test_producers_that_have_sent_are_refused_so_that_nothing_is_sent_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    query = write_query(tmp_path, "inner")
    with running(query) as run:
        load = Load(run.gateway, spec_of(query), ("a",), Constant(rate_hz=500), SECOND // 2, ends=True)
        send(load, spark, {})
        with pytest.raises(UserMustAct, match="choose another name"):
            send(load, spark, {})
        with connect(run.gateway) as other:
            other.producer("b", "x").end()


@pytest.mark.parametrize(
    "profile",
    [
        Step(before_hz=100, after_hz=400, at_ns=SECOND),
        Ramp(from_hz=100, to_hz=400, start_ns=0, end_ns=2 * SECOND),
        Sine(mean_hz=200, amplitude_hz=100, period_ns=2 * SECOND),
        Burst(base_hz=100, burst_hz=500, start_ns=SECOND, length_ns=SECOND),
    ],
)
def test_rows_are_a_function_of_the_load_and_share_the_profile(tmp_path: Path, profile: object) -> None:
    load = Load("x:1", spec_of(write_query(tmp_path)), ("a", "b"), profile, 4 * SECOND, 3, 7, is_paced=False)
    whole = int(profile.count_until(np.array([4 * SECOND]))[0])
    streams = [
        [list(rows_of(one, "a", number)[0].read(None)) for number in range(3)] for one in (load, _read(_text(load)))
    ]
    first, second = ([[piece.rows for piece in pieces] for pieces in one] for one in streams)
    assert first == second
    assert whole == sum(rows.num_rows for pieces in first for rows in pieces)
    assert first[0] != first[1], "producers send different rows"


def test_what_the_operator_wrote_becomes_the_load(tmp_path: Path) -> None:
    wanted = {
        "query": "q", "profile": {"ramp": {"before": 1, "after": 5, "start": "1s", "end": "2s"}}, "duration": "4s",
        "producers": 3, "seed": 7, "paced": False, "workload": {"keys": {"distribution": "uniform", "range": 9}},
    }  # fmt: skip
    query = spec_of(write_query(tmp_path)).to_dict()
    load = load_of({"name": "evening-0123", "gateway": "g:1", "load": wanted, "query": query})
    assert (("a", "b"), 4 * SECOND, 3, 7, "evening-0123", False) == (
        load.streams, load.duration_ns, load.producers, load.seed, load.name, load.is_paced,
    )  # fmt: skip
    assert Ramp(from_hz=1, to_hz=5, start_ns=SECOND, end_ns=2 * SECOND) == load.profile
    keys = [piece.rows["k"] for piece in rows_of(load, "a", 0)[0].read(None)]
    assert all(0 <= key.as_py() < 9 for part in keys for key in part)


def test_a_driver_that_cannot_begin_says_why_in_its_last_words(tmp_path: Path) -> None:
    said = tmp_path / "said"
    file = tmp_path / "load.yaml"
    file.write_text(yaml.safe_dump({"name": "x", "gateway": "g:1", "load": {"query": "q"}, "query": {}}))
    assert 1 == main(["--file", str(file), "--last-words", str(said)])
    assert "spec.profile" in json.loads(said.read_text())["failed"]
