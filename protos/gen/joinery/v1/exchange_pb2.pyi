from joinery.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WorkerToGateway(_message.Message):
    __slots__ = ("worker_hello", "holding", "credit", "checkpointed", "preloaded", "results_lost", "load", "alive", "pong", "checkpoint_damaged")
    WORKER_HELLO_FIELD_NUMBER: _ClassVar[int]
    HOLDING_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTED_FIELD_NUMBER: _ClassVar[int]
    PRELOADED_FIELD_NUMBER: _ClassVar[int]
    RESULTS_LOST_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_DAMAGED_FIELD_NUMBER: _ClassVar[int]
    worker_hello: _common_pb2.WorkerHello
    holding: Holding
    credit: Credit
    checkpointed: Checkpointed
    preloaded: Preloaded
    results_lost: ResultsLost
    load: Load
    alive: Alive
    pong: _common_pb2.Pong
    checkpoint_damaged: CheckpointDamaged
    def __init__(self, worker_hello: _Optional[_Union[_common_pb2.WorkerHello, _Mapping]] = ..., holding: _Optional[_Union[Holding, _Mapping]] = ..., credit: _Optional[_Union[Credit, _Mapping]] = ..., checkpointed: _Optional[_Union[Checkpointed, _Mapping]] = ..., preloaded: _Optional[_Union[Preloaded, _Mapping]] = ..., results_lost: _Optional[_Union[ResultsLost, _Mapping]] = ..., load: _Optional[_Union[Load, _Mapping]] = ..., alive: _Optional[_Union[Alive, _Mapping]] = ..., pong: _Optional[_Union[_common_pb2.Pong, _Mapping]] = ..., checkpoint_damaged: _Optional[_Union[CheckpointDamaged, _Mapping]] = ...) -> None: ...

class GatewayToWorker(_message.Message):
    __slots__ = ("batch", "assign", "release", "preload", "checkpoint_now", "trim", "finished", "ping", "spec_now", "padding", "bodies")
    BATCH_FIELD_NUMBER: _ClassVar[int]
    ASSIGN_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    PRELOAD_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_NOW_FIELD_NUMBER: _ClassVar[int]
    TRIM_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    SPEC_NOW_FIELD_NUMBER: _ClassVar[int]
    PADDING_FIELD_NUMBER: _ClassVar[int]
    BODIES_FIELD_NUMBER: _ClassVar[int]
    batch: Batch
    assign: Assign
    release: Release
    preload: Preload
    checkpoint_now: CheckpointNow
    trim: Trim
    finished: _common_pb2.Finished
    ping: _common_pb2.Ping
    spec_now: _common_pb2.SpecNow
    padding: bytes
    bodies: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, batch: _Optional[_Union[Batch, _Mapping]] = ..., assign: _Optional[_Union[Assign, _Mapping]] = ..., release: _Optional[_Union[Release, _Mapping]] = ..., preload: _Optional[_Union[Preload, _Mapping]] = ..., checkpoint_now: _Optional[_Union[CheckpointNow, _Mapping]] = ..., trim: _Optional[_Union[Trim, _Mapping]] = ..., finished: _Optional[_Union[_common_pb2.Finished, _Mapping]] = ..., ping: _Optional[_Union[_common_pb2.Ping, _Mapping]] = ..., spec_now: _Optional[_Union[_common_pb2.SpecNow, _Mapping]] = ..., padding: _Optional[bytes] = ..., bodies: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Batch(_message.Message):
    __slots__ = ("term", "map_version", "groups", "after", "upto", "marks", "streams", "changes", "credit_bytes", "stamp_ns", "slot_ns", "table")
    TERM_FIELD_NUMBER: _ClassVar[int]
    MAP_VERSION_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    UPTO_FIELD_NUMBER: _ClassVar[int]
    MARKS_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    CREDIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    STAMP_NS_FIELD_NUMBER: _ClassVar[int]
    SLOT_NS_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    term: int
    map_version: int
    groups: bytes
    after: bytes
    upto: int
    marks: _common_pb2.Marks
    streams: _containers.RepeatedCompositeFieldContainer[StreamRows]
    changes: _containers.RepeatedCompositeFieldContainer[_common_pb2.SpecChange]
    credit_bytes: int
    stamp_ns: int
    slot_ns: int
    table: int
    def __init__(self, term: _Optional[int] = ..., map_version: _Optional[int] = ..., groups: _Optional[bytes] = ..., after: _Optional[bytes] = ..., upto: _Optional[int] = ..., marks: _Optional[_Union[_common_pb2.Marks, _Mapping]] = ..., streams: _Optional[_Iterable[_Union[StreamRows, _Mapping]]] = ..., changes: _Optional[_Iterable[_Union[_common_pb2.SpecChange, _Mapping]]] = ..., credit_bytes: _Optional[int] = ..., stamp_ns: _Optional[int] = ..., slot_ns: _Optional[int] = ..., table: _Optional[int] = ...) -> None: ...

