from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Question(_message.Message):
    __slots__ = ("ask_version", "ask_relation", "ask_segments")
    ASK_VERSION_FIELD_NUMBER: _ClassVar[int]
    ASK_RELATION_FIELD_NUMBER: _ClassVar[int]
    ASK_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    ask_version: AskVersion
    ask_relation: AskRelation
    ask_segments: AskSegments
    def __init__(self, ask_version: _Optional[_Union[AskVersion, _Mapping]] = ..., ask_relation: _Optional[_Union[AskRelation, _Mapping]] = ..., ask_segments: _Optional[_Union[AskSegments, _Mapping]] = ...) -> None: ...

class AskVersion(_message.Message):
    __slots__ = ("oldest",)
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    oldest: int
    def __init__(self, oldest: _Optional[int] = ...) -> None: ...

class AskRelation(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class AskSegments(_message.Message):
    __slots__ = ("stamps", "numbers")
    STAMPS_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    stamps: bytes
    numbers: bytes
    def __init__(self, stamps: _Optional[bytes] = ..., numbers: _Optional[bytes] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("version", "relation", "segment", "padding", "bodies")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RELATION_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    PADDING_FIELD_NUMBER: _ClassVar[int]
    BODIES_FIELD_NUMBER: _ClassVar[int]
    version: Version
    relation: Relation
    segment: Segment
    padding: bytes
    bodies: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, version: _Optional[_Union[Version, _Mapping]] = ..., relation: _Optional[_Union[Relation, _Mapping]] = ..., segment: _Optional[_Union[Segment, _Mapping]] = ..., padding: _Optional[bytes] = ..., bodies: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Version(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class Relation(_message.Message):
    __slots__ = ("version", "kind", "lows", "highs", "shifts", "starts", "slots", "firsts", "sizes", "stamps")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LOWS_FIELD_NUMBER: _ClassVar[int]
    HIGHS_FIELD_NUMBER: _ClassVar[int]
    SHIFTS_FIELD_NUMBER: _ClassVar[int]
    STARTS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    FIRSTS_FIELD_NUMBER: _ClassVar[int]
    SIZES_FIELD_NUMBER: _ClassVar[int]
    STAMPS_FIELD_NUMBER: _ClassVar[int]
    version: int
    kind: str
    lows: bytes
    highs: bytes
    shifts: bytes
    starts: bytes
    slots: bytes
    firsts: bytes
    sizes: bytes
    stamps: bytes
    def __init__(self, version: _Optional[int] = ..., kind: _Optional[str] = ..., lows: _Optional[bytes] = ..., highs: _Optional[bytes] = ..., shifts: _Optional[bytes] = ..., starts: _Optional[bytes] = ..., slots: _Optional[bytes] = ..., firsts: _Optional[bytes] = ..., sizes: _Optional[bytes] = ..., stamps: _Optional[bytes] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ("stamp", "number", "rows", "rows_body")
    STAMP_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    ROWS_BODY_FIELD_NUMBER: _ClassVar[int]
    stamp: int
    number: int
    rows: bytes
    rows_body: int
    def __init__(self, stamp: _Optional[int] = ..., number: _Optional[int] = ..., rows: _Optional[bytes] = ..., rows_body: _Optional[int] = ...) -> None: ...
