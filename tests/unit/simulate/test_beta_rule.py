"""What the rules of the degree do to a cluster: the bare one oscillates, the guarded one follows the load.

The scale is that of throttled workers: a row costs 400 µs, so a worker bears 2500 rows/s, t_d = 0.2 s, t_r = 2 s. The
work follows the rate at once (a hash join), so the ideal degree is known without the simulator: ceil(work / target).
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from joinery.elastic.beta import BetaRule
from joinery.elastic.classify import Thresholds
from joinery.elastic.guarded import Guards
from joinery.generate.profiles import Burst, Constant, Ramp, RateProfile, Sine, Step
from joinery.simulate.costs import CostModel
from joinery.simulate.load import simulate
from joinery.simulate.load_result import LoadRun, Sample
from joinery.simulate.load_settings import READY_NS, SECOND, LoadSettings, Method, Rule, SpeedChange

ROW_NS = 400_000
COSTS = CostModel(
    comparison_ns=0.0, insert_ns=ROW_NS / 2, probe_ns=ROW_NS / 2, message_ns=200_000, link_bytes_per_s=1e8
)
TARGET = 0.8
GUARDS = Guards(target=TARGET)
T_R = 2 * SECOND
MAX = 8
CATCH_UP_S = 60
"""Waiting rows count as work that should be done within a minute."""
ADD_NS = GUARDS.up_ns + READY_NS + 2 * T_R
"""How long one worker more takes: the wish must last, the worker must start, two reports until it has its groups."""
REMOVE_NS = GUARDS.down_ns + 2 * T_R
"""How long one worker less takes: the wish must last, its groups must leave."""


def hz(workers: float) -> float:
    """The rate of each of two streams that keeps so many workers busy."""
    return workers / 2 / (ROW_NS / 1e9)


@cache
def run(
    profile: RateProfile,
    rule: Rule = Rule.GUARDED,
    *,
    until_s: int = 600,
    degree: int = 1,
    adaptive: bool = True,
    speeds: tuple[SpeedChange, ...] = (),
) -> LoadRun:
    settings = LoadSettings(
        windows_ns=(60 * SECOND, 60 * SECOND),
        method=Method.HASH,
        epoch_ns=T_R // 10,
        reorganization_ns=T_R,
        degree=degree,
        adaptive=adaptive,
        rule=rule,
        scaling=BetaRule(max_degree=MAX),
        guards=GUARDS,
        thresholds=Thresholds() if rule is Rule.GUARDED else Thresholds.paper(),
        speeds=speeds,
        until_ns=until_s * SECOND,
    )
    return simulate(settings, COSTS, profile)


# --- oscillation


@pytest.mark.parametrize("work", [1.5, 2.5, 3.5])
def test_the_bare_rule_oscillates_under_a_constant_load(work: float) -> None:
    """f is near zero until a worker is busy all the time, so below that it always shrinks, and then must grow again."""
    assert run(Constant(rate_hz=hz(work)), Rule.PAPER).turns(from_ns=100 * SECOND) >= 4


@pytest.mark.parametrize("work", [1.5, 2.5, 3.5, 5.5])
def test_the_guarded_rule_does_not_on_the_same_load(work: float) -> None:
    settled = run(Constant(rate_hz=hz(work)))
    assert settled.turns(from_ns=200 * SECOND) == 0
    last = [degree for at_ns, degree in settled.degrees() if at_ns >= 500 * SECOND]
    assert 1 == len(set(last))
    assert abs(last[0] - math.ceil(work / TARGET)) <= 1


def test_the_guarded_rule_keeps_the_delay_low_where_the_bare_one_does_not() -> None:
    load = Constant(rate_hz=hz(2.5))
    bare, guarded = (run(load, rule).delay(300 * SECOND).mean for rule in (Rule.PAPER, Rule.GUARDED))
    assert guarded < 0.5
    assert bare > 10 * guarded


# --- balance: tests/unit/simulate/test_balance.py

# --- degree


def ideal(sample: Sample, profile: RateProfile) -> int:
    """ceil(work / target), from the rate, the cost of a row and what waits; the simulator's own loads are not asked."""
    rate = float(profile.rate_at(np.array([sample.at_ns - 1]))[0])
    on_their_way = 2 * rate * T_R / 10 / SECOND * 2  # rows of two distribution epochs are not late
    waiting_rows = max(0.0, (sample.waiting_bytes + sample.buffered_bytes) / 64 - on_their_way)
    work = (2 * rate + waiting_rows / CATCH_UP_S) * ROW_NS / 1e9
    return min(MAX, max(1, math.ceil(work / TARGET - 1e-9)))


