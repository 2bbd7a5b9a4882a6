"""The same rows, however they are asked for, in every process; other rows for another seed."""

import zlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinery.generate.arrivals import Arrivals, EvenArrivals
from joinery.generate.bmodel import BModelArrivals, BModelKeys, BModelVolumes
from joinery.generate.chunked import Chunked
from joinery.generate.draws import CHUNK
from joinery.generate.keys import Keys, ShuffledKeys, UniformKeys
from joinery.generate.linear_road import LinearRoad
from joinery.generate.pareto import BoundedPareto, BurstSizes, OnOffArrivals, ParetoBursts
from joinery.generate.payload import Floats, Integers, Letters, RowNumbers
from joinery.generate.phases import HighLow
from joinery.generate.points import Independent, PointProcess
from joinery.generate.poisson import PoissonArrivals
from joinery.generate.pqrs import PqrsPoints, Quadrants
from joinery.generate.profiles import Constant, Ramp, Sine
from joinery.generate.streams import StreamGenerator
from joinery.generate.zipf import ZipfKeys

SECOND = 1_000_000_000
TOTAL = 3 * CHUNK + 100
VOLUMES = BModelVolumes(total=TOTAL, levels=7, b=0.65)
EVEN = EvenArrivals(Constant(rate_hz=1000))
UNIFORM = UniformKeys(1000)
POISSON = PoissonArrivals.at(5000)


def arriving(arrivals: Arrivals) -> Callable[[int], Chunked]:
    return stream(Independent(arrivals, UNIFORM))


def keyed(keys: Keys) -> Callable[[int], Chunked]:
    return stream(Independent(EVEN, keys))


def stream(points: PointProcess, **settings: object) -> Callable[[int], Chunked]:
    return lambda seed: StreamGenerator(points=points, seed=seed, **settings)  # type: ignore[arg-type]


ON_OFF = OnOffArrivals(
    rate_hz=1000,
    on=BoundedPareto(alpha=1.4, low=10**7, high=10**10),
    off=BoundedPareto(alpha=1.2, low=10**7, high=10**11),
)
BURSTS = ParetoBursts(rate_hz=100, sizes=BurstSizes.with_mean(3, 100))
PQRS = PqrsPoints(volumes=VOLUMES, quadrants=Quadrants(0.4, 0.1, 0.2, 0.3), duration_ns=100 * SECOND, domain=10**6)
COLUMNS = (Letters("text", 11), Integers("count", 0, 9), Floats("cost", 0.0, 1.0), RowNumbers("row"))
GENERATORS: dict[str, Callable[[int], Chunked]] = {
    "poisson": arriving(POISSON),
    "poisson ramp": arriving(PoissonArrivals(Ramp(from_hz=100, to_hz=9000, start_ns=SECOND, end_ns=9 * SECOND))),
    "poisson sine": arriving(PoissonArrivals(Sine(mean_hz=3000, amplitude_hz=2900, period_ns=5 * SECOND))),
    "phases": arriving(PoissonArrivals(HighLow.of_burst_ratio(5000, 1.0, high_ns=SECOND, low_ns=2 * SECOND))),
    "b-model in time": arriving(BModelArrivals(volumes=VOLUMES, duration_ns=100 * SECOND)),
    "pareto on/off": arriving(ON_OFF),
    "pareto bursts": arriving(BURSTS),
    "uniform keys": keyed(UNIFORM),
    "b-model keys": keyed(BModelKeys(10**7, 0.7)),
    "zipf": keyed(ZipfKeys(10**6, 0.9)),
    "zipf shuffled": keyed(ShuffledKeys(ZipfKeys(10**6, 1.1), 5)),
    "pqrs": stream(PQRS),
    "all columns": stream(Independent(POISSON, UNIFORM), payload=COLUMNS, null_share=0.2),
    "disorder": stream(Independent(POISSON, UNIFORM), lateness_ns=SECOND // 5),
    "disorder longer than chunks": stream(Independent(POISSON, UNIFORM), lateness_ns=16 * SECOND),
    "disorder with ties": stream(Independent(BURSTS, UNIFORM), lateness_ns=SECOND, delayed_share=0.3),
    "disorder of pqrs": stream(PQRS, lateness_ns=SECOND, delayed_share=0.3, null_share=0.5),
    "linear road": lambda seed: LinearRoad(vehicles=700, xways=2, seed=seed),
}
every_generator = pytest.mark.parametrize("name", GENERATORS)
REFERENCE: dict[str, pa.RecordBatch] = {}


def reference(name: str) -> pa.RecordBatch:
    """The first rows of a generator, asked for in one go."""
    if name not in REFERENCE:
        REFERENCE[name] = GENERATORS[name](1).rows(0, TOTAL)
    return REFERENCE[name]


def checksum(rows: pa.RecordBatch) -> int:
    return zlib.crc32(repr(rows.to_pydict()).encode())


@every_generator
@settings(deadline=None, max_examples=10)
@given(data=st.data())
def test_any_range_of_rows_is_that_slice_of_the_whole(name: str, data: st.DataObject) -> None:
    edges = st.one_of(st.integers(0, TOTAL), st.sampled_from([0, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, TOTAL]))
    start, stop = sorted((data.draw(edges), data.draw(edges)))
    assert reference(name).slice(start, stop - start).equals(GENERATORS[name](1).rows(start, stop))


@every_generator
@settings(deadline=None, max_examples=5)
@given(start=st.integers(0, TOTAL), size=st.integers(100, 2 * CHUNK))
def test_batches_of_any_size_are_the_same_rows(name: str, start: int, size: int) -> None:
    wanted = reference(name).slice(start)
    batches = GENERATORS[name](1).batches(start, size)
    for at in range(wanted.num_rows // size):
        assert wanted.slice(at * size, size).equals(next(batches))


@every_generator
def test_the_same_seed_gives_the_same_rows_and_another_seed_others(name: str) -> None:
    again, other = (GENERATORS[name](seed).rows(1000, 2000) for seed in (1, 2))
    assert reference(name).slice(1000, 1000).equals(again)
    assert not again.equals(other)


@every_generator
def test_times_never_go_back_unless_disorder_is_asked_for(name: str) -> None:
    times = reference(name).column(0).to_numpy()
    assert name.startswith("disorder") == bool(np.any(np.diff(times) < 0))


FROZEN = {
    "poisson": 2659371291,
    "poisson ramp": 2748608379,
    "poisson sine": 2225603856,
    "phases": 2101388327,
    "b-model in time": 2612349287,
    "pareto on/off": 3614911176,
    "pareto bursts": 2443212113,
    "uniform keys": 623457318,
    "b-model keys": 3102622164,
    "zipf": 3294085406,
    "zipf shuffled": 3183382513,
    "pqrs": 1528446758,
    "all columns": 2762074945,
    "disorder": 2787980162,
    "disorder longer than chunks": 3054069600,
    "disorder with ties": 1757325343,
    "disorder of pqrs": 2527241946,
    "linear road": 4010654074,
    "far": 3780552224,
}


@every_generator
def test_rows_are_the_same_in_every_process_and_release(name: str) -> None:
    """A changed checksum means that old seeds give new streams: say so in the change log, or mend it."""
    assert FROZEN[name] == checksum(reference(name).slice(CHUNK - 50, 100))


def test_far_rows_are_the_same_too() -> None:
    far = StreamGenerator(points=Independent(POISSON, UNIFORM), seed=1).rows(10**10, 10**10 + 100)
    assert FROZEN["far"] == checksum(far)
