"""A load for a running query, made by Spark's executors: the core generators, paced, by several producers.

Rule 1: every producer of every stream is one task. Its rows are a function of the query, the profile, the seed and its
        number: the same in every run, whichever executor makes them.
Rule 2: the rate is shared evenly by the producers of a stream. They meet before the first row (a barrier of Spark) and
        begin at one moment; from then on a row comes when it is due. If the query cannot follow rows come as late as
        it takes them, and `behind_s` says how late the last ones were.
Rule 3: the driver opens a session for every producer before any of them sends: none of them is late because of another.
Rule 4: what is told is exact: `acknowledged` rows are in the query's log. A task that is tried again would send what is
        recorded already, so it fails, and the load with it.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain
from typing import Any, Final

import numpy as np
from pyspark import BarrierTaskContext
from pyspark.sql import SparkSession

from joinery.adapters.sources.generated import GeneratedReader
from joinery.adapters.sources.pacing import paced
from joinery.adapters.sources.pieces import Pause
from joinery.client import numbered
from joinery.generate.arrivals import Arrivals, EvenArrivals
from joinery.generate.from_spec import keys_of
from joinery.generate.points import Independent
from joinery.generate.poisson import CountedArrivals
from joinery.generate.profiles import Burst, Constant, Ramp, RateProfile, Sine, Step
from joinery.join.plan import JoinPlan
from joinery.model.errors import UserMustAct
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_load import WorkloadSpec
from joinery.model.spec_sections import GeneratorSpec
from joinery.partition.format import StreamFormat
from joinery.spark.options import Options

LEAD_S: Final = 1.5
"""From the meeting to the first row: Spark lets go of those who met within a second of each other."""
_AS_THE_QUERY_SAYS: Final = WorkloadSpec()
_PROFILES = {kind.__name__: kind for kind in (Burst, Constant, Ramp, Sine, Step)}


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent."""

    gateway: str
    spec: JoinQuerySpec
    streams: tuple[str, ...]
    profile: RateProfile
    """Of each stream, all its producers together."""
    duration_ns: int
    producers: int = 1
    """Of each stream."""
    seed: int = 0
    name: str = "load"
    is_paced: bool = True
    ends: bool = False
    workload: WorkloadSpec = _AS_THE_QUERY_SAYS

    @property
    def tasks(self) -> list[tuple[str, int]]:
        """Stream and number of every producer."""
        return [(stream, number) for number in range(self.producers) for stream in self.streams]

    def rows_of(self, producer: int) -> int:
        """How many rows one producer sends: they add up to the profile's rows in that time."""
        whole = int(self.profile.count_until(np.array([self.duration_ns]))[0])
        return whole // self.producers + (producer < whole % self.producers)


@dataclass(frozen=True, slots=True)
class Sent:
    """What one producer did."""

    stream: str
    producer: str
    sent: int
    acknowledged: int
    seconds: float
    """From the moment at which all begin to the last acknowledgement."""
    behind_s: float


@dataclass(frozen=True, slots=True)
class Whole:
    """What all producers did together."""

    sent: int
    acknowledged: int
    seconds: float
    behind_s: float

    @staticmethod
    def of(told: Sequence[Sent]) -> "Whole":
        """The sum of them; its time is that of the last."""
        return Whole(
            sum(one.sent for one in told),
            sum(one.acknowledged for one in told),
            max(one.seconds for one in told),
            max(one.behind_s for one in told),
        )

    @property
    def rate(self) -> float:
        """Recorded rows per second."""
        return self.acknowledged / self.seconds

    def to_dict(self) -> dict[str, float]:
        """As programs read it."""
        return {
            "sent": self.sent, "acknowledged": self.acknowledged, "seconds": self.seconds, "rate": self.rate,
            "behind": self.behind_s,
        }  # fmt: skip


def send(load: Load, spark: SparkSession, options: Mapping[str, str]) -> list[Sent]:
    """The load from beginning to end; `options`: tls, token."""
    given = {"gateway": load.gateway, **options}
    chosen = Options.read(given)
    with chosen.connect() as query:
        for stream, number in load.tasks:
            name = f"{load.name}/{number}"
            opened = numbered.join(chosen.place, query.form(stream), name)
            if opened.expected or opened.ended:
                raise UserMustAct(_sent_before(name, stream))
    tasks = spark.sparkContext.parallelize(load.tasks, len(load.tasks))
    return tasks.barrier().mapPartitions(partial(_task, _text(load), given)).collect()