def outside(seen: LoadRun, ideals: Sequence[int], up_ns: int, down_ns: int) -> list[tuple[int, int, int]]:
    """(second, degree, ideal) where the degree is off by more than one, whatever the ideal was within the allowance."""
    times = np.array([sample.at_ns for sample in seen.samples])
    values = np.array(ideals)
    found = []
    for place, sample in enumerate(seen.samples):
        lowest = values[(times >= sample.at_ns - up_ns) & (times <= sample.at_ns)].min()
        highest = values[(times >= sample.at_ns - down_ns) & (times <= sample.at_ns)].max()
        if not lowest - 1 <= sample.degree <= highest + 1:
            found.append((sample.at_ns // SECOND, sample.degree, int(values[place])))
    return found


PROFILES: dict[str, tuple[RateProfile, int]] = {
    "step up": (Step(before_hz=hz(0.7), after_hz=hz(3.0), at_ns=200 * SECOND), 3),
    "step down": (Step(before_hz=hz(3.0), after_hz=hz(0.7), at_ns=200 * SECOND), 3),
    "ramp": (Ramp(from_hz=hz(0.4), to_hz=hz(4.2), start_ns=100 * SECOND, end_ns=500 * SECOND), 1),
    "sine": (Sine(mean_hz=hz(2.4), amplitude_hz=hz(1.6), period_ns=600 * SECOND), 1),
    "burst": (
        Burst(base_hz=hz(0.7), burst_hz=hz(3.0), start_ns=200 * SECOND, length_ns=200 * SECOND, every_ns=700 * SECOND),
        3,
    ),
}
"""The rate, and how many workers it asks for at once: the rule moves by one and waits each time, so the allowance is so
many times what one worker takes."""


@pytest.mark.parametrize("name", PROFILES)
def test_the_degree_is_within_one_of_the_ideal(name: str) -> None:
    profile, at_once = PROFILES[name]
    seen = run(
        profile, until_s=900, degree=math.ceil(2 * float(profile.rate_at(np.array([0]))[0]) * ROW_NS / 1e9 / TARGET)
    )
    ideals = [ideal(sample, profile) for sample in seen.samples]
    assert [] == outside(seen, ideals, up_ns=at_once * ADD_NS, down_ns=at_once * REMOVE_NS)


@pytest.mark.parametrize(("name", "degree"), [("step up", 1), ("step up", 4), ("burst", 2), ("burst", 3)])
def test_the_check_of_the_degree_sees_a_rule_that_does_not_follow(name: str, degree: int) -> None:
    profile, at_once = PROFILES[name]
    stuck = run(profile, until_s=900, adaptive=False, degree=degree)
    ideals = [ideal(sample, profile) for sample in stuck.samples]
    assert outside(stuck, ideals, up_ns=at_once * ADD_NS, down_ns=at_once * REMOVE_NS)


# --- a slow node


@pytest.mark.parametrize("speed", [0.5, 0.25])
def test_a_worker_slowed_by_other_load_becomes_a_supplier_and_loses_its_groups(speed: float) -> None:
    slow = SpeedChange(ordinal=1, at_ns=100 * SECOND, speed=speed)
    seen = run(Constant(rate_hz=hz(2.6)), degree=4, adaptive=False, speeds=(slow,), until_s=300)
    groups = {sample.at_ns: {one.worker: one.groups for one in sample.workers} for sample in seen.samples}
    assert 15 == groups[100 * SECOND]["worker-1"]
    assert any(sample.n_sup == 1 for sample in seen.samples if sample.at_ns > 100 * SECOND)
    left = [move for move in seen.moves if move.started_ns > 100 * SECOND]
    assert {"worker-1"} == {move.source for move in left if move.started_ns < 110 * SECOND}
    # what it can bear at its speed, beside three workers at full speed, is speed / (3 + speed) of the work
    fair = 60 * speed / (3 + speed)
    assert groups[300 * SECOND]["worker-1"] <= 1.3 * fair + 1
    assert seen.samples[-1].n_sup == 0
    assert seen.delay(250 * SECOND).mean < 1.0


def test_without_a_slow_worker_no_group_moves() -> None:
    assert () == run(Constant(rate_hz=hz(2.6)), degree=4, adaptive=False, until_s=300).moves
