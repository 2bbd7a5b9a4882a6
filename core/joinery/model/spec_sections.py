"""The sections of a query spec, with the names, defaults and bounds of docs/design.md §6.

Each class is one mapping of the YAML; camelCase there is snake_case here. The sentence under a field is its
documentation, and the description in the generated schema. What concerns one field alone is checked here; what concerns
several, in `spec_checks`.
"""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, model_validator

from joinery.model.complaints import BadValue
from joinery.model.quantities import Bytes, Nanoseconds
from joinery.model.spec_fields import (
    AutoDuration,
    Columns,
    Count,
    Duration,
    Flag,
    FullText,
    Identifier,
    InnerShare,
    Natural,
    NeverDuration,
    PositiveDuration,
    Rate,
    RedisUrl,
    Rows,
    Section,
    Seed,
    Share,
    Size,
    Speed,
    Text,
    WindowField,
    exactly_one,
)
from joinery.model.spec_pods import ResourcesSpec, VolumeSpec
from joinery.model.spec_profiles import ProfileSpec
from joinery.model.spec_table import VERSION, VERSION_TYPE, TableSpec
from joinery.model.spec_texts import ExpressionText, KeyParts
from joinery.model.types import ColumnType

SECOND: Final = 1_000_000_000
MEBI: Final = 2**20
DEFAULT_RATE: Final = 1500.0
DEFAULT_IDLE_TIMEOUT: Final = Nanoseconds(30 * SECOND)


class TimeSpec(Section):
    """Event time, taken from a column."""

    column: FullText = Field(examples=["ts"])
    """The column that holds the time of a row: an integer with `unit`, or a timestamp."""
    unit: Literal["s", "ms", "us", "ns"] | None = None
    """Unit of an integer column; a timestamp column has its own."""
    lateness: Duration = Nanoseconds(0)
    """How far behind its producer's greatest time a row may be; what is further behind is late."""
    idle_timeout: NeverDuration | None = Field(None, alias="idleTimeout")
    """A producer silent for so long no longer holds the watermark; left out: 30s for push, never for other sources."""


class FileSpec(Section):
    """A file that is read or written; its path is relative to the query file."""

    path: FullText = Field(examples=["orders.parquet"])
    """Path of the file; the ending says its format."""
    volume: VolumeSpec | None = None
    """In a cluster: the volume that holds the file."""

    @model_validator(mode="after")
    def _names_a_file(self) -> "FileSpec":
        if self.path.rpartition("/")[2] in ("", ".", ".."):
            raise BadValue(f"path {self.path}", "the path of a file", "write for example path: results.parquet")
        return self


class RedisSourceSpec(Section):
    """A Redis Stream that is read."""

    key: FullText = Field(examples=["orders"])
    """Key of the Redis Stream."""
    start: Literal["earliest", "now"] = "earliest"
    """Where the first run begins; a later one resumes at its offset."""


class RedisSinkSpec(Section):
    """A Redis Stream that is written."""

    key: FullText = Field(examples=["results"])
    """Key of the Redis Stream."""


class KeysSpec(Section):
    """How a generator draws integer keys."""

    distribution: Literal["uniform", "b-model", "zipf"] = "b-model"
    """Which keys are frequent."""
    range: Rows = 10_000_000
    """Keys lie in [0, range)."""
    skew: Annotated[float, Field(strict=True, ge=0, le=10, allow_inf_nan=False)] = 0.7
    """The bias b of the b-model, or the exponent of zipf; uniform has none."""

    @model_validator(mode="after")
    def _bias(self) -> "KeysSpec":
        if self.distribution == "b-model" and not 0.5 <= self.skew < 1:
            raise BadValue(f"skew {self.skew}", "0.5 <= skew < 1, the bias of the b-model", "write skew: 0.7")
        return self


class GeneratorSpec(Section):
    """Rows made up from a seed, the same in every run."""

    rate: Rate = DEFAULT_RATE
    """Rows per second."""
    profile: ProfileSpec | None = Field(None, examples=[{"step": {"before": 500, "after": 2000, "at": "60s"}}])
    """A rate that changes over time, instead of `rate`: a step, ramp, sine or burst."""
    arrivals: Literal["poisson", "constant"] = "poisson"
    """How the rows are spread in time."""
    keys: KeysSpec = KeysSpec()
    """How keys are drawn."""
    rows: Rows | None = Field(None, examples=[300_000])
    """The stream ends after so many rows; left out: never."""
    seed: Seed = 0
    """Seed of everything random in this stream."""

    @model_validator(mode="after")
    def _one_rate(self) -> "GeneratorSpec":
        if self.profile is not None and self.rate != DEFAULT_RATE:
            raise BadValue(
                f"rate {self.rate:g} and a profile", "one of them", "leave rate out: the profile has its own"
            )
        return self


