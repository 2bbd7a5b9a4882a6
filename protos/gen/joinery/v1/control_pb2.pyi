from joinery.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Party(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PARTY_UNSPECIFIED: _ClassVar[Party]
    PARTY_COLLECTOR: _ClassVar[Party]
    PARTY_OPERATOR: _ClassVar[Party]

class LoadRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOAD_ROLE_UNSPECIFIED: _ClassVar[LoadRole]
    LOAD_ROLE_SUPPLIER: _ClassVar[LoadRole]
    LOAD_ROLE_CONSUMER: _ClassVar[LoadRole]
    LOAD_ROLE_NEUTRAL: _ClassVar[LoadRole]

class Wish(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WISH_UNSPECIFIED: _ClassVar[Wish]
    WISH_GROW: _ClassVar[Wish]
    WISH_SHRINK: _ClassVar[Wish]
    WISH_KEEP: _ClassVar[Wish]

class Station(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STATION_UNSPECIFIED: _ClassVar[Station]
    STATION_WAITING: _ClassVar[Station]
    STATION_MOVING: _ClassVar[Station]
    STATION_SENT: _ClassVar[Station]
    STATION_JOINED: _ClassVar[Station]
    STATION_COMMITTED: _ClassVar[Station]
    STATION_LOST: _ClassVar[Station]
PARTY_UNSPECIFIED: Party
PARTY_COLLECTOR: Party
PARTY_OPERATOR: Party
LOAD_ROLE_UNSPECIFIED: LoadRole
LOAD_ROLE_SUPPLIER: LoadRole
LOAD_ROLE_CONSUMER: LoadRole
LOAD_ROLE_NEUTRAL: LoadRole
WISH_UNSPECIFIED: Wish
WISH_GROW: Wish
WISH_SHRINK: Wish
WISH_KEEP: Wish
STATION_UNSPECIFIED: Station
STATION_WAITING: Station
STATION_MOVING: Station
STATION_SENT: Station
STATION_JOINED: Station
STATION_COMMITTED: Station
STATION_LOST: Station

class AttendantToGateway(_message.Message):
    __slots__ = ("attending", "collector_hello", "vector", "committed", "finished", "drain", "move_group", "change_spec", "pong", "change_query", "end_streams", "look", "decided")
    ATTENDING_FIELD_NUMBER: _ClassVar[int]
    COLLECTOR_HELLO_FIELD_NUMBER: _ClassVar[int]
    VECTOR_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    MOVE_GROUP_FIELD_NUMBER: _ClassVar[int]
    CHANGE_SPEC_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    CHANGE_QUERY_FIELD_NUMBER: _ClassVar[int]
    END_STREAMS_FIELD_NUMBER: _ClassVar[int]
    LOOK_FIELD_NUMBER: _ClassVar[int]
    DECIDED_FIELD_NUMBER: _ClassVar[int]
    attending: Attending
    collector_hello: CollectorHello
    vector: Vector
    committed: _common_pb2.Committed
    finished: _common_pb2.Finished
    drain: Drain
    move_group: MoveGroup
    change_spec: ChangeSpec
    pong: _common_pb2.Pong
    change_query: ChangeQuery
    end_streams: EndStreams
    look: Look
    decided: Decided
    def __init__(self, attending: _Optional[_Union[Attending, _Mapping]] = ..., collector_hello: _Optional[_Union[CollectorHello, _Mapping]] = ..., vector: _Optional[_Union[Vector, _Mapping]] = ..., committed: _Optional[_Union[_common_pb2.Committed, _Mapping]] = ..., finished: _Optional[_Union[_common_pb2.Finished, _Mapping]] = ..., drain: _Optional[_Union[Drain, _Mapping]] = ..., move_group: _Optional[_Union[MoveGroup, _Mapping]] = ..., change_spec: _Optional[_Union[ChangeSpec, _Mapping]] = ..., pong: _Optional[_Union[_common_pb2.Pong, _Mapping]] = ..., change_query: _Optional[_Union[ChangeQuery, _Mapping]] = ..., end_streams: _Optional[_Union[EndStreams, _Mapping]] = ..., look: _Optional[_Union[Look, _Mapping]] = ..., decided: _Optional[_Union[Decided, _Mapping]] = ...) -> None: ...

class GatewayToAttendant(_message.Message):
    __slots__ = ("owners", "drained", "cluster_report", "empty", "finished", "ping", "overview", "spec_now", "query_changed", "streams_ended", "looked")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    DRAINED_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_REPORT_FIELD_NUMBER: _ClassVar[int]
    EMPTY_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    OVERVIEW_FIELD_NUMBER: _ClassVar[int]
    SPEC_NOW_FIELD_NUMBER: _ClassVar[int]
    QUERY_CHANGED_FIELD_NUMBER: _ClassVar[int]
    STREAMS_ENDED_FIELD_NUMBER: _ClassVar[int]
    LOOKED_FIELD_NUMBER: _ClassVar[int]
    owners: Owners
    drained: Drained
    cluster_report: ClusterReport
    empty: Empty
    finished: _common_pb2.Finished
    ping: _common_pb2.Ping
    overview: Overview
    spec_now: _common_pb2.SpecNow
    query_changed: QueryChanged
    streams_ended: StreamsEnded
    looked: Looked
    def __init__(self, owners: _Optional[_Union[Owners, _Mapping]] = ..., drained: _Optional[_Union[Drained, _Mapping]] = ..., cluster_report: _Optional[_Union[ClusterReport, _Mapping]] = ..., empty: _Optional[_Union[Empty, _Mapping]] = ..., finished: _Optional[_Union[_common_pb2.Finished, _Mapping]] = ..., ping: _Optional[_Union[_common_pb2.Ping, _Mapping]] = ..., overview: _Optional[_Union[Overview, _Mapping]] = ..., spec_now: _Optional[_Union[_common_pb2.SpecNow, _Mapping]] = ..., query_changed: _Optional[_Union[QueryChanged, _Mapping]] = ..., streams_ended: _Optional[_Union[StreamsEnded, _Mapping]] = ..., looked: _Optional[_Union[Looked, _Mapping]] = ...) -> None: ...

class Attending(_message.Message):
    __slots__ = ("party",)
    PARTY_FIELD_NUMBER: _ClassVar[int]
    party: Party
    def __init__(self, party: _Optional[_Union[Party, str]] = ...) -> None: ...

class CollectorHello(_message.Message):
    __slots__ = ("term",)
    TERM_FIELD_NUMBER: _ClassVar[int]
    term: int
    def __init__(self, term: _Optional[int] = ...) -> None: ...

class Owners(_message.Message):
    __slots__ = ("term", "versions")
    TERM_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    term: int
    versions: bytes
    def __init__(self, term: _Optional[int] = ..., versions: _Optional[bytes] = ...) -> None: ...

class Vector(_message.Message):
    __slots__ = ("term", "versions", "committed", "seen", "totals")
    TERM_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    TOTALS_FIELD_NUMBER: _ClassVar[int]
    term: int
    versions: bytes
    committed: bytes
    seen: bytes
    totals: _common_pb2.Totals
    def __init__(self, term: _Optional[int] = ..., versions: _Optional[bytes] = ..., committed: _Optional[bytes] = ..., seen: _Optional[bytes] = ..., totals: _Optional[_Union[_common_pb2.Totals, _Mapping]] = ...) -> None: ...

class Drained(_message.Message):
    __slots__ = ("term",)
    TERM_FIELD_NUMBER: _ClassVar[int]
    term: int
    def __init__(self, term: _Optional[int] = ...) -> None: ...

class ClusterReport(_message.Message):
    __slots__ = ("reports", "roles", "degree_workers")
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    DEGREE_WORKERS_FIELD_NUMBER: _ClassVar[int]
    reports: _containers.RepeatedCompositeFieldContainer[_common_pb2.LoadReport]
    roles: _containers.RepeatedScalarFieldContainer[LoadRole]
    degree_workers: int
    def __init__(self, reports: _Optional[_Iterable[_Union[_common_pb2.LoadReport, _Mapping]]] = ..., roles: _Optional[_Iterable[_Union[LoadRole, str]]] = ..., degree_workers: _Optional[int] = ...) -> None: ...

class Overview(_message.Message):
    __slots__ = ("at_ns", "records", "streams", "workers", "degree_workers", "suppliers", "consumers", "map_version", "results_rows", "late_rows", "produced", "delivered", "moves", "moves_done", "under_way", "events", "events_seen", "unsent_bytes", "unsent_peak_bytes", "replay_bytes", "epoch_ns", "is_last", "settings", "uncommitted_record", "rejected_batches", "checkpointed_ns", "stored_bytes")
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    DEGREE_WORKERS_FIELD_NUMBER: _ClassVar[int]
    SUPPLIERS_FIELD_NUMBER: _ClassVar[int]
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    MAP_VERSION_FIELD_NUMBER: _ClassVar[int]
    RESULTS_ROWS_FIELD_NUMBER: _ClassVar[int]
    LATE_ROWS_FIELD_NUMBER: _ClassVar[int]
    PRODUCED_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    MOVES_DONE_FIELD_NUMBER: _ClassVar[int]
    UNDER_WAY_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    EVENTS_SEEN_FIELD_NUMBER: _ClassVar[int]
    UNSENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    UNSENT_PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    REPLAY_BYTES_FIELD_NUMBER: _ClassVar[int]
    EPOCH_NS_FIELD_NUMBER: _ClassVar[int]
    IS_LAST_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    UNCOMMITTED_RECORD_FIELD_NUMBER: _ClassVar[int]
    REJECTED_BATCHES_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTED_NS_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    at_ns: int
    records: int
    streams: _containers.RepeatedCompositeFieldContainer[StreamView]
    workers: _containers.RepeatedCompositeFieldContainer[WorkerView]
    degree_workers: int
    suppliers: int
    consumers: int
    map_version: int
    results_rows: int
    late_rows: int
    produced: _common_pb2.Delays
    delivered: _common_pb2.Delays
    moves: _containers.RepeatedCompositeFieldContainer[MoveView]
    moves_done: int
    under_way: _containers.RepeatedCompositeFieldContainer[MoveView]
    events: _containers.RepeatedCompositeFieldContainer[EventView]
    events_seen: int
    unsent_bytes: int
    unsent_peak_bytes: int
    replay_bytes: int
    epoch_ns: int
    is_last: bool
    settings: SettingsView
    uncommitted_record: int
    rejected_batches: int
    checkpointed_ns: int
    stored_bytes: int
    def __init__(self, at_ns: _Optional[int] = ..., records: _Optional[int] = ..., streams: _Optional[_Iterable[_Union[StreamView, _Mapping]]] = ..., workers: _Optional[_Iterable[_Union[WorkerView, _Mapping]]] = ..., degree_workers: _Optional[int] = ..., suppliers: _Optional[int] = ..., consumers: _Optional[int] = ..., map_version: _Optional[int] = ..., results_rows: _Optional[int] = ..., late_rows: _Optional[int] = ..., produced: _Optional[_Union[_common_pb2.Delays, _Mapping]] = ..., delivered: _Optional[_Union[_common_pb2.Delays, _Mapping]] = ..., moves: _Optional[_Iterable[_Union[MoveView, _Mapping]]] = ..., moves_done: _Optional[int] = ..., under_way: _Optional[_Iterable[_Union[MoveView, _Mapping]]] = ..., events: _Optional[_Iterable[_Union[EventView, _Mapping]]] = ..., events_seen: _Optional[int] = ..., unsent_bytes: _Optional[int] = ..., unsent_peak_bytes: _Optional[int] = ..., replay_bytes: _Optional[int] = ..., epoch_ns: _Optional[int] = ..., is_last: _Optional[bool] = ..., settings: _Optional[_Union[SettingsView, _Mapping]] = ..., uncommitted_record: _Optional[int] = ..., rejected_batches: _Optional[int] = ..., checkpointed_ns: _Optional[int] = ..., stored_bytes: _Optional[int] = ...) -> None: ...

class SettingsView(_message.Message):
    __slots__ = ("changes", "replicas_workers", "beta", "supplier_threshold", "consumer_threshold", "windows")
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_WORKERS_FIELD_NUMBER: _ClassVar[int]
    BETA_FIELD_NUMBER: _ClassVar[int]
    SUPPLIER_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    changes: int
    replicas_workers: int
    beta: float
    supplier_threshold: float
    consumer_threshold: float
    windows: _containers.RepeatedCompositeFieldContainer[_common_pb2.Window]
    def __init__(self, changes: _Optional[int] = ..., replicas_workers: _Optional[int] = ..., beta: _Optional[float] = ..., supplier_threshold: _Optional[float] = ..., consumer_threshold: _Optional[float] = ..., windows: _Optional[_Iterable[_Union[_common_pb2.Window, _Mapping]]] = ...) -> None: ...

class StreamView(_message.Message):
    __slots__ = ("rows", "late_rows", "rows_per_s", "watermark_ns")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    LATE_ROWS_FIELD_NUMBER: _ClassVar[int]
    ROWS_PER_S_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_NS_FIELD_NUMBER: _ClassVar[int]
    rows: int
    late_rows: int
    rows_per_s: float
    watermark_ns: int
    def __init__(self, rows: _Optional[int] = ..., late_rows: _Optional[int] = ..., rows_per_s: _Optional[float] = ..., watermark_ns: _Optional[int] = ...) -> None: ...

class WorkerView(_message.Message):
    __slots__ = ("worker", "is_up", "groups", "role", "report", "clock_ahead_ns", "slot")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    IS_UP_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    CLOCK_AHEAD_NS_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    worker: str
    is_up: bool
    groups: int
    role: LoadRole
    report: _common_pb2.LoadReport
    clock_ahead_ns: int
    slot: int
    def __init__(self, worker: _Optional[str] = ..., is_up: _Optional[bool] = ..., groups: _Optional[int] = ..., role: _Optional[_Union[LoadRole, str]] = ..., report: _Optional[_Union[_common_pb2.LoadReport, _Mapping]] = ..., clock_ahead_ns: _Optional[int] = ..., slot: _Optional[int] = ...) -> None: ...

class MoveView(_message.Message):
    __slots__ = ("group", "source", "target", "window_bytes", "is_planned", "begun_ns", "pause_ns")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    WINDOW_BYTES_FIELD_NUMBER: _ClassVar[int]
    IS_PLANNED_FIELD_NUMBER: _ClassVar[int]
    BEGUN_NS_FIELD_NUMBER: _ClassVar[int]
    PAUSE_NS_FIELD_NUMBER: _ClassVar[int]
    group: int
    source: str
    target: str
    window_bytes: int
    is_planned: bool
    begun_ns: int
    pause_ns: int
    def __init__(self, group: _Optional[int] = ..., source: _Optional[str] = ..., target: _Optional[str] = ..., window_bytes: _Optional[int] = ..., is_planned: _Optional[bool] = ..., begun_ns: _Optional[int] = ..., pause_ns: _Optional[int] = ...) -> None: ...

class EventView(_message.Message):
    __slots__ = ("at_ns", "kind", "text")
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    at_ns: int
    kind: str
    text: str
    def __init__(self, at_ns: _Optional[int] = ..., kind: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class Drain(_message.Message):
    __slots__ = ("workers",)
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    workers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, workers: _Optional[_Iterable[str]] = ...) -> None: ...

class Empty(_message.Message):
    __slots__ = ("workers",)
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    workers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, workers: _Optional[_Iterable[str]] = ...) -> None: ...

class MoveGroup(_message.Message):
    __slots__ = ("group", "to_worker")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    TO_WORKER_FIELD_NUMBER: _ClassVar[int]
    group: int
    to_worker: str
    def __init__(self, group: _Optional[int] = ..., to_worker: _Optional[str] = ...) -> None: ...

class ChangeSpec(_message.Message):
    __slots__ = ("version", "windows", "lateness_ns", "idle_timeout_ns")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    LATENESS_NS_FIELD_NUMBER: _ClassVar[int]
    IDLE_TIMEOUT_NS_FIELD_NUMBER: _ClassVar[int]
    version: int
    windows: _containers.RepeatedCompositeFieldContainer[_common_pb2.Window]
    lateness_ns: _containers.RepeatedScalarFieldContainer[int]
    idle_timeout_ns: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, version: _Optional[int] = ..., windows: _Optional[_Iterable[_Union[_common_pb2.Window, _Mapping]]] = ..., lateness_ns: _Optional[_Iterable[int]] = ..., idle_timeout_ns: _Optional[_Iterable[int]] = ...) -> None: ...

class ChangeQuery(_message.Message):
    __slots__ = ("spec_json",)
    SPEC_JSON_FIELD_NUMBER: _ClassVar[int]
    spec_json: str
    def __init__(self, spec_json: _Optional[str] = ...) -> None: ...

class QueryChanged(_message.Message):
    __slots__ = ("logged", "at_once", "refused", "record")
    LOGGED_FIELD_NUMBER: _ClassVar[int]
    AT_ONCE_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    logged: _containers.RepeatedCompositeFieldContainer[FieldChange]
    at_once: _containers.RepeatedCompositeFieldContainer[FieldChange]
    refused: _containers.RepeatedCompositeFieldContainer[FieldRefused]
    record: int
    def __init__(self, logged: _Optional[_Iterable[_Union[FieldChange, _Mapping]]] = ..., at_once: _Optional[_Iterable[_Union[FieldChange, _Mapping]]] = ..., refused: _Optional[_Iterable[_Union[FieldRefused, _Mapping]]] = ..., record: _Optional[int] = ...) -> None: ...

class FieldChange(_message.Message):
    __slots__ = ("field", "found", "wanted")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    field: str
    found: str
    wanted: str
    def __init__(self, field: _Optional[str] = ..., found: _Optional[str] = ..., wanted: _Optional[str] = ...) -> None: ...

class FieldRefused(_message.Message):
    __slots__ = ("field", "found", "wanted", "remedy")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    REMEDY_FIELD_NUMBER: _ClassVar[int]
    field: str
    found: str
    wanted: str
    remedy: str
    def __init__(self, field: _Optional[str] = ..., found: _Optional[str] = ..., wanted: _Optional[str] = ..., remedy: _Optional[str] = ...) -> None: ...

class EndStreams(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StreamsEnded(_message.Message):
    __slots__ = ("record",)
    RECORD_FIELD_NUMBER: _ClassVar[int]
    record: int
    def __init__(self, record: _Optional[int] = ...) -> None: ...

class Look(_message.Message):
    __slots__ = ("record",)
    RECORD_FIELD_NUMBER: _ClassVar[int]
    record: int
    def __init__(self, record: _Optional[int] = ...) -> None: ...

class Looked(_message.Message):
    __slots__ = ("now", "view", "decisions", "place")
    NOW_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    now: _common_pb2.SpecNow
    view: Overview
    decisions: _containers.RepeatedCompositeFieldContainer[Decided]
    place: RecordPlace
    def __init__(self, now: _Optional[_Union[_common_pb2.SpecNow, _Mapping]] = ..., view: _Optional[_Union[Overview, _Mapping]] = ..., decisions: _Optional[_Iterable[_Union[Decided, _Mapping]]] = ..., place: _Optional[_Union[RecordPlace, _Mapping]] = ...) -> None: ...

class Decided(_message.Message):
    __slots__ = ("at_ns", "load", "wish", "by_workers", "because", "blocked_by", "blocked_until_ns")
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    WISH_FIELD_NUMBER: _ClassVar[int]
    BY_WORKERS_FIELD_NUMBER: _ClassVar[int]
    BECAUSE_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_BY_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_UNTIL_NS_FIELD_NUMBER: _ClassVar[int]
    at_ns: int
    load: ClusterReport
    wish: Wish
    by_workers: int
    because: str
    blocked_by: _containers.RepeatedScalarFieldContainer[str]
    blocked_until_ns: int
    def __init__(self, at_ns: _Optional[int] = ..., load: _Optional[_Union[ClusterReport, _Mapping]] = ..., wish: _Optional[_Union[Wish, str]] = ..., by_workers: _Optional[int] = ..., because: _Optional[str] = ..., blocked_by: _Optional[_Iterable[str]] = ..., blocked_until_ns: _Optional[int] = ...) -> None: ...

class RecordPlace(_message.Message):
    __slots__ = ("record", "is_recorded", "is_kept", "groups")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    IS_RECORDED_FIELD_NUMBER: _ClassVar[int]
    IS_KEPT_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    record: int
    is_recorded: bool
    is_kept: bool
    groups: _containers.RepeatedCompositeFieldContainer[GroupPlace]
    def __init__(self, record: _Optional[int] = ..., is_recorded: _Optional[bool] = ..., is_kept: _Optional[bool] = ..., groups: _Optional[_Iterable[_Union[GroupPlace, _Mapping]]] = ...) -> None: ...

class GroupPlace(_message.Message):
    __slots__ = ("group", "rows", "station", "worker", "sent_record", "committed_record")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    STATION_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    SENT_RECORD_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_RECORD_FIELD_NUMBER: _ClassVar[int]
    group: int
    rows: int
    station: Station
    worker: str
    sent_record: int
    committed_record: int
    def __init__(self, group: _Optional[int] = ..., rows: _Optional[int] = ..., station: _Optional[_Union[Station, str]] = ..., worker: _Optional[str] = ..., sent_record: _Optional[int] = ..., committed_record: _Optional[int] = ...) -> None: ...
