"""The wire: core messages <-> bytes, one module per conversation (protos/joinery/v1).

`encode_*` and `decode_*` are pure; what they need to know of the query is its `JoinPlan`. A message of one of our own
parts that cannot be read is a `WireError`, one of a producer or subscriber a `BadMessage`; nothing else is raised,
whatever the bytes.
"""

from joinery.adapters.codec import collect, control, exchange, ingest
from joinery.adapters.codec.errors import BadMessage, WireError

__all__ = ["BadMessage", "WireError", "collect", "control", "exchange", "ingest"]