class SourceSpec(Section):
    """A source that Joinery reads itself: exactly one of file, redisStream, generator."""

    file: FileSpec | None = None
    """A file."""
    redis_stream: RedisSourceSpec | None = Field(None, alias="redisStream")
    """A Redis Stream."""
    generator: GeneratorSpec | None = None
    """Generated rows."""
    pace: Literal["none", "time"] = "none"
    """`none`: as fast as they are taken; `time`: as far apart as their times."""

    @model_validator(mode="after")
    def _one(self) -> "SourceSpec":
        exactly_one(self, ("file", "redis_stream", "generator"), "leave source out for rows that are pushed")
        return self


class NoSettings(Section):
    """A thing that has no settings."""


class SinkSpec(Section):
    """Where results go: exactly one of file, redisStream, stdout, count."""

    keeps_null: ClassVar[frozenset[str]] = frozenset({"stdout", "count"})

    file: FileSpec | None = None
    """A file."""
    redis_stream: RedisSinkSpec | None = Field(None, alias="redisStream")
    """A Redis Stream."""
    stdout: NoSettings | None = None
    """The standard output; at least once around a crash."""
    count: NoSettings | None = None
    """Counted, and thrown away."""

    @model_validator(mode="before")
    @classmethod
    def _bare_names(cls, data: object) -> object:
        if isinstance(data, dict):
            return {name: {} if value is None and name in cls.keeps_null else value for name, value in data.items()}
        return data

    @model_validator(mode="after")
    def _one(self) -> "SinkSpec":
        exactly_one(self, ("file", "redis_stream", "stdout", "count"), "one list entry per sink")
        return self


class StreamSpec(Section):
    """One input of the join: a named, typed stream with its window."""

    name: Identifier = Field(examples=["orders"])
    """Name of the stream; also the prefix of its columns in results."""
    declared: Columns = Field(alias="schema", examples=[{"id": "int64"}])
    """Columns by name, each with its type."""
    window: WindowField = Field(examples=["10m"])
    """How long a row of this stream can be matched: a duration, {count: N}, 0s or unbounded."""
    time: TimeSpec | None = None
    """Event time; left out: the time of arrival at the gateway."""
    source: SourceSpec | None = None
    """What Joinery reads itself; left out: rows are pushed over gRPC."""
    table: TableSpec | None = None
    """No stream, but a stored table that the rows of the other stream are joined with; it has no window."""

    @property
    def columns(self) -> tuple[tuple[str, ColumnType], ...]:
        """The columns in the order of their names; a table's rows also carry the version that they are of."""
        return self.declared if self.table is None else tuple(sorted((*self.declared, (VERSION, VERSION_TYPE))))

    def column_type(self, name: str) -> ColumnType | None:
        """The type of a column, or None if the stream has no such column."""
        return dict(self.columns).get(name)

    def key_columns(self, join: "JoinSpec") -> list[str]:
        """The key columns of this stream, in the order of `join.on`."""
        return [part.column_of(self.name) for part in join.on]

    @property
    def lateness(self) -> Nanoseconds:
        """Allowed lateness in nanoseconds; with arrival time nothing is late."""
        return Nanoseconds(0) if self.time is None else self.time.lateness

    @property
    def idle_timeout(self) -> Nanoseconds | None:
        """Silence in nanoseconds after which a producer no longer holds the watermark; None: never."""
        chosen = None if self.time is None else self.time.idle_timeout
        if chosen is None:
            return DEFAULT_IDLE_TIMEOUT if self.source is None else None
        return None if chosen == "never" else chosen


class JoinSpec(Section):
    """What belongs together."""

    on: KeyParts = Field(examples=[["id"]])
    """Key columns: names that every stream has, or a mapping from stream to column where they differ."""
    type: Literal["inner", "left", "right", "full", "semi", "anti"] = "inner"
    """Which rows come out; all but inner take exactly two streams."""
    where: ExpressionText | None = None
    """Part of the join condition, over the columns of all streams."""
    method: Literal["hash", "nested-loop"] = "hash"
    """How matches are found."""

    @model_validator(mode="before")
    @classmethod
    def _on_is_a_word(cls, data: object) -> object:
        """YAML 1.1, which kubectl and Helm read, takes the bare key `on` for true."""
        if isinstance(data, dict) and "on" not in data:
            return {"on" if name is True or name == "true" else name: value for name, value in data.items()}
        return data


