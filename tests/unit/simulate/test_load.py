"""The load simulator itself: it counts what the real join does, loses nothing, and tells the same story twice."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from bench.core_join import feed, plan_of, read
from bench.steady import paired
from joinery.generate.bmodel import BModelKeys
from joinery.generate.keys import UniformKeys
from joinery.generate.profiles import Constant, Step
from joinery.generate.workloads import Workload
from joinery.generate.zipf import ZipfKeys
from joinery.join.logic import WindowJoin
from joinery.join.nested_loop import NestedLoopMethod
from joinery.model.errors import UserMustAct
from joinery.model.ids import WorkerId
from joinery.simulate.costs import CostModel
from joinery.simulate.load import simulate
from joinery.simulate.load_input import CLASS_BITS, Arrivals, Recorded, key_shares
from joinery.simulate.load_result import LoadRun
from joinery.simulate.load_settings import SECOND, LoadSettings, Method, Rule, SpeedChange, paper_settings
from joinery.simulate.load_tuning import FineTuning
from joinery.simulate.load_worker import Piece, SimWorker

KEYS = BModelKeys(10_000_000, 0.7)
COUNTING = CostModel(comparison_ns=1.0, insert_ns=1e-9, probe_ns=0.0, message_ns=0.0, link_bytes_per_s=1e15)
"""Nanoseconds are comparisons."""
ROW = CostModel(comparison_ns=0.0, insert_ns=200_000, probe_ns=200_000, message_ns=100_000, link_bytes_per_s=1e8)
SMALL = LoadSettings(
    windows_ns=(20 * SECOND, 20 * SECOND),
    method=Method.HASH,
    epoch_ns=SECOND // 5,
    reorganization_ns=2 * SECOND,
    degree=3,
    until_ns=60 * SECOND,
)


@pytest.mark.parametrize("theta_ki", [None, 128], ids=["not tuned", "fine tuning"])
def test_comparisons_are_those_of_the_real_nested_loops(theta_ki: int | None) -> None:
    """20,000 rows/s, windows of 1 s, 4 groups of 640 KB; the second and third second are compared."""
    rate, batch, groups = 20_000.0, 500, 4
    work = Workload(name="x", rows_per_stream=2**40, rate_hz=rate, keys=KEYS, window_ns=SECOND, seed=5)
    tuning = {"enabled": theta_ki is not None, "theta": f"{theta_ki or 128}Ki", "block": "1Ki"}
    plan = plan_of(
        work, rows=False, join={"on": ["key"], "method": "nested-loop"}, partitions=groups, fineTuning=tuning
    )
    join, turns = WindowJoin(plan), paired(work, batch)
    assert isinstance(join.method, NestedLoopMethod)
    feed(join, read(plan, islice(turns, int(rate) // batch)))
    before = join.method.comparisons
    feed(join, read(plan, islice(turns, 2 * int(rate) // batch)))
    really = join.method.comparisons - before

    settings = LoadSettings(
        windows_ns=(SECOND, SECOND),
        partitions=groups,
        keys=KEYS,
        theta_bytes=None if theta_ki is None else theta_ki << 10,
        buffer_bytes=1 << 30,
        epoch_ns=SECOND // 20,
        reorganization_ns=SECOND,
        subgroups=1,
        degree=1,
        until_ns=3 * SECOND,
    )
    run = simulate(settings, COUNTING, Constant(rate_hz=rate))
    assert really == pytest.approx(run.totals(SECOND).cpu * 1e9, rel=0.08)


def test_the_same_settings_tell_the_same_story() -> None:
    settings = replace(SMALL, adaptive=True, degree=1)
    first, second = (simulate(settings, ROW, Constant(rate_hz=2000.0)) for _ in range(2))
    assert first == second
    assert first != simulate(replace(settings, seed=1), ROW, Constant(rate_hz=2000.0))


def joined_rows(run: LoadRun) -> float:
    return sum(worker.cpu_ns for worker in run.samples[-1].workers) / 400_000


@pytest.mark.parametrize("rate", [500.0, 2500.0, 6000.0], ids=["idle", "busy", "overloaded"])
@pytest.mark.parametrize("rule", Rule)
def test_every_row_is_joined_once_or_still_waits(rule: Rule, rate: float) -> None:
    """Also the rows of groups that moved while they waited: a slowed worker makes them move."""
    slow = (SpeedChange(ordinal=0, at_ns=20 * SECOND, speed=0.3),)
    settings = replace(SMALL, rule=rule, speeds=slow, precopy=rule is Rule.GUARDED)
    run = simulate(settings, ROW, Constant(rate_hz=rate))
    last = run.samples[-1]
    came = Arrivals.drawn(settings, [Constant(rate_hz=rate)] * 2).counts[-1].sum()
    waiting = (last.waiting_bytes + last.buffered_bytes) / 64
    assert came == pytest.approx(joined_rows(run) + waiting, rel=1e-6)
    assert (rate == 2500.0) == bool(run.moves)  # idle: nobody must give; overloaded: nobody can take


def test_the_delay_of_an_idle_cluster_is_half_an_epoch_and_the_work_of_a_message() -> None:
    run = simulate(replace(SMALL, degree=1), ROW, Constant(rate_hz=500.0))
    # rows wait 0.1 s in the mean; a message of 0.2 s brings 0.08 s of work, of which a row waits for half
    assert 0.14 == pytest.approx(run.delay(20 * SECOND).mean, abs=0.01)
    assert run.delay(20 * SECOND).p99 < 0.3


def test_a_group_that_moves_with_pre_copy_pauses_for_the_switch_only() -> None:
    slow = (SpeedChange(ordinal=0, at_ns=10 * SECOND, speed=0.3),)
    copied, waited = (
        simulate(replace(SMALL, speeds=slow, precopy=precopy), ROW, Constant(rate_hz=2500.0)).moves
        for precopy in (True, False)
    )
    assert {2 * ROW.message_ns} == {float(move.pause_ns) for move in copied}
    assert min(move.pause_ns for move in waited) > 2 * ROW.message_ns


def test_a_shrunk_cluster_has_no_group_left_behind() -> None:
    settings = replace(SMALL, adaptive=True, degree=4, until_ns=400 * SECOND)
    run = simulate(settings, ROW, Constant(rate_hz=300.0))
    assert [4, 3, 2, 1] == list(dict.fromkeys(degree for _, degree in run.degrees()))
    assert [60] == [worker.groups for worker in run.samples[-1].workers]


def test_communication_and_busy_and_idle_time_fill_the_wall() -> None:
    run = simulate(paper_settings(4), CostModel.paper(), Step(before_hz=1500, after_hz=3000, at_ns=700 * SECOND))
    totals = run.totals(600 * SECOND)
    assert 4 * 600 == pytest.approx(totals.wall)
    assert totals.wall == pytest.approx(totals.busy + totals.communication + totals.moving + totals.idle)


# --- parts


@pytest.mark.parametrize("keys", [KEYS, UniformKeys(1_000_000), ZipfKeys(1_000_000, 0.5)], ids=str)
def test_key_shares_are_those_of_the_generator(keys: BModelKeys | UniformKeys | ZipfKeys) -> None:
    from joinery.partition.hashing import groups_of, hash_words

    shares = key_shares(keys, 60)
    drawn = groups_of(hash_words(keys.draw(np.random.default_rng(3), 400_000)), 60)
    seen = np.bincount(drawn, minlength=60) / 400_000
    assert 1 == pytest.approx(shares.group.sum())
    assert (60, 1 << CLASS_BITS) == shares.inside.shape
    assert np.abs(seen - shares.group).max() < 6 * np.sqrt(1 / 60 / 400_000)


def test_fine_tuning_keeps_mini_groups_between_theta_and_two_theta_and_merges_again() -> None:
    shares = key_shares(UniformKeys(1_000_000), 4)
    tuning = FineTuning(shares, 1000)
    whole = np.full(4, 12_000.0)
    assert (tuning.tune(whole) > 0).all()
    assert 4 * 8 == tuning.mini_groups(slice(None))
    assert 1 / 8 == pytest.approx(float(tuning.spread.mean()), rel=0.02)
    assert (tuning.tune(whole) == 0).all()
    tuning.tune(np.full(4, 1500.0))
    assert 4 == tuning.mini_groups(slice(None))
    assert [1.0] * 4 == pytest.approx(tuning.spread.tolist())


def test_a_trace_is_a_rate_that_holds_until_the_next_one() -> None:
    trace = Recorded(((0, 10.0), (5 * SECOND, 0.0), (7 * SECOND, 4.0)))
    times = np.array([0, 5, 7, 9]) * SECOND
    assert [0.0, 50.0, 50.0, 58.0] == trace.count_until(times).tolist()


def piece(group: int, work_ns: float) -> Piece:
    one = np.ones(1)
    return Piece(np.array([group]), one * work_ns, one * 64, one, 0.0, 0.0)


def test_a_slowed_worker_takes_longer_and_its_cpu_time_stays() -> None:
    worker = SimWorker(WorkerId("a"), 0, 0.0, [SpeedChange(ordinal=0, at_ns=100, speed=0.5)])
    worker.take(piece(1, 200.0))
    worker.advance(299.0)
    assert [] == worker.outputs
    worker.advance(301.0)
    assert [300.0] == [out.at_ns for out in worker.outputs]
    assert (300.0, 200.0) == (worker.busy_ns, worker.cpu_ns)


def test_a_worker_that_is_held_works_nothing() -> None:
    worker = SimWorker(WorkerId("a"), 0, 0.0, [])
    worker.take(piece(1, 50.0))
    worker.hold(100.0)
    worker.advance(120.0)
    assert 20.0 == worker.busy_ns


def test_settings_that_make_no_sense_are_refused_all_at_once() -> None:
    with pytest.raises(UserMustAct, match=r"degree: found 0(.|\n)*until: found 0 ns"):
        LoadSettings(degree=0, until_ns=0)
    with pytest.raises(UserMustAct, match=r"slow\.speed: found 0"):
        SpeedChange(ordinal=0, at_ns=0, speed=0)
    with pytest.raises(UserMustAct, match=r"cost\.link_bytes_per_s: found 0"):
        replace(ROW, link_bytes_per_s=0)
