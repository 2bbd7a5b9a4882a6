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
PARTY_UNSPECIFIED: Party
PARTY_COLLECTOR: Party
PARTY_OPERATOR: Party
LOAD_ROLE_UNSPECIFIED: LoadRole
LOAD_ROLE_SUPPLIER: LoadRole
LOAD_ROLE_CONSUMER: LoadRole
LOAD_ROLE_NEUTRAL: LoadRole

class AttendantToGateway(_message.Message):
    __slots__ = ("attending", "collector_hello", "vector", "committed", "finished", "drain", "move_group", "change_spec")
    ATTENDING_FIELD_NUMBER: _ClassVar[int]
    COLLECTOR_HELLO_FIELD_NUMBER: _ClassVar[int]
    VECTOR_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    MOVE_GROUP_FIELD_NUMBER: _ClassVar[int]
    CHANGE_SPEC_FIELD_NUMBER: _ClassVar[int]
    attending: Attending
    collector_hello: CollectorHello
    vector: Vector
    committed: _common_pb2.Committed
    finished: _common_pb2.Finished
    drain: Drain
    move_group: MoveGroup
    change_spec: ChangeSpec
    def __init__(self, attending: _Optional[_Union[Attending, _Mapping]] = ..., collector_hello: _Optional[_Union[CollectorHello, _Mapping]] = ..., vector: _Optional[_Union[Vector, _Mapping]] = ..., committed: _Optional[_Union[_common_pb2.Committed, _Mapping]] = ..., finished: _Optional[_Union[_common_pb2.Finished, _Mapping]] = ..., drain: _Optional[_Union[Drain, _Mapping]] = ..., move_group: _Optional[_Union[MoveGroup, _Mapping]] = ..., change_spec: _Optional[_Union[ChangeSpec, _Mapping]] = ...) -> None: ...

class GatewayToAttendant(_message.Message):
    __slots__ = ("owners", "drained", "cluster_report", "empty", "finished")
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    DRAINED_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_REPORT_FIELD_NUMBER: _ClassVar[int]
    EMPTY_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    owners: Owners
    drained: Drained
    cluster_report: ClusterReport
    empty: Empty
    finished: _common_pb2.Finished
    def __init__(self, owners: _Optional[_Union[Owners, _Mapping]] = ..., drained: _Optional[_Union[Drained, _Mapping]] = ..., cluster_report: _Optional[_Union[ClusterReport, _Mapping]] = ..., empty: _Optional[_Union[Empty, _Mapping]] = ..., finished: _Optional[_Union[_common_pb2.Finished, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("term", "versions", "committed", "seen")
    TERM_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    term: int
    versions: bytes
    committed: bytes
    seen: bytes
    def __init__(self, term: _Optional[int] = ..., versions: _Optional[bytes] = ..., committed: _Optional[bytes] = ..., seen: _Optional[bytes] = ...) -> None: ...

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