def _sent_before(name: str, stream: str) -> str:
    return f"found rows of producer {name} in stream {stream}, wanted none yet; choose another name for this load"


def _task(text: str, given: Mapping[str, str], places: Iterator[tuple[str, int]]) -> Iterator[Sent]:
    """One producer, in an executor."""
    load, options = _read(text), Options.read(given)
    for stream, number in places:
        yield _send_one(load, options, stream, number)


def _send_one(load: Load, options: Options, stream: str, number: int) -> Sent:
    reader, form = rows_of(load, stream, number)
    with options.connect() as query:
        producer = query.producer(stream, f"{load.name}/{number}")
        if producer.recorded:
            raise UserMustAct(_sent_before(producer.name, stream))
        pieces = reader.read(None)
        made = chain([first] if (first := next(pieces, None)) is not None else [], pieces)
        began_s = _meet()
        for one in paced(made, form, (0, began_s)) if load.is_paced else made:
            if isinstance(one, Pause):
                time.sleep(one.seconds)
            else:
                producer.push(one.rows)
        producer.end() if load.ends else producer.flush()
        seconds = time.monotonic() - began_s
        behind_s = max(0.0, seconds - load.duration_ns / 1e9) if load.is_paced else 0.0
        return Sent(stream, producer.name, producer.rows, producer.rows, seconds, behind_s)


def _meet() -> float:
    """Wait for all the others; when to begin, by the clock `time.monotonic` of this process."""
    ready = BarrierTaskContext.get().allGather(repr(time.time()))
    left_s = max(map(float, ready)) + LEAD_S - time.time()
    time.sleep(max(0.0, left_s))
    return time.monotonic() + min(0.0, left_s)


def rows_of(load: Load, stream: str, number: int) -> tuple[GeneratedReader, StreamFormat]:
    """The rows of one producer."""
    index = load.spec.index_of(stream)
    form, described = JoinPlan.of(load.spec).formats[index], load.spec.streams[index]
    source = described.source
    made = GeneratorSpec() if source is None or source.generator is None else source.generator
    keys, rows = load.workload.keys or made.keys, load.rows_of(number)
    seed = (load.seed * 1_009 + index) * 1_009 + number
    wanted = made.model_copy(update={"rows": rows, "seed": seed, "keys": keys})
    profile = _share(load.profile, load.producers)
    arrivals: Arrivals = CountedArrivals(profile=profile, rows=rows, until_ns=load.duration_ns)
    if load.workload.arrivals == "constant":
        arrivals = EvenArrivals(profile)
    points = Independent(arrivals, keys_of(keys))
    return GeneratedReader(f"spec.streams[{index}]", described, form, wanted, points), form


def _share(profile: RateProfile, producers: int) -> RateProfile:
    rates = {one.name: getattr(profile, one.name) / producers for one in _rates(profile)}
    return replace(profile, **rates)  # type: ignore[type-var]


def _rates(profile: RateProfile) -> list[Any]:
    return [one for one in fields(profile) if one.name.endswith("_hz")]  # type: ignore[arg-type]


def _text(load: Load) -> str:
    """As a task carries it."""
    apart = ("spec", "profile", "workload")
    plain = {one.name: getattr(load, one.name) for one in fields(load) if one.name not in apart}
    values = {one.name: getattr(load.profile, one.name) for one in fields(load.profile)}  # type: ignore[arg-type]
    workload = load.workload.model_dump(by_alias=True, mode="json", exclude_none=True)
    profile = [type(load.profile).__name__, values]
    return json.dumps({**plain, "spec": load.spec.to_dict(), "profile": profile, "workload": workload})


def _read(text: str) -> Load:
    held = json.loads(text)
    kind, values = held.pop("profile")
    spec, streams = JoinQuerySpec.parse(held.pop("spec")), tuple(held.pop("streams"))
    workload = WorkloadSpec.model_validate(held.pop("workload"))
    return Load(**held, spec=spec, streams=streams, profile=_PROFILES[kind](**values), workload=workload)
