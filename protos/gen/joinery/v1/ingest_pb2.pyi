from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProducerToGateway(_message.Message):
    __slots__ = ("open", "push", "describe", "padding", "bodies")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    PUSH_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_FIELD_NUMBER: _ClassVar[int]
    PADDING_FIELD_NUMBER: _ClassVar[int]
    BODIES_FIELD_NUMBER: _ClassVar[int]
    open: Open
    push: Push
    describe: Describe
    padding: bytes
    bodies: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, open: _Optional[_Union[Open, _Mapping]] = ..., push: _Optional[_Union[Push, _Mapping]] = ..., describe: _Optional[_Union[Describe, _Mapping]] = ..., padding: _Optional[bytes] = ..., bodies: _Optional[_Iterable[bytes]] = ...) -> None: ...

class GatewayToProducer(_message.Message):
    __slots__ = ("opened", "acknowledge", "refuse", "description")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    REFUSE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    opened: Opened
    acknowledge: Acknowledge
    refuse: Refuse
    description: Description
    def __init__(self, opened: _Optional[_Union[Opened, _Mapping]] = ..., acknowledge: _Optional[_Union[Acknowledge, _Mapping]] = ..., refuse: _Optional[_Union[Refuse, _Mapping]] = ..., description: _Optional[_Union[Description, _Mapping]] = ...) -> None: ...

class Open(_message.Message):
    __slots__ = ("stream", "name")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    stream: int
    name: str
    def __init__(self, stream: _Optional[int] = ..., name: _Optional[str] = ...) -> None: ...

class Opened(_message.Message):
    __slots__ = ("term", "producer", "session", "expected_sequence", "ended")
    TERM_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    term: int
    producer: str
    session: int
    expected_sequence: int
    ended: bool
    def __init__(self, term: _Optional[int] = ..., producer: _Optional[str] = ..., session: _Optional[int] = ..., expected_sequence: _Optional[int] = ..., ended: _Optional[bool] = ...) -> None: ...

class Push(_message.Message):
    __slots__ = ("session", "sequence", "next_sequence", "checksum", "end", "arrow_schema")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    NEXT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    ARROW_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    session: int
    sequence: int
    next_sequence: int
    checksum: int
    end: bool
    arrow_schema: bytes
    def __init__(self, session: _Optional[int] = ..., sequence: _Optional[int] = ..., next_sequence: _Optional[int] = ..., checksum: _Optional[int] = ..., end: _Optional[bool] = ..., arrow_schema: _Optional[bytes] = ...) -> None: ...

class Acknowledge(_message.Message):
    __slots__ = ("sequence", "record")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    record: int
    def __init__(self, sequence: _Optional[int] = ..., record: _Optional[int] = ...) -> None: ...

class Refuse(_message.Message):
    __slots__ = ("sequence", "reason", "expected_sequence")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    reason: str
    expected_sequence: int
    def __init__(self, sequence: _Optional[int] = ..., reason: _Optional[str] = ..., expected_sequence: _Optional[int] = ...) -> None: ...

class Describe(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Description(_message.Message):
    __slots__ = ("streams", "results_schema", "results_address")
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    RESULTS_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    streams: _containers.RepeatedCompositeFieldContainer[StreamDescription]
    results_schema: bytes
    results_address: str
    def __init__(self, streams: _Optional[_Iterable[_Union[StreamDescription, _Mapping]]] = ..., results_schema: _Optional[bytes] = ..., results_address: _Optional[str] = ...) -> None: ...

class StreamDescription(_message.Message):
    __slots__ = ("name", "arrow_schema", "key_columns", "time_column", "time_unit_ns")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARROW_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    KEY_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    TIME_COLUMN_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIT_NS_FIELD_NUMBER: _ClassVar[int]
    name: str
    arrow_schema: bytes
    key_columns: _containers.RepeatedScalarFieldContainer[str]
    time_column: str
    time_unit_ns: int
    def __init__(self, name: _Optional[str] = ..., arrow_schema: _Optional[bytes] = ..., key_columns: _Optional[_Iterable[str]] = ..., time_column: _Optional[str] = ..., time_unit_ns: _Optional[int] = ...) -> None: ...
