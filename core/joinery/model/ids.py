"""Ids are types: a partition-group can never be passed where a worker is meant."""

from typing import Final, NewType

StreamIndex = NewType("StreamIndex", int)
"""Place of a stream in the spec: 0, 1 ..."""
GroupId = NewType("GroupId", int)
"""A partition-group: 0 .. n_part - 1."""
MiniGroupId = NewType("MiniGroupId", int)
"""A mini-group (bucket of the extendible hash) inside one group."""
WorkerId = NewType("WorkerId", str)
ProducerId = NewType("ProducerId", str)
RecordNo = NewType("RecordNo", int)
"""Number of a record of the query's log; a tag is one too."""
MapVersion = NewType("MapVersion", int)
"""Raised at every change of the partition map."""
Term = NewType("Term", int)
"""Of the gateway and of the collector: raised at every start."""
Peer = NewType("Peer", str)
"""Who is at the other end of a connection: GATEWAY, COLLECTOR, OPERATOR, a worker, a producer or a subscriber."""

GATEWAY: Final = Peer("gateway")
COLLECTOR: Final = Peer("collector")
OPERATOR: Final = Peer("operator")
_UNNAMED: Final = "unnamed-"


def unnamed(which: str) -> ProducerId:
    """The id of a producer to whom nobody gave a name."""
    return ProducerId(f"{_UNNAMED}{which}")


def is_unnamed(producer: ProducerId) -> bool:
    """Whether nobody can go on under this name."""
    return producer.startswith(_UNNAMED)
