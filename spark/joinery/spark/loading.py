"""A load for a running query, made by Spark's executors: the core generators, paced, by several producers.

Rule 1: every producer of every stream is one partition. Its rows are a function of the query, the profile, the seed and
        its number: the same in every run, whichever executor makes them.
Rule 2: the rate is shared evenly by the producers of a stream. Rows come when they are due; if the query cannot follow
        they come as late as it takes them, and `behind_s` says how late the last ones were.
Rule 3: the driver opens a session for every producer before any of them sends: none of them is late because of another.
Rule 4: what is told is exact: `acknowledged` rows are in the query's log.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from joinery.adapters.sources.generated import GeneratedReader
from joinery.adapters.sources.pacing import PacedReader
from joinery.adapters.sources.pieces import Pause, Reader
from joinery.client import numbered
from joinery.generate.from_spec import keys_of
from joinery.generate.points import Independent
from joinery.generate.poisson import PoissonArrivals
from joinery.generate.profiles import Burst, Constant, Ramp, RateProfile, Sine, Step
from joinery.join.plan import JoinPlan
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_sections import GeneratorSpec
from joinery.spark.options import Options

_PROFILES = {kind.__name__: kind for kind in (Burst, Constant, Ramp, Sine, Step)}
_TOLD = "stream string, producer string, sent bigint, acknowledged bigint, seconds double, behind_s double"


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
    behind_s: float


def send(load: Load, spark: SparkSession, options: Mapping[str, str]) -> list[Sent]:
    """The load from beginning to end; `options`: tls, token."""
    given = {"gateway": load.gateway, **options}
    chosen = Options.read(given)
    with chosen.connect() as query:
        for stream in load.streams:
            for producer in range(load.producers):
                numbered.join(chosen.place, query.form(stream), f"{load.name}/{producer}")
    spark.dataSource.register(LoadSource)
    frame = spark.read.format("joinery-load").options(**given, load=_text(load)).load()
    return [Sent(**row.asDict()) for row in frame.collect()]


class LoadSource(DataSource):
    """A frame with one row for each producer: reading it sends the load."""

    @classmethod
    def name(cls) -> str:
        return "joinery-load"

    def schema(self) -> str:
        return _TOLD

    def reader(self, schema: StructType) -> "LoadReader":  # noqa: ARG002
        given = dict(self.options)
        text = given.pop("load")
        return LoadReader(text, Options.read(given))


class LoadReader(DataSourceReader):
    """Its partitions are producers (rule 1)."""

    def __init__(self, text: str, options: Options) -> None:
        self._text, self._options = text, options

    def partitions(self) -> list[InputPartition]:
        load = _read(self._text)
        return [InputPartition((stream, number)) for number in range(load.producers) for stream in load.streams]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Sends, in an executor; then tells."""
        stream, number = partition.value
        told = _send_one(_read(self._text), self._options, stream, number)
        yield pa.RecordBatch.from_pylist([asdict(told)])


def _send_one(load: Load, options: Options, stream: str, number: int) -> Sent:
    reader = _rows(load, stream, number)
    with options.connect() as query:
        producer = query.producer(stream, f"{load.name}/{number}")
        began_s = time.monotonic()
        for one in reader.read(None):
            if isinstance(one, Pause):
                time.sleep(one.seconds)
            else:
                producer.push(one.rows)
        producer.end() if load.ends else producer.flush()
        seconds = time.monotonic() - began_s
        behind_s = max(0.0, seconds - load.duration_ns / 1e9) if load.is_paced else 0.0
        return Sent(stream, producer.name, producer.rows, producer.rows, seconds, behind_s)


def _rows(load: Load, stream: str, number: int) -> Reader:
    """The rows of one producer, when they are due."""
    index = load.spec.index_of(stream)
    form, described = JoinPlan.of(load.spec).formats[index], load.spec.streams[index]
    source = described.source
    made = GeneratorSpec() if source is None or source.generator is None else source.generator
    seed = (load.seed * 1_009 + index) * 1_009 + number
    wanted = made.model_copy(update={"rows": load.rows_of(number), "seed": seed})
    points = Independent(PoissonArrivals(_share(load.profile, load.producers)), keys_of(made.keys))
    reader = GeneratedReader(f"spec.streams[{index}]", described, form, wanted, points)
    return PacedReader(reader, form) if load.is_paced else reader


def _share(profile: RateProfile, producers: int) -> RateProfile:
    rates = {one.name: getattr(profile, one.name) / producers for one in _rates(profile)}
    return replace(profile, **rates)  # type: ignore[type-var]


def _rates(profile: RateProfile) -> list[Any]:
    return [one for one in fields(profile) if one.name.endswith("_hz")]  # type: ignore[arg-type]


def _text(load: Load) -> str:
    """As an option of Spark carries it."""
    plain = {one.name: getattr(load, one.name) for one in fields(load) if one.name not in ("spec", "profile")}
    values = {one.name: getattr(load.profile, one.name) for one in fields(load.profile)}  # type: ignore[arg-type]
    return json.dumps({**plain, "spec": load.spec.to_dict(), "profile": [type(load.profile).__name__, values]})


def _read(text: str) -> Load:
    held = json.loads(text)
    kind, values = held.pop("profile")
    spec, streams = JoinQuerySpec.parse(held.pop("spec")), tuple(held.pop("streams"))
    return Load(**held, spec=spec, streams=streams, profile=_PROFILES[kind](**values))