class LateSpec(Section):
    """What happens to late rows besides being counted."""

    sink: SinkSpec = Field(examples=[{"count": {}}])
    """Where they are written, once each."""


class OutputSpec(Section):
    """In which order results come out."""

    order: Literal["none", "time"] = "none"
    """`time` waits for watermarks."""
    disorder: Natural = 0
    """With order time: how many rows may overtake a row."""


class ResultsSpec(Section):
    """What subscribers can read again."""

    retain: Size = Bytes(64 * MEBI)
    """Bytes of committed results that are kept."""


class EpochsSpec(Section):
    """The two periods of the paper."""

    distribution: AutoDuration = "auto"
    """t_d, at most a minute: every worker is served once in it; auto: 5 to 200 ms by load."""
    reorganization: PositiveDuration = Nanoseconds(2 * SECOND)
    """t_r: load reports, moves, change of the degree."""
    subgroups: Count = 2
    """n_g: slots of a distribution epoch."""


class ScaleUpSpec(Section):
    """Damping of growth."""

    stabilization: Duration = Nanoseconds(10 * SECOND)
    """How long the reason must hold before the degree grows."""


class ScaleDownSpec(Section):
    """Damping of shrinking."""

    stabilization: Duration = Nanoseconds(60 * SECOND)
    """How long the reason must hold before the degree shrinks."""


class ScalingSpec(Section):
    """How the number of workers follows the load (thesis 7.5.1)."""

    mode: Literal["Auto", "Manual"] = "Auto"
    """Manual: only `replicas` counts."""
    rule: Literal["guarded", "paper"] = "guarded"
    """paper: the bare rule of the papers."""
    min: Count = 1
    """Workers at least."""
    max: Count = 8
    """Workers at most."""
    beta: InnerShare = 0.5
    """Grow when suppliers > beta x consumers."""
    supplier_threshold: Share = Field(0.5, alias="supplierThreshold")
    """Occupancy above which a worker gives groups away (Th_sup)."""
    consumer_threshold: Share = Field(0.01, alias="consumerThreshold")
    """Occupancy below which a worker takes groups (Th_con)."""
    min_suppliers: Natural = Field(1, alias="minSuppliers")
    """Shrink when there are fewer suppliers (S_low)."""
    step: Count = 1
    """Workers added or taken away at once (delta)."""
    target: Annotated[float, Field(strict=True, gt=0, le=1, allow_inf_nan=False)] = 0.8
    """Guarded: shrink only if the rest would be busy for less than this share of time."""
    max_parallel_moves: Count = Field(8, alias="maxParallelMoves")
    """Groups under way at once."""
    scale_up: ScaleUpSpec = Field(ScaleUpSpec(), alias="scaleUp")
    """Damping of growth."""
    scale_down: ScaleDownSpec = Field(ScaleDownSpec(), alias="scaleDown")
    """Damping of shrinking."""


class WorkerSpec(Section):
    """One worker."""

    buffer: Size = Bytes(MEBI)
    """Input buffer in bytes; its fill is the occupancy."""
    memory: Size = Bytes(2 * 1024 * MEBI)
    """Limit of a worker's state; above 0.8 of it the worker gives groups away."""
    speed: Speed = "unlimited"
    """Comparisons per second at most, for tests and figures."""
    resources: ResourcesSpec = ResourcesSpec()
    """Resources of the container."""


class FineTuningSpec(Section):
    """Extendible hashing inside a partition-group."""

    enabled: Flag = True
    """Whether large groups are split into mini-groups."""
    theta: Size = Bytes(3 * MEBI // 2)
    """A mini-group has theta to 2 theta bytes."""
    block: Size = Bytes(4 * 1024)
    """Bytes of a block of the nested-loop join."""


class CheckpointSpec(Section):
    """What survives a crash."""

    interval: PositiveDuration = Nanoseconds(2 * SECOND)
    """Between two increments of a group."""
    durability: Literal["wal", "memory"] = "wal"
    """wal: acknowledged means safe on disk; memory: a gateway crash loses what was not checkpointed, and says so."""


class RedisSpec(Section):
    """Which Redis; left out: embedded (local), bundled (chart)."""

    url: RedisUrl = Field("", examples=["redis://redis:6379/0"])
    """redis://host:port/db"""
    secret_name: Text = Field("", alias="secretName", examples=["my-redis"])
    """Secret that holds the url."""
