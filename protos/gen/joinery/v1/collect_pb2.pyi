from joinery.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ResultKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESULT_KIND_UNSPECIFIED: _ClassVar[ResultKind]
    RESULT_KIND_RESULT: _ClassVar[ResultKind]
    RESULT_KIND_LATE: _ClassVar[ResultKind]
RESULT_KIND_UNSPECIFIED: ResultKind
RESULT_KIND_RESULT: ResultKind
RESULT_KIND_LATE: ResultKind

class WorkerToCollector(_message.Message):
    __slots__ = ("worker_hello", "results", "padding", "bodies")
    WORKER_HELLO_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    PADDING_FIELD_NUMBER: _ClassVar[int]
    BODIES_FIELD_NUMBER: _ClassVar[int]
    worker_hello: _common_pb2.WorkerHello
    results: Results
    padding: bytes
    bodies: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, worker_hello: _Optional[_Union[_common_pb2.WorkerHello, _Mapping]] = ..., results: _Optional[_Union[Results, _Mapping]] = ..., padding: _Optional[bytes] = ..., bodies: _Optional[_Iterable[bytes]] = ...) -> None: ...

class CollectorToWorker(_message.Message):
    __slots__ = ("resume", "committed")
    RESUME_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    resume: Resume
    committed: _common_pb2.Committed
    def __init__(self, resume: _Optional[_Union[Resume, _Mapping]] = ..., committed: _Optional[_Union[_common_pb2.Committed, _Mapping]] = ...) -> None: ...

class SubscriberToCollector(_message.Message):
    __slots__ = ("subscribe", "grant")
    SUBSCRIBE_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    subscribe: Subscribe
    grant: Grant
    def __init__(self, subscribe: _Optional[_Union[Subscribe, _Mapping]] = ..., grant: _Optional[_Union[Grant, _Mapping]] = ...) -> None: ...

class CollectorToSubscriber(_message.Message):
    __slots__ = ("delivery", "token_too_old", "ended", "padding", "bodies")
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    TOKEN_TOO_OLD_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    PADDING_FIELD_NUMBER: _ClassVar[int]
    BODIES_FIELD_NUMBER: _ClassVar[int]
    delivery: Delivery
    token_too_old: TokenTooOld
    ended: Ended
    padding: bytes
    bodies: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, delivery: _Optional[_Union[Delivery, _Mapping]] = ..., token_too_old: _Optional[_Union[TokenTooOld, _Mapping]] = ..., ended: _Optional[_Union[Ended, _Mapping]] = ..., padding: _Optional[bytes] = ..., bodies: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Resume(_message.Message):
    __slots__ = ("term", "taken")
    TERM_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    term: int
    taken: bytes
    def __init__(self, term: _Optional[int] = ..., taken: _Optional[bytes] = ...) -> None: ...

class Results(_message.Message):
    __slots__ = ("groups", "after", "versions", "upto", "marks", "part", "last", "parts", "produced_ns", "arrival_stamps_ns", "arrival_rows")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    UPTO_FIELD_NUMBER: _ClassVar[int]
    MARKS_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    PRODUCED_NS_FIELD_NUMBER: _ClassVar[int]
    ARRIVAL_STAMPS_NS_FIELD_NUMBER: _ClassVar[int]
    ARRIVAL_ROWS_FIELD_NUMBER: _ClassVar[int]
    groups: bytes
    after: bytes
    versions: bytes
    upto: int
    marks: _common_pb2.Marks
    part: int
    last: bool
    parts: _containers.RepeatedCompositeFieldContainer[ResultPart]
    produced_ns: int
    arrival_stamps_ns: bytes
    arrival_rows: bytes
    def __init__(self, groups: _Optional[bytes] = ..., after: _Optional[bytes] = ..., versions: _Optional[bytes] = ..., upto: _Optional[int] = ..., marks: _Optional[_Union[_common_pb2.Marks, _Mapping]] = ..., part: _Optional[int] = ..., last: _Optional[bool] = ..., parts: _Optional[_Iterable[_Union[ResultPart, _Mapping]]] = ..., produced_ns: _Optional[int] = ..., arrival_stamps_ns: _Optional[bytes] = ..., arrival_rows: _Optional[bytes] = ...) -> None: ...

class ResultPart(_message.Message):
    __slots__ = ("kind", "stream", "rows_body", "groups_body", "times_ns")
    KIND_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    ROWS_BODY_FIELD_NUMBER: _ClassVar[int]
    GROUPS_BODY_FIELD_NUMBER: _ClassVar[int]
    TIMES_NS_FIELD_NUMBER: _ClassVar[int]
    kind: ResultKind
    stream: int
    rows_body: int
    groups_body: int
    times_ns: _common_pb2.Column
    def __init__(self, kind: _Optional[_Union[ResultKind, str]] = ..., stream: _Optional[int] = ..., rows_body: _Optional[int] = ..., groups_body: _Optional[int] = ..., times_ns: _Optional[_Union[_common_pb2.Column, _Mapping]] = ...) -> None: ...

class Token(_message.Message):
    __slots__ = ("number", "row")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    number: int
    row: int
    def __init__(self, number: _Optional[int] = ..., row: _Optional[int] = ...) -> None: ...

class Subscribe(_message.Message):
    __slots__ = ("token", "credit_deliveries", "only_kept")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    CREDIT_DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    ONLY_KEPT_FIELD_NUMBER: _ClassVar[int]
    token: Token
    credit_deliveries: int
    only_kept: bool
    def __init__(self, token: _Optional[_Union[Token, _Mapping]] = ..., credit_deliveries: _Optional[int] = ..., only_kept: _Optional[bool] = ...) -> None: ...

class Delivery(_message.Message):
    __slots__ = ("token", "arrow_schema", "parts")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    ARROW_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    token: Token
    arrow_schema: bytes
    parts: _containers.RepeatedCompositeFieldContainer[ResultPart]
    def __init__(self, token: _Optional[_Union[Token, _Mapping]] = ..., arrow_schema: _Optional[bytes] = ..., parts: _Optional[_Iterable[_Union[ResultPart, _Mapping]]] = ...) -> None: ...

class Grant(_message.Message):
    __slots__ = ("credit_deliveries",)
    CREDIT_DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    credit_deliveries: int
    def __init__(self, credit_deliveries: _Optional[int] = ...) -> None: ...

class TokenTooOld(_message.Message):
    __slots__ = ("oldest",)
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    oldest: Token
    def __init__(self, oldest: _Optional[_Union[Token, _Mapping]] = ...) -> None: ...

class Ended(_message.Message):
    __slots__ = ("token", "arrow_schema")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    ARROW_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    token: Token
    arrow_schema: bytes
    def __init__(self, token: _Optional[_Union[Token, _Mapping]] = ..., arrow_schema: _Optional[bytes] = ...) -> None: ...
