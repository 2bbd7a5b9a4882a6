"""Push rows into a running query and read its results.

    from joinery.client import connect

    with connect("127.0.0.1:7400") as query:
        query.push("orders", orders, end=True)  # a pandas, polars or Arrow frame, or an iterable of them
        query.push("fulfilments", fulfilments, end=True)
        for batch in query.results():
            print(batch.to_pydict())

`connect_async` gives the same, to be awaited. What is sent is kept until it is acknowledged and sent again when a
connection breaks; results go on where they were. What cannot be mended that way is an error: `Unreachable`, `Refused`,
`ResultsGone`, or `BadBatch` for a frame that does not fit its stream.
"""

from joinery.client.asynchronous import AsyncProducer, AsyncQuery, AsyncResults, connect_async
from joinery.client.errors import Refused, ResultsGone, Unreachable
from joinery.client.synchronous import Producer, Query, Results, connect
from joinery.model.errors import BadBatch

__all__ = [
    "AsyncProducer",
    "AsyncQuery",
    "AsyncResults",
    "BadBatch",
    "Producer",
    "Query",
    "Refused",
    "Results",
    "ResultsGone",
    "Unreachable",
    "connect",
    "connect_async",
]
