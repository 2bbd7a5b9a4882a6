from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProducerToGateway(_message.Message):
    __slots__ = ("open", "push", "padding", "bodies")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    PUSH_FIELD_NUMBER: _ClassVar[int]
    PADDING_FIELD_NUMBER: _ClassVar[int]
    BODIES_FIELD_NUMBER: _ClassVar[int]
    open: Open
    push: Push
    padding: bytes
    bodies: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, open: _Optional[_Union[Open, _Mapping]] = ..., push: _Optional[_Union[Push, _Mapping]] = ..., padding: _Optional[bytes] = ..., bodies: _Optional[_Iterable[bytes]] = ...) -> None: ...

class GatewayToProducer(_message.Message):
    __slots__ = ("opened", "acknowledge", "refuse")
    OPENED_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    REFUSE_FIELD_NUMBER: _ClassVar[int]
    opened: Opened
    acknowledge: Acknowledge
    refuse: Refuse
    def __init__(self, opened: _Optional[_Union[Opened, _Mapping]] = ..., acknowledge: _Optional[_Union[Acknowledge, _Mapping]] = ..., refuse: _Optional[_Union[Refuse, _Mapping]] = ...) -> None: ...

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
