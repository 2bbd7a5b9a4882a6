"""The machines with the cost model, and the load simulator beside them: the same workload, the same story.

What is held here ties the two together (docs/adr/0008): the degree goes through the same numbers in the same order,
each change at most `LAG` later; in a cluster that keeps up the busy shares agree to 10 % and the mean delay within a
factor of 1.5, over a step that takes new workers to bear within a factor of 3.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from joinery.generate.keys import Keys, UniformKeys
from joinery.generate.points import Independent
from joinery.generate.poisson import PoissonArrivals
from joinery.generate.profiles import Constant, RateProfile, Step
from joinery.generate.streams import StreamGenerator
from joinery.join.plan import JoinPlan
from joinery.join.results import Kind
from joinery.model.spec import JoinQuerySpec
from joinery.model.tuples import I64Array
from joinery.partition.format import StreamFormat
from joinery.simulate.costed import CostedWorld
from joinery.simulate.load import simulate
from joinery.simulate.load_input import key_shares
from joinery.simulate.load_result import LoadRun
from joinery.simulate.load_settings import SECOND, SpeedChange
from joinery.simulate.load_spec import costs_of, settings_of
from joinery.simulate.outcome import Outcome
from joinery.simulate.schedule import MS, Schedule
from joinery.simulate.scripts import script_of

KEYS = UniformKeys(2000)
T_R = 2 * SECOND
LAG = 12 * SECOND
"""Six reorganization epochs: a worker's report is up to one epoch old when the gateway plans, at each of the steps."""


def query(workers: int, *, mode: str = "Auto", method: str = "hash", window: str = "5s") -> dict[str, Any]:
    """Two streams of 16-byte rows; a worker bears 1000 rows/s of a hash join."""
    stream = {"schema": {"id": "int64", "number": "int64"}, "window": window}
    return {
        "streams": [stream | {"name": "left"}, stream | {"name": "right"}],
        "join": {"on": ["id"], "method": method},
        "partitions": 12 if method == "hash" else 4,
        "replicas": workers,
        "epochs": {"distribution": "200ms", "reorganization": "2s"},
        "scaling": {"mode": mode, "max": 4, "scaleUp": {"stabilization": "4s"},
                    "scaleDown": {"stabilization": "10s"}},
        "fineTuning": {"enabled": False, "block": "1Ki"},
        "worker": {"speed": 1000 if method == "hash" else 150_000, "buffer": "16Ki"},
    }  # fmt: skip


def rows_of(
    form: StreamFormat, profile: RateProfile, keys: Keys, seed: int
) -> Iterator[tuple[pa.RecordBatch, I64Array]]:
    points = Independent(PoissonArrivals(profile), keys)
    made = StreamGenerator(points=points, seed=seed, time_unit="ns", key_column="id", time_column="at")
    for chunk in made.chunks():
        times = chunk.column("at").to_numpy()
        columns = {"id": chunk.column("id"), "number": pa.array(np.arange(len(times)))}
        yield pa.RecordBatch.from_arrays([columns[name] for name in form.schema.names], schema=form.schema), times


def through_machines(
    asked: dict[str, Any], profile: RateProfile, until_s: int, speeds: tuple[SpeedChange, ...] = (), keys: Keys = KEYS
) -> tuple[LoadRun, Outcome]:
    spec, until_ns = JoinQuerySpec.parse(asked), until_s * SECOND
    scripts = tuple(
        script_of(number, f"p{number}", rows_of(form, profile, keys, number), until_ns=until_ns, batch_ns=50 * MS)
        for number, form in enumerate(JoinPlan.of(spec).formats)
    )
    schedule = Schedule(seed=0, query=asked, scripts=scripts, workers=spec.replicas, deadline_ns=10 * until_ns)
    world = CostedWorld(schedule, costs_of(spec), speeds=speeds)
    outcome = world.run()
    return world.story(until_ns), outcome


def through_the_model(asked: dict[str, Any], profile: RateProfile, until_s: int) -> LoadRun:
    spec = JoinQuerySpec.parse(asked)
    settings = settings_of(spec, [profile, profile], until_ns=until_s * SECOND, seed=0)
    return simulate(replace(settings, keys=KEYS), costs_of(spec), profile)


STEP = Step(before_hz=200.0, after_hz=700.0, at_ns=10 * SECOND)


@cache
def both() -> tuple[LoadRun, LoadRun]:
    asked = query(1)
    return through_machines(asked, STEP, 56)[0], through_the_model(asked, STEP, 56)


