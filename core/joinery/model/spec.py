"""The query spec: what a user asks for, typed and frozen, with the names of docs/design.md §6.

`JoinQuerySpec.parse` and `JoinQuery.parse_yaml` are the only doors. They return a spec that can run, or raise `BadSpec`
with every complaint at once, each naming field, found, wanted and remedy. Behind them nothing is checked again: names
resolve, types fit, bounds hold. `to_dict` writes a spec out so that parsing it gives the same spec. The CRD's schema is
generated from the same models (`JoinQuerySpec.model_json_schema(by_alias=True)`).
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from joinery.model.complaints import BadValue
from joinery.model.errors import BadExpression, BadSpec, Complaint
from joinery.model.ids import StreamIndex
from joinery.model.quantities import CountWindow, Nanoseconds, TimeWindow, Window
from joinery.model.select import SelectItem, result_name
from joinery.model.spec_checks import check_query, check_spec
from joinery.model.spec_fields import AutoDuration, Count, Labels, ObjectName, Section
from joinery.model.spec_parsing import parse_section
from joinery.model.spec_pods import AccessSpec, PodsSpec
from joinery.model.spec_sections import (
    CheckpointSpec,
    EpochsSpec,
    FineTuningSpec,
    JoinSpec,
    LateSpec,
    OutputSpec,
    RedisSpec,
    ResultsSpec,
    ScalingSpec,
    SinkSpec,
    StreamSpec,
    WorkerSpec,
)
from joinery.model.spec_table import TableSpec
from joinery.model.spec_texts import ExpressionText, SelectItems
from joinery.model.time import UNBOUNDED
from joinery.model.types import ColumnType
from joinery.model.yaml_text import load_yaml


def _without_sql(spec: object, field: str) -> object:
    """A spec whose `sql` is written out as join, select, filter and windows."""
    if not isinstance(spec, Mapping) or spec.get("sql") is None:
        return spec
    from joinery.model.sql import expanded  # noqa: PLC0415 - its grammar takes a moment to load, and few need it

    try:
        return expanded(spec)
    except BadExpression as bad:
        before = bad.text[: bad.at].rpartition("\n")[2]
        line = before + bad.text[bad.at :].partition("\n")[0]
        raise BadSpec(
            [Complaint(field, bad.found, bad.wanted, f"{bad.remedy}\n  {line}\n  {' ' * len(before)}^")]
        ) from None
    except BadValue as bad:
        raise BadSpec([bad.complaint(field)]) from None


def _without_window(stream: object) -> object:
    return {"window": "0s", **stream} if isinstance(stream, Mapping) and stream.get("window") is None else stream


_TWO_STREAMS = [{"name": name, "schema": {"id": "int64"}, "window": "10m"} for name in ("left", "right")]


class JoinQuerySpec(Section):
    """One join query."""

    streams: Annotated[tuple[StreamSpec, ...], Field(min_length=2, max_length=8)] = Field(examples=[_TWO_STREAMS])
    """The inputs, 2 to 8; their order is the order of columns in results, and breaks ties in time."""
    join: JoinSpec = Field(examples=[{"on": ["id"]}])
    """What belongs together."""
    filter: ExpressionText | None = None
    """Which result rows are kept."""
    select: SelectItems | None = None
    """Columns of the result, in order; left out: every column."""
    sinks: Annotated[tuple[SinkSpec, ...], Field(max_length=16)] = ()
    """Where results are written; they can always be subscribed to."""
    late: LateSpec | None = None
    """Where late rows are written; they are counted in any case."""
    output: OutputSpec = OutputSpec()
    """In which order results come out."""
    results: ResultsSpec = ResultsSpec()
    """What subscribers can read again."""
    alignment: AutoDuration = "auto"
    """How far a producer may run ahead of the smallest watermark; auto: largest window + lateness."""
    epochs: EpochsSpec = EpochsSpec()
    """Periods of distribution and reorganization."""
    partitions: Count = 60
    """Classes of keys, far more than workers: the units of placement and migration."""
    replicas: Count = 1
    """Workers to start with, or, with scaling Manual, to keep."""
    scaling: ScalingSpec = ScalingSpec()
    """How the number of workers follows the load."""
    worker: WorkerSpec = WorkerSpec()
    """One worker."""
    fine_tuning: FineTuningSpec = Field(FineTuningSpec(), alias="fineTuning")
    """Mini-groups."""
    checkpoint: CheckpointSpec = CheckpointSpec()
    """What survives a crash."""
    redis: RedisSpec = RedisSpec()
    """Which Redis."""
    access: AccessSpec = AccessSpec()
    """Who may push and subscribe, in a cluster."""
    pods: PodsSpec = PodsSpec()
    """Labels, nodes and resources of the pods, in a cluster."""
    engine: Literal["service", "spark"] = "service"
    """What runs the query."""

    @model_validator(mode="before")
    @classmethod
    def _no_window_beside_a_table(cls, data: object) -> object:
        """Rows meet a version of the table, not each other: nobody has to write a window of no length."""
        streams = data.get("streams") if isinstance(data, Mapping) else None
        if not isinstance(data, Mapping) or not isinstance(streams, list | tuple):
            return data
        if not any(isinstance(stream, Mapping) and stream.get("table") is not None for stream in streams):
            return data
        return {**data, "streams": [_without_window(stream) for stream in streams]}

    @classmethod
    def parse(cls, mapping: object) -> "JoinQuerySpec":
        """The spec that a mapping (the YAML's `spec`) describes; `BadSpec` with every complaint."""
        return parse_section(cls, _without_sql(mapping, "spec.sql"), ("spec",), check_spec)

    def to_dict(self) -> dict[str, Any]:
        """The whole spec with every default, as YAML would hold it."""
        return self.model_dump(by_alias=True, mode="json", exclude_none=True)

    def index_of(self, stream: str) -> StreamIndex:
        """The place of a stream in the spec."""
        return StreamIndex([held.name for held in self.streams].index(stream))

    @property
    def column_types(self) -> dict[tuple[str, str], ColumnType]:
        """The type of every (stream, column): what `where` is checked against."""
        return {(stream.name, name): kind for stream in self.streams for name, kind in stream.columns}

    @property
    def result_streams(self) -> tuple[StreamSpec, ...]:
        """The streams whose columns are in results: of a semi or anti join only the first."""
        return self.streams[:1] if self.join.type in ("semi", "anti") else self.streams

    @property
    def result_types(self) -> dict[tuple[str, str], ColumnType]:
        """The type of every (stream, column) of a result row: what `filter` is checked against."""
        return {(stream.name, name): kind for stream in self.result_streams for name, kind in stream.columns}

    @property
    def result_columns(self) -> tuple[SelectItem, ...]:
        """The columns of the result in their order, chosen and named."""
        if self.select is not None:
            return self.select
        return tuple(SelectItem(stream, column, result_name(stream, column)) for stream, column in self.result_types)

    @property
    def table(self) -> TableSpec | None:
        """The stored table that the stream is joined with; None: streams are joined with each other."""
        return next((stream.table for stream in self.streams if stream.table is not None), None)

    @property
    def has_count_window(self) -> bool:
        """Whether the query runs in order (docs/design.md §2)."""
        return any(isinstance(stream.window, CountWindow) for stream in self.streams)

    @property
    def asked_workers(self) -> int:
        """The number of workers that a person asked for, within the bounds of `scaling`."""
        return min(max(self.replicas, self.scaling.min), self.scaling.max)

    @property
    def alignment_ns(self) -> Nanoseconds:
        """How far a producer may be ahead, in nanoseconds; `UNBOUNDED` if a window is."""
        lateness = max(stream.lateness for stream in self.streams)
        return self.alignment_with(tuple(stream.window for stream in self.streams), lateness)

    def alignment_with(self, windows: tuple[Window, ...], lateness_ns: int) -> Nanoseconds:
        """The same, of a running query whose windows and greatest lateness were changed to these.

        Never below the lateness: the slowest producer would wait for itself.
        """
        if self.alignment != "auto":
            return Nanoseconds(max(self.alignment, lateness_ns))
        if self.table is not None:
            return Nanoseconds(UNBOUNDED)  # nobody waits for anybody
        lengths = [window.length_ns for window in windows if isinstance(window, TimeWindow)]
        return Nanoseconds(min(UNBOUNDED, max(lengths, default=0) + lateness_ns))


class Metadata(Section):
    """What Kubernetes knows an object by; fields that only the API server writes are ignored."""

    model_config = ConfigDict(extra="ignore")

    name: ObjectName = Field(examples=["orders-fulfilments"])
    """Name of the query."""
    namespace: ObjectName | None = None
    """Namespace of the query."""
    labels: Labels = ()
    """Labels of the query."""
    annotations: Labels = ()
    """Annotations of the query."""


class JoinQuery(Section):
    """A query file, or the object in the cluster."""

    api_version: Literal["joinery.dev/v1alpha1"] = Field(alias="apiVersion", examples=["joinery.dev/v1alpha1"])
    """Version of the format."""
    kind: Literal["JoinQuery"] = Field(examples=["JoinQuery"])
    """Always JoinQuery."""
    metadata: Metadata = Field(examples=[{"name": "orders-fulfilments"}])
    """Name and labels."""
    spec: JoinQuerySpec = Field(examples=[{"streams": _TWO_STREAMS, "join": {"on": ["id"]}}])
    """The query."""

    @classmethod
    def parse(cls, mapping: object) -> "JoinQuery":
        """The query that a mapping describes; `BadSpec` with every complaint. A `status` is ignored."""
        raw = (
            {key: value for key, value in mapping.items() if key != "status"}
            if isinstance(mapping, Mapping)
            else mapping
        )
        if isinstance(raw, dict) and "spec" in raw:
            raw["spec"] = _without_sql(raw["spec"], "spec.sql")
        return parse_section(cls, raw, (), check_query)

    @classmethod
    def parse_yaml(cls, text: str) -> "JoinQuery":
        """The query of a YAML text."""
        return cls.parse(load_yaml(text))

    def to_dict(self) -> dict[str, Any]:
        """The whole query with every default, as YAML would hold it."""
        return self.model_dump(by_alias=True, mode="json", exclude_none=True)
