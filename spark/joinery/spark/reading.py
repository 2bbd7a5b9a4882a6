"""Results of a running query as a streaming frame; an offset is a token of results (docs/client.md).

Rule 1: a token names a place in the order of committed results for ever. So the rows between two tokens are the same
        whenever they are read, as long as they are kept (`spec.results.retain`): a micro-batch that Spark repeats has
        the same rows.
Rule 2: the driver reads ahead and hands the rows to Spark as they came, in Arrow batches. Only what is repeated after a
        restart is read in an executor.
Rule 3: a first read begins with the very first result; if that is no longer kept, it is an error, not a gap. Who wants
        what is left says `.option("start", "oldest")`.
"""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

from joinery.client import Query, Results
from joinery.client.talks import read_token
from joinery.machine.messages import Token
from joinery.model.errors import require
from joinery.spark.options import Options
from joinery.spark.schemas import as_frame

WAIT_S: Final = 0.1
"""For the first rows of a micro-batch."""
OLDEST: Final = "oldest"
Offset = dict[str, str]


class ResultsReader(SimpleDataSourceStreamReader):
    """`spark.readStream.format("joinery")`."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options, self._schema = options, schema
        self._reading: _Reading | None = None

    def initialOffset(self) -> Offset:  # noqa: N802
        """Before the first result (rule 3)."""
        if self._options.start != OLDEST:
            read_token(self._options.start)
        return {"token": self._options.start}

    def read(self, start: Offset) -> tuple[Iterator[Any], Offset]:
        """What has come since, about as much as a micro-batch may hold."""
        if self._reading is None or self._reading.at != start["token"]:
            self._hang_up()
            self._reading = _Reading(self._options, start["token"])
        found, nbytes = list[pa.RecordBatch](), 0
        while nbytes < self._options.max_bytes:
            rows = self._reading.next(0.0 if found else WAIT_S)
            if rows is None:
                break
            found.append(as_frame(self._schema, rows))
            nbytes += rows.nbytes
        return iter(found), {"token": self._reading.at}

    def readBetweenOffsets(self, start: Offset, end: Offset) -> Iterator[Any]:  # noqa: N802
        """The same rows again (rule 1)."""
        reading = _Reading(self._options, start["token"])
        try:
            for rows in reading.until(read_token(end["token"])):
                yield as_frame(self._schema, rows)
        finally:
            reading.close()

    def _hang_up(self) -> None:
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reading": None}


class _Reading:
    """A subscription, and where it stands."""

    def __init__(self, options: Options, at: str) -> None:
        self.at = at
        self._query: Query = options.connect()
        self._results: Results = self._query.results(None if at == OLDEST else at)

    def next(self, seconds: float) -> pa.RecordBatch | None:
        rows = self._results.poll(seconds)
        if rows is not None:
            self.at = self._results.token or self.at
        return rows

    def until(self, end: Token) -> Iterator[pa.RecordBatch]:
        """Every row before this token; deliveries may be cut in other places than they were."""
        last = Token(0, 0) if self.at == OLDEST else read_token(self.at)
        for rows in self._results if _is_before(last, end) else ():
            after = read_token(self._results.token or "")
            commit = after.number if after.row else after.number - 1
            first = last.row if last.number == commit else 0
            if commit == end.number:
                rows = rows.slice(0, max(0, end.row - first))
            yield rows
            last = after
            if not _is_before(last, end):
                return
        require(not _is_before(last, end), f"results ended at {last}, before {end}")

    def close(self) -> None:
        self._query.close()


def _is_before(one: Token, other: Token) -> bool:
    return (one.number, one.row) < (other.number, other.row)
