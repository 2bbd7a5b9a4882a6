"""Ids are types: a partition-group can never be passed where a worker is meant."""

from typing import NewType

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
