from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Marks(_message.Message):
    __slots__ = ("watermarks_ns", "released_rows")
    WATERMARKS_NS_FIELD_NUMBER: _ClassVar[int]
    RELEASED_ROWS_FIELD_NUMBER: _ClassVar[int]
    watermarks_ns: _containers.RepeatedScalarFieldContainer[int]
    released_rows: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, watermarks_ns: _Optional[_Iterable[int]] = ..., released_rows: _Optional[_Iterable[int]] = ...) -> None: ...

class Window(_message.Message):
    __slots__ = ("time_ns", "count_rows")
    TIME_NS_FIELD_NUMBER: _ClassVar[int]
    COUNT_ROWS_FIELD_NUMBER: _ClassVar[int]
    time_ns: int
    count_rows: int
    def __init__(self, time_ns: _Optional[int] = ..., count_rows: _Optional[int] = ...) -> None: ...

class SpecChange(_message.Message):
    __slots__ = ("record", "version", "windows", "lateness_ns", "idle_timeout_ns", "floors", "upto_serials")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    LATENESS_NS_FIELD_NUMBER: _ClassVar[int]
    IDLE_TIMEOUT_NS_FIELD_NUMBER: _ClassVar[int]
    FLOORS_FIELD_NUMBER: _ClassVar[int]
    UPTO_SERIALS_FIELD_NUMBER: _ClassVar[int]
    record: int
    version: int
    windows: _containers.RepeatedCompositeFieldContainer[Window]
    lateness_ns: _containers.RepeatedScalarFieldContainer[int]
    idle_timeout_ns: _containers.RepeatedScalarFieldContainer[int]
    floors: _containers.RepeatedScalarFieldContainer[int]
    upto_serials: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, record: _Optional[int] = ..., version: _Optional[int] = ..., windows: _Optional[_Iterable[_Union[Window, _Mapping]]] = ..., lateness_ns: _Optional[_Iterable[int]] = ..., idle_timeout_ns: _Optional[_Iterable[int]] = ..., floors: _Optional[_Iterable[int]] = ..., upto_serials: _Optional[_Iterable[int]] = ...) -> None: ...

class Column(_message.Message):
    __slots__ = ("base", "width_bytes", "numbers_body")
    BASE_FIELD_NUMBER: _ClassVar[int]
    WIDTH_BYTES_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_BODY_FIELD_NUMBER: _ClassVar[int]
    base: int
    width_bytes: int
    numbers_body: int
    def __init__(self, base: _Optional[int] = ..., width_bytes: _Optional[int] = ..., numbers_body: _Optional[int] = ...) -> None: ...

class Holdings(_message.Message):
    __slots__ = ("groups", "versions", "tags", "received", "silent", "seen")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    SILENT_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    groups: bytes
    versions: bytes
    tags: bytes
    received: bytes
    silent: bytes
    seen: bytes
    def __init__(self, groups: _Optional[bytes] = ..., versions: _Optional[bytes] = ..., tags: _Optional[bytes] = ..., received: _Optional[bytes] = ..., silent: _Optional[bytes] = ..., seen: _Optional[bytes] = ...) -> None: ...

class WorkerHello(_message.Message):
    __slots__ = ("worker", "instance", "holdings", "buffered_bytes", "buffered_messages")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    HOLDINGS_FIELD_NUMBER: _ClassVar[int]
    BUFFERED_BYTES_FIELD_NUMBER: _ClassVar[int]
    BUFFERED_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    worker: str
    instance: str
    holdings: Holdings
    buffered_bytes: int
    buffered_messages: int
    def __init__(self, worker: _Optional[str] = ..., instance: _Optional[str] = ..., holdings: _Optional[_Union[Holdings, _Mapping]] = ..., buffered_bytes: _Optional[int] = ..., buffered_messages: _Optional[int] = ...) -> None: ...

class Committed(_message.Message):
    __slots__ = ("term", "number", "groups", "upto", "tally", "totals")
    TERM_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    UPTO_FIELD_NUMBER: _ClassVar[int]
    TALLY_FIELD_NUMBER: _ClassVar[int]
    TOTALS_FIELD_NUMBER: _ClassVar[int]
    term: int
    number: int
    groups: bytes
    upto: bytes
    tally: Tally
    totals: Totals
    def __init__(self, term: _Optional[int] = ..., number: _Optional[int] = ..., groups: _Optional[bytes] = ..., upto: _Optional[bytes] = ..., tally: _Optional[_Union[Tally, _Mapping]] = ..., totals: _Optional[_Union[Totals, _Mapping]] = ...) -> None: ...

