"""DataFusion: unbounded tables in order of time, which its planner joins by SymmetricHashJoinExec, on two partitions.

CSV is the only kind of file that it takes as unbounded. The clock runs from the start of the plan to the last batch;
every batch, with both payloads, reaches Python.
"""

from time import perf_counter
from typing import Final

import numpy as np
from datafusion import SessionConfig, SessionContext  # type: ignore[import-not-found]

from bench.peers.job import CSV, Input, Outcome, carry_out

PARTITIONS: Final = 2
BATCH_ROWS: Final = 8192

_TABLE: Final = """
    CREATE UNBOUNDED EXTERNAL TABLE s{stream}
    (id BIGINT NOT NULL, ts BIGINT NOT NULL, "key" BIGINT NOT NULL, payload VARCHAR NOT NULL)
    STORED AS CSV WITH ORDER (ts ASC) LOCATION '{path}' OPTIONS ('format.has_header' 'true')"""
_JOIN: Final = """
    SELECT s1.id AS id1, s2.id AS id2, s1."key" AS "key", s1.ts AS ts1, s2.ts AS ts2, s1.payload AS p1, s2.payload AS p2
    FROM s1 JOIN s2 ON s1."key" = s2."key" AND s1.ts >= s2.ts - {window} AND s1.ts <= s2.ts + {window}"""


def join(given: Input) -> Outcome:
    """Both files, once."""
    config = SessionConfig().with_target_partitions(PARTITIONS).with_batch_size(BATCH_ROWS)
    session = SessionContext(config)
    for stream in (1, 2):
        session.sql(_TABLE.format(stream=stream, path=given.path(CSV, stream)))
    query = session.sql(_JOIN.format(window=given.window_us))
    plan = query.execution_plan().display_indent()
    if "SymmetricHashJoinExec" not in plan:
        raise RuntimeError(f"found another plan, wanted SymmetricHashJoinExec:\n{plan}")
    pairs = checksum = 0
    start = perf_counter()
    for batch in query.execute_stream():
        rows = batch.to_pyarrow()
        first, second = (rows.column(name).to_numpy() for name in ("id1", "id2"))
        pairs += rows.num_rows
        checksum += int(np.sum((first * 1000003 + second * 7919) % 1000000007))
    return Outcome(pairs, checksum, perf_counter() - start)


if __name__ == "__main__":
    carry_out(lambda _: join)  # a library: nothing is to be started