def changes(run: LoadRun) -> list[tuple[int, int]]:
    """(degree, since when), as it went."""
    return [(degree, next(some)[0]) for degree, some in groupby(run.degrees(), key=lambda one: one[1])]


def test_both_grow_and_shrink_through_the_same_degrees() -> None:
    machines, model = (changes(run) for run in both())
    assert [1, 2, 3, 2] == [degree for degree, _ in machines]
    assert [degree for degree, _ in model] == [degree for degree, _ in machines]
    later = [mine - theirs for (_, mine), (_, theirs) in zip(machines, model, strict=True)]
    assert [] == [lag for lag in later if not 0 <= lag <= LAG]


def test_both_tell_delays_of_the_same_size_over_a_step() -> None:
    machines, model = (run.delay().mean for run in both())
    assert model / 3 < machines < 3 * model
    calm, also_calm = (run.delay(0, 10 * SECOND).mean for run in both())
    assert also_calm / 1.5 < calm < 1.5 * also_calm


@pytest.mark.parametrize(("method", "rate"), [("hash", 500.0), ("nested-loop", 250.0)])
def test_a_cluster_that_keeps_up_is_as_busy_and_as_fast_in_both(method: str, rate: float) -> None:
    asked, profile = query(2, mode="Manual", method=method), Constant(rate_hz=rate)
    machines, model = through_machines(asked, profile, 20)[0], through_the_model(asked, profile, 20)
    begin, end = 8 * SECOND, 20 * SECOND

    def busy(run: LoadRun) -> float:
        some = [worker.busy for sample in run.samples if begin < sample.at_ns <= end for worker in sample.workers]
        return sum(some) / len(some)

    assert 0.2 < busy(model) < 0.8
    assert busy(model) == pytest.approx(busy(machines), rel=0.1)
    theirs, mine = (run.delay(begin, end).mean for run in (model, machines))
    assert theirs / 1.5 < mine < 1.5 * theirs


def test_the_machines_tell_the_same_story_twice_and_lose_nothing() -> None:
    asked, profile = query(2), Constant(rate_hz=400.0)
    (first, outcome), (second, _) = (through_machines(asked, profile, 6) for _ in range(2))
    assert first == second
    assert [] == outcome.history.complaints()
    came_out = sum(part.rows.num_rows for part in outcome.sinks["sink-0"] if part.kind is Kind.RESULT)
    assert came_out == sum(out.results for out in first.outputs)
    assert came_out > 0


def test_a_slowed_worker_of_real_machines_becomes_a_supplier_and_loses_groups() -> None:
    slow = (SpeedChange(ordinal=1, at_ns=10 * SECOND, speed=0.4),)
    run, _ = through_machines(query(3, mode="Manual"), Constant(rate_hz=800.0), 30, slow)
    before = next(sample for sample in run.samples if sample.at_ns >= 10 * SECOND)
    assert {"worker-0": 4, "worker-1": 4, "worker-2": 4} == {one.worker: one.groups for one in before.workers}
    assert any(sample.n_sup for sample in run.samples if sample.at_ns > 10 * SECOND)
    assert {"worker-1"} == {move.source for move in run.moves}
    groups = {one.worker: one.groups for one in run.samples[-1].workers}
    assert groups["worker-1"] <= 2
    assert 12 == sum(groups.values())
    assert run.moves[-1].ended_ns <= 10 * SECOND + 5 * T_R  # its groups are a third of what it bears: one at a time
    assert 0 == run.samples[-1].n_sup


def test_the_machines_too_are_balanced_three_epochs_after_a_fourfold_step() -> None:
    """By what comes in for the groups of each worker, as in test_balance.py; few keys, four groups each at first."""
    keys, mean = UniformKeys(16), 0.8
    work = key_shares(keys, 12).group * 3 * mean
    hz = 3 * mean * 1000 / 2
    step = Step(before_hz=hz / 4, after_hz=hz, at_ns=10 * SECOND)
    run, _ = through_machines(query(3, mode="Manual", window="100ms"), step, 24, keys=keys)
    owners = [0] * 4 + [1] * 4 + [2] * 4

    def loads(at_ns: int) -> list[float]:
        now = list(owners)
        for move in run.moves:
            if move.ended_ns <= at_ns:
                now[move.group] = int(move.target.removeprefix("worker-"))
        return np.bincount(now, weights=work, minlength=3).tolist()

    assert max(loads(10 * SECOND)) > 1.3
    for epoch in range(3, 8):
        assert max(loads(10 * SECOND + epoch * T_R)) <= 0.95