class Totals(_message.Message):
    __slots__ = ("results_rows", "late_rows")
    RESULTS_ROWS_FIELD_NUMBER: _ClassVar[int]
    LATE_ROWS_FIELD_NUMBER: _ClassVar[int]
    results_rows: int
    late_rows: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, results_rows: _Optional[int] = ..., late_rows: _Optional[_Iterable[int]] = ...) -> None: ...

class Tally(_message.Message):
    __slots__ = ("results_rows", "late_rows", "produced", "delivered")
    RESULTS_ROWS_FIELD_NUMBER: _ClassVar[int]
    LATE_ROWS_FIELD_NUMBER: _ClassVar[int]
    PRODUCED_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    results_rows: int
    late_rows: int
    produced: Delays
    delivered: Delays
    def __init__(self, results_rows: _Optional[int] = ..., late_rows: _Optional[int] = ..., produced: _Optional[_Union[Delays, _Mapping]] = ..., delivered: _Optional[_Union[Delays, _Mapping]] = ...) -> None: ...

class Delays(_message.Message):
    __slots__ = ("buckets", "rows", "total_ns", "max_ns")
    BUCKETS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NS_FIELD_NUMBER: _ClassVar[int]
    MAX_NS_FIELD_NUMBER: _ClassVar[int]
    buckets: bytes
    rows: bytes
    total_ns: float
    max_ns: int
    def __init__(self, buckets: _Optional[bytes] = ..., rows: _Optional[bytes] = ..., total_ns: _Optional[float] = ..., max_ns: _Optional[int] = ...) -> None: ...

class Ping(_message.Message):
    __slots__ = ("sent_ns", "ahead_ns")
    SENT_NS_FIELD_NUMBER: _ClassVar[int]
    AHEAD_NS_FIELD_NUMBER: _ClassVar[int]
    sent_ns: int
    ahead_ns: int
    def __init__(self, sent_ns: _Optional[int] = ..., ahead_ns: _Optional[int] = ...) -> None: ...

class Pong(_message.Message):
    __slots__ = ("sent_ns", "clock_ns")
    SENT_NS_FIELD_NUMBER: _ClassVar[int]
    CLOCK_NS_FIELD_NUMBER: _ClassVar[int]
    sent_ns: int
    clock_ns: int
    def __init__(self, sent_ns: _Optional[int] = ..., clock_ns: _Optional[int] = ...) -> None: ...

class Finished(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LoadReport(_message.Message):
    __slots__ = ("worker", "occupancy_share", "busy_share", "memory_bytes", "memory_limit_bytes", "back_pressure", "groups", "group_weights", "group_memory_bytes", "elapsed_s", "cpu_s", "idle_s", "comm_s", "comparisons", "demand_share")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    OCCUPANCY_SHARE_FIELD_NUMBER: _ClassVar[int]
    BUSY_SHARE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    BACK_PRESSURE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    GROUP_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    GROUP_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_S_FIELD_NUMBER: _ClassVar[int]
    CPU_S_FIELD_NUMBER: _ClassVar[int]
    IDLE_S_FIELD_NUMBER: _ClassVar[int]
    COMM_S_FIELD_NUMBER: _ClassVar[int]
    COMPARISONS_FIELD_NUMBER: _ClassVar[int]
    DEMAND_SHARE_FIELD_NUMBER: _ClassVar[int]
    worker: str
    occupancy_share: float
    busy_share: float
    memory_bytes: int
    memory_limit_bytes: int
    back_pressure: bool
    groups: bytes
    group_weights: bytes
    group_memory_bytes: bytes
    elapsed_s: float
    cpu_s: float
    idle_s: float
    comm_s: float
    comparisons: int
    demand_share: float
    def __init__(self, worker: _Optional[str] = ..., occupancy_share: _Optional[float] = ..., busy_share: _Optional[float] = ..., memory_bytes: _Optional[int] = ..., memory_limit_bytes: _Optional[int] = ..., back_pressure: _Optional[bool] = ..., groups: _Optional[bytes] = ..., group_weights: _Optional[bytes] = ..., group_memory_bytes: _Optional[bytes] = ..., elapsed_s: _Optional[float] = ..., cpu_s: _Optional[float] = ..., idle_s: _Optional[float] = ..., comm_s: _Optional[float] = ..., comparisons: _Optional[int] = ..., demand_share: _Optional[float] = ...) -> None: ...

class SpecNow(_message.Message):
    __slots__ = ("term", "spec_json")
    TERM_FIELD_NUMBER: _ClassVar[int]
    SPEC_JSON_FIELD_NUMBER: _ClassVar[int]
    term: int
    spec_json: str
    def __init__(self, term: _Optional[int] = ..., spec_json: _Optional[str] = ...) -> None: ...
