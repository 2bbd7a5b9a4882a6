"""Parameters are checked at birth: the error says which, what was found, what is wanted, and the remedy."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.generate.arrivals import EvenArrivals, arrival_times
from joinery.generate.bmodel import BModelArrivals, BModelKeys, BModelVolumes, levels_for
from joinery.generate.checks import BadParameter
from joinery.generate.keys import ShuffledKeys, UniformKeys, keys_between
from joinery.generate.linear_road import LinearRoad
from joinery.generate.pareto import BoundedPareto, BurstSizes, OnOffArrivals, ParetoBursts
from joinery.generate.payload import Floats, Integers, Letters, RowNumbers
from joinery.generate.phases import HighLow
from joinery.generate.points import Independent
from joinery.generate.poisson import PoissonArrivals
from joinery.generate.pqrs import PqrsPoints, Quadrants
from joinery.generate.profiles import Burst, Constant, Ramp, Sine, Step
from joinery.generate.streams import StreamGenerator
from joinery.generate.workloads import WORKLOADS, Workload
from joinery.generate.zipf import ZipfKeys
from joinery.model.errors import UserMustAct

PERIOD = BoundedPareto(alpha=1.5, low=10**6, high=10**9)
VOLUMES = BModelVolumes(total=100, levels=4, b=0.6)
POINTS = Independent(PoissonArrivals.at(100), UniformKeys(10))
STREAM = StreamGenerator(points=POINTS, seed=1)
NAN = float("nan")
BAD: dict[str, tuple[str, Callable[[], object]]] = {
    "a rate of zero": ("rate", lambda: PoissonArrivals.at(0)),
    "a negative rate": ("rate_hz", lambda: Constant(rate_hz=-1)),
    "a rate that is no number": ("rate_hz", lambda: Constant(rate_hz=NAN)),
    "an endless rate": ("rate_hz", lambda: Constant(rate_hz=float("inf"))),
    "a rate of text": ("rate_hz", lambda: Constant(rate_hz="10")),
    "a number as profile": ("profile", lambda: PoissonArrivals(10)),
    "a number as even profile": ("profile", lambda: EvenArrivals(10)),
    "silence for ever": ("rate", lambda: Step(before_hz=10, after_hz=0, at_ns=5)),
    "a step before the start": ("at_ns", lambda: Step(before_hz=1, after_hz=1, at_ns=-1)),
    "a ramp backwards": ("end_ns", lambda: Ramp(from_hz=1, to_hz=2, start_ns=10, end_ns=10)),
    "a wave below zero": ("amplitude_hz", lambda: Sine(mean_hz=1, amplitude_hz=2, period_ns=1000)),
    "a wave of silence": ("rate", lambda: Sine(mean_hz=0, amplitude_hz=0, period_ns=1000)),
    "bursts that overlap": ("every_ns", lambda: Burst(base_hz=1, burst_hz=2, start_ns=5, length_ns=5, every_ns=9)),
    "phases of silence": ("rate", lambda: HighLow(high_hz=0, low_hz=0, high_ns=1, low_ns=1)),
    "an empty phase": ("low_ns", lambda: HighLow(high_hz=1, low_hz=0, high_ns=1, low_ns=0)),
    "a burst ratio above one": ("theta", lambda: HighLow.of_burst_ratio(1, 1.1, high_ns=1, low_ns=1)),
    "no keys": ("domain", lambda: UniformKeys(0)),
    "half a key": ("domain", lambda: UniformKeys(1.5)),
    "a bias of one": ("b", lambda: BModelKeys(10, 1.0)),
    "a bias that is no number": ("b", lambda: BModelKeys(10, NAN)),
    "too many keys": ("domain", lambda: BModelKeys(2**32, 0.5)),
    "a negative total": ("total", lambda: BModelVolumes(total=-1, levels=1, b=0.6)),
    "too many levels": ("levels", lambda: BModelVolumes(total=1, levels=21, b=0.6)),
    "a light heavy half": ("b", lambda: BModelVolumes(total=1, levels=1, b=0.4)),
    "no bound in reach": ("largest", lambda: levels_for(10**9, 0.9, 1)),
    "shorter than its intervals": ("duration_ns", lambda: BModelArrivals(volumes=VOLUMES, duration_ns=15)),
    "quadrants that miss something": ("p + q + r + s", lambda: Quadrants(0.1, 0.1, 0.1, 0.1)),
    "a negative quadrant": ("q", lambda: Quadrants(0.9, -0.1, 0.1, 0.1)),
    "pqrs without keys": (
        "domain",
        lambda: PqrsPoints(volumes=VOLUMES, quadrants=Quadrants(1, 0, 0, 0), duration_ns=100, domain=0),
    ),
    "a shape of zero": ("alpha", lambda: BoundedPareto(alpha=0, low=1, high=2)),
    "a bound below": ("high", lambda: BoundedPareto(alpha=1, low=5, high=5)),
    "an on period without a row": ("rate_hz", lambda: OnOffArrivals(rate_hz=999, on=PERIOD, off=PERIOD)),
    "a mean out of reach": ("mean", lambda: BurstSizes.with_mean(5, 5)),
    "bursts without rate": ("rate_hz", lambda: ParetoBursts(rate_hz=0, sizes=BurstSizes(alpha=1, largest=5))),
    "a negative exponent": ("exponent", lambda: ZipfKeys(10, -0.1)),
    "a negative shuffle": ("seed", lambda: ShuffledKeys(UniformKeys(5), -1)),
    "a long seed": ("seed", lambda: StreamGenerator(points=POINTS, seed=2**64)),
    "an unknown unit": ("time_unit", lambda: StreamGenerator(points=POINTS, seed=1, time_unit="min")),
    "two columns of one name": ("column names", lambda: StreamGenerator(points=POINTS, seed=1, key_column="ts")),
    "a column without name": ("name", lambda: StreamGenerator(points=POINTS, seed=1, key_column="")),
    "more nulls than rows": ("null_share", lambda: StreamGenerator(points=POINTS, seed=1, null_share=1.1)),
    "a negative lateness": ("lateness_ns", lambda: StreamGenerator(points=POINTS, seed=1, lateness_ns=-1000)),
    "half a unit of lateness": ("lateness_ns", lambda: StreamGenerator(points=POINTS, seed=1, lateness_ns=1500)),
    "nobody is delayed": (
        "delayed_share",
        lambda: StreamGenerator(points=POINTS, seed=1, lateness_ns=1000, delayed_share=0.0),
    ),
    "a negative limit": ("limit", lambda: StreamGenerator(points=POINTS, seed=1, limit=-1)),
    "an origin before time": ("origin_ns", lambda: StreamGenerator(points=POINTS, seed=1, origin_ns=-(2**62))),
    "no bytes": ("width", lambda: Letters("x", 0)),
    "no numbers": ("high", lambda: Integers("x", 5, 5)),
    "floats backwards": ("high", lambda: Floats("x", 1.0, 0.0)),
    "a nameless column": ("name", lambda: RowNumbers("")),
    "an empty road": ("vehicles", lambda: LinearRoad(vehicles=0, seed=1)),
    "rows before the first": ("start", lambda: STREAM.rows(-1, 5)),
    "rows backwards": ("stop", lambda: STREAM.rows(5, 4)),
    "empty batches": ("rows_per_batch", lambda: STREAM.batches(0, 0)),
    "times before the first": ("start", lambda: arrival_times(PoissonArrivals.at(1), 1, -1, 5)),
    "keys before the first": ("start", lambda: keys_between(UniformKeys(5), 1, -1, 5)),
    "a third stream": ("index", lambda: WORKLOADS["U1"].stream(2)),
    "a road past the last time": ("time", lambda: LinearRoad(vehicles=1, seed=1).rows(2**61, 2**61 + 1)),
    "on and off past the last time": (
        "time",
        lambda: StreamGenerator(points=Independent(LONG_PERIODS, UniformKeys(5)), seed=1).rows(10**6, 10**6 + 1),
    ),
    "an empty workload": (
        "rows_per_stream",
        lambda: Workload(name="x", rows_per_stream=0, rate_hz=1, keys=UniformKeys(1), window_ns=1, seed=1),
    ),
}
LONG = BoundedPareto(alpha=0.01, low=2**45, high=2**46)
LONG_PERIODS = OnOffArrivals(rate_hz=1e-4, on=LONG, off=LONG)


@pytest.mark.parametrize(("field", "make"), BAD.values(), ids=BAD.keys())
def test_a_bad_parameter_is_refused_with_a_remedy(field: str, make: Callable[[], object]) -> None:
    with pytest.raises(BadParameter) as caught:
        make()
    assert field == caught.value.field
    assert isinstance(caught.value, UserMustAct)
    assert str(caught.value).startswith(f"{field}: found ")
    assert ", wanted " in str(caught.value)
    assert caught.value.remedy in str(caught.value)


anything = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just([]))


@settings(max_examples=60, deadline=None)
@given(values=st.tuples(anything, anything, anything))
@pytest.mark.parametrize(
    "make",
    [
        lambda a, b, c: StreamGenerator(points=Independent(PoissonArrivals.at(a), UniformKeys(b)), seed=c),
        lambda a, b, c: StreamGenerator(points=POINTS, seed=1, time_unit=a, origin_ns=b, null_share=c),
        lambda a, b, c: StreamGenerator(points=POINTS, seed=1, lateness_ns=a, delayed_share=b, limit=c),
        lambda a, b, c: StreamGenerator(
            points=Independent(PoissonArrivals.at(1e3), ZipfKeys(a, b)), seed=1, key_column=c
        ),
        lambda a, b, c: StreamGenerator(
            points=Independent(PoissonArrivals(HighLow(high_hz=a, low_hz=b, high_ns=c, low_ns=5)), UniformKeys(5)),
            seed=1,
        ),
        lambda a, b, c: StreamGenerator(
            points=Independent(
                OnOffArrivals(rate_hz=1e6, on=PERIOD, off=BoundedPareto(alpha=a, low=b, high=c)), UniformKeys(5)
            ),
            seed=1,
        ),
    ],
)
def test_whatever_is_given_either_works_or_is_refused(
    make: Callable[..., StreamGenerator], values: tuple[Any, ...]
) -> None:
    try:
        rows = make(*values).rows(0, 3)
    except BadParameter:
        return
    assert rows.num_rows <= 3