class StreamRows(_message.Message):
    __slots__ = ("stream", "rows_body", "places", "times_ns", "hashes_body", "keyed_bits_body", "late_bits_body", "ranks", "counts_rows", "step_ends", "step_stamps_ns")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    ROWS_BODY_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    TIMES_NS_FIELD_NUMBER: _ClassVar[int]
    HASHES_BODY_FIELD_NUMBER: _ClassVar[int]
    KEYED_BITS_BODY_FIELD_NUMBER: _ClassVar[int]
    LATE_BITS_BODY_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_ROWS_FIELD_NUMBER: _ClassVar[int]
    STEP_ENDS_FIELD_NUMBER: _ClassVar[int]
    STEP_STAMPS_NS_FIELD_NUMBER: _ClassVar[int]
    stream: int
    rows_body: int
    places: _common_pb2.Column
    times_ns: _common_pb2.Column
    hashes_body: int
    keyed_bits_body: int
    late_bits_body: int
    ranks: _common_pb2.Column
    counts_rows: _containers.RepeatedCompositeFieldContainer[_common_pb2.Column]
    step_ends: bytes
    step_stamps_ns: bytes
    def __init__(self, stream: _Optional[int] = ..., rows_body: _Optional[int] = ..., places: _Optional[_Union[_common_pb2.Column, _Mapping]] = ..., times_ns: _Optional[_Union[_common_pb2.Column, _Mapping]] = ..., hashes_body: _Optional[int] = ..., keyed_bits_body: _Optional[int] = ..., late_bits_body: _Optional[int] = ..., ranks: _Optional[_Union[_common_pb2.Column, _Mapping]] = ..., counts_rows: _Optional[_Iterable[_Union[_common_pb2.Column, _Mapping]]] = ..., step_ends: _Optional[bytes] = ..., step_stamps_ns: _Optional[bytes] = ...) -> None: ...

class Assign(_message.Message):
    __slots__ = ("term", "groups", "versions", "silent", "seen", "changes")
    TERM_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    SILENT_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    term: int
    groups: bytes
    versions: bytes
    silent: bytes
    seen: bytes
    changes: _containers.RepeatedCompositeFieldContainer[_common_pb2.SpecChange]
    def __init__(self, term: _Optional[int] = ..., groups: _Optional[bytes] = ..., versions: _Optional[bytes] = ..., silent: _Optional[bytes] = ..., seen: _Optional[bytes] = ..., changes: _Optional[_Iterable[_Union[_common_pb2.SpecChange, _Mapping]]] = ...) -> None: ...

class Release(_message.Message):
    __slots__ = ("term", "groups")
    TERM_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    term: int
    groups: bytes
    def __init__(self, term: _Optional[int] = ..., groups: _Optional[bytes] = ...) -> None: ...

class Preload(_message.Message):
    __slots__ = ("term", "groups")
    TERM_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    term: int
    groups: bytes
    def __init__(self, term: _Optional[int] = ..., groups: _Optional[bytes] = ...) -> None: ...

class CheckpointNow(_message.Message):
    __slots__ = ("term", "groups", "whole")
    TERM_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    term: int
    groups: bytes
    whole: bool
    def __init__(self, term: _Optional[int] = ..., groups: _Optional[bytes] = ..., whole: _Optional[bool] = ...) -> None: ...

class Trim(_message.Message):
    __slots__ = ("term", "groups", "tags")
    TERM_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    term: int
    groups: bytes
    tags: bytes
    def __init__(self, term: _Optional[int] = ..., groups: _Optional[bytes] = ..., tags: _Optional[bytes] = ...) -> None: ...

class Holding(_message.Message):
    __slots__ = ("holdings",)
    HOLDINGS_FIELD_NUMBER: _ClassVar[int]
    holdings: _common_pb2.Holdings
    def __init__(self, holdings: _Optional[_Union[_common_pb2.Holdings, _Mapping]] = ...) -> None: ...

class Credit(_message.Message):
    __slots__ = ("credit_bytes",)
    CREDIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    credit_bytes: int
    def __init__(self, credit_bytes: _Optional[int] = ...) -> None: ...

class Checkpointed(_message.Message):
    __slots__ = ("groups", "versions", "tags")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    groups: bytes
    versions: bytes
    tags: bytes
    def __init__(self, groups: _Optional[bytes] = ..., versions: _Optional[bytes] = ..., tags: _Optional[bytes] = ...) -> None: ...

class Preloaded(_message.Message):
    __slots__ = ("groups", "tags")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    groups: bytes
    tags: bytes
    def __init__(self, groups: _Optional[bytes] = ..., tags: _Optional[bytes] = ...) -> None: ...

class CheckpointDamaged(_message.Message):
    __slots__ = ("group", "version", "tag", "key", "reason", "rows")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    group: int
    version: int
    tag: int
    key: str
    reason: str
    rows: int
    def __init__(self, group: _Optional[int] = ..., version: _Optional[int] = ..., tag: _Optional[int] = ..., key: _Optional[str] = ..., reason: _Optional[str] = ..., rows: _Optional[int] = ...) -> None: ...

class ResultsLost(_message.Message):
    __slots__ = ("groups", "versions")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    groups: bytes
    versions: bytes
    def __init__(self, groups: _Optional[bytes] = ..., versions: _Optional[bytes] = ...) -> None: ...

class Load(_message.Message):
    __slots__ = ("report",)
    REPORT_FIELD_NUMBER: _ClassVar[int]
    report: _common_pb2.LoadReport
    def __init__(self, report: _Optional[_Union[_common_pb2.LoadReport, _Mapping]] = ...) -> None: ...

class Alive(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
