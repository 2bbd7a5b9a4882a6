"""The second truth, for large inputs: the rules of docs/design.md §2 as one SQL query, without any code of the first.

Input is one Arrow table per stream: `_position`, `_time`, `_late`, `_record`, and the stream's columns. Output is an
Arrow table of positions, one column per stream of the result, null where null-extended.

How the rules read in SQL:
- A member lies in Time(W) at the latest member's time iff no other member is more than W later than it: one comparison
  per ordered pair.
- Every timely row gets, for each count stream, the number of its rows at or before the row's place (a running count
  over the union of all streams). Of all members the latest has the greatest number, so in Count(N) means: greatest
  number - own number < N.
- With time windows only, matching rows are at most M = max W apart. Then rows are also joined on floor(time / (M + 1)),
  the others standing in three neighbouring buckets, so that a hot key does not make DuckDB look at all its pairs.

Changes of the windows are not supported; the first truth has them.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from tests.oracle.recorded import FOREVER, LATE, POSITION, TIME, Count, Question, Time, WindowChange

_INT64_MIN: Final = -(2**63)


def join(
    question: Question,
    tables: Sequence[pa.Table],
    changes: Sequence[WindowChange] = (),
    final: Sequence[int] | None = None,
) -> pa.Table:
    """Every result of the recorded input, before `filter`, as positions."""
    if changes:
        raise NotImplementedError("the DuckDB oracle knows no changes of windows; ask tests.oracle.naive")
    if question.where is not None and question.where_sql is None:
        raise ValueError("the question has a `where` without its SQL twin `where_sql`")
    watermarks = tuple(final) if final is not None else (FOREVER,) * len(question.streams)
    return _run(_query(question, watermarks), {f"input{stream}": table for stream, table in enumerate(tables)})


def filtered(question: Question, tables: Sequence[pa.Table], results: pa.Table) -> pa.Table:
    """The results whose row passes `filter`."""
    if question.filter is not None and question.filter_sql is None:
        raise ValueError("the question has a `filter` without its SQL twin `filter_sql`")
    if question.filter_sql is None:
        return results
    shown = question.shown
    joins = " ".join(
        f'LEFT JOIN input{stream} AS "{name}" ON "{name}".{POSITION} = results."{name}"'
        for stream, name in enumerate(shown)
    )
    columns = ", ".join(f'results."{name}"' for name in shown)
    inputs = {f"input{stream}": tables[stream] for stream in range(len(shown))}
    return _run(f"SELECT {columns} FROM results {joins} WHERE {question.filter_sql}", {**inputs, "results": results})


def render(question: Question, tables: Sequence[pa.Table], results: pa.Table) -> pa.Table:
    """The result rows that a sink holds; values are taken from the input by position, so DuckDB changes no type."""
    kept = filtered(question, tables, results)
    at = [
        pc.index_in(kept.column(stream), value_set=tables[stream][POSITION], skip_nulls=True)
        for stream in range(len(question.shown))
    ]
    output = question.output()
    return pa.Table.from_arrays(
        [tables[stream][column].take(at[stream]) for _, stream, column in output], names=[name for name, _, _ in output]
    )


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One empty database in memory for all questions; it takes longer to start than to answer a small one."""
    return duckdb.connect()


def _run(query: str, inputs: dict[str, pa.Table]) -> pa.Table:
    with _database().cursor() as connection:
        for name, table in inputs.items():
            connection.register(name, table)
        return connection.sql(query).to_arrow_table()


def _query(question: Question, final: tuple[int, ...]) -> str:
    streams = range(len(question.streams))
    parts = [_timely(question, stream, final) for stream in streams]
    if question.in_order:
        parts += [_counted(question), *(_placed(stream) for stream in streams)]
    parts += [_bucketed(question, stream) for stream in streams]
    parts.append(f"matches AS MATERIALIZED ({_matches(question)})")
    return f"WITH {', '.join(parts)} {_results(question, final)}"


def _timely(question: Question, stream: int, final: tuple[int, ...]) -> str:
    """The rows that take part: not late, and in order only those that every watermark has passed."""
    released = f" AND {TIME} < {min(final)}" if question.in_order else ""
    return f"timely{stream} AS (SELECT * FROM input{stream} WHERE NOT {LATE}{released})"


def _counted(question: Question) -> str:
    """The running counts; as sums, because DuckDB takes quadratic time for count(*) FILTER over a growing frame."""
    streams = range(len(question.streams))
    every = " UNION ALL ".join(f"SELECT {s} AS stream, {POSITION}, {TIME} FROM timely{s}" for s in streams)
    counts = ", ".join(f"(sum((stream = {s})::INT) OVER place)::BIGINT AS _count{s}" for s in streams)
    order = f"place AS (ORDER BY {TIME}, stream, {POSITION} ROWS UNBOUNDED PRECEDING)"
    return f"counted AS MATERIALIZED (SELECT stream, {POSITION}, {counts} FROM ({every}) WINDOW {order})"


def _placed(stream: int) -> str:
    own = f"(SELECT * EXCLUDE (stream) FROM counted WHERE stream = {stream})"
    return f"placed{stream} AS (SELECT * FROM timely{stream} JOIN {own} USING ({POSITION}))"


def _source(question: Question, stream: int) -> str:
    return f"placed{stream}" if question.in_order else f"timely{stream}"


def _bucketed(question: Question, stream: int) -> str:
    """The rows as they are joined: with time windows only, also by their time bucket (see the module's docstring)."""
    source, width = _source(question, stream), _bucket_width(question)
    if width is None:
        return f"rows{stream} AS (SELECT * FROM {source})"
    near = "0" if stream == 0 else "unnest([-1, 0, 1])"
    return f"rows{stream} AS (SELECT *, {TIME} // {width} + {near} AS _bucket FROM {source})"


def _bucket_width(question: Question) -> int | None:
    reach = [window.ns for window in question.windows if isinstance(window, Time)]
    return max(reach) + 1 if len(reach) == len(question.windows) and max(reach) < 2**61 else None


def _matches(question: Question) -> str:
    names = [f'"{name}"' for name in question.streams]
    sources = ", ".join(f"rows{stream} AS {name}" for stream, name in enumerate(names))
    conditions = [
        f'{names[0]}."{first}" = {names[stream]}."{other}"'
        for stream in range(1, len(names))
        for first, other in zip(question.keys[0], question.keys[stream], strict=True)
    ]
    if _bucket_width(question) is not None:
        conditions += [f"{names[0]}._bucket = {name}._bucket" for name in names[1:]]
    conditions += [
        condition
        for stream in range(len(names))
        for other in range(len(names))
        if other != stream and (condition := _held(question, stream, names[stream], names[other]))
    ]
    if question.where_sql is not None:
        conditions.append(f"({question.where_sql})")
    columns = ", ".join(f"{name}.{POSITION} AS {name}" for name in names)
    return f"SELECT {columns} FROM {sources} WHERE {' AND '.join(conditions)}"


def _held(question: Question, stream: int, name: str, other: str) -> str:
    """That the row of a stream is in its window where the other member stands; empty if that is always so."""
    match question.windows[stream]:
        case Time(ns):
            return f"{other}.{TIME} - {name}.{TIME} <= {min(ns, FOREVER)}"
        case Count(n):
            return f"{other}._count{stream} - {name}._count{stream} < {n}"
        case _:
            return ""


def _results(question: Question, final: tuple[int, ...]) -> str:
    first, second = (f'"{name}"' for name in question.streams[:2])
    unmatched = [
        f"SELECT {POSITION} FROM {_source(question, side)} AS r WHERE {_closed(question, side, final)} "
        f"AND NOT EXISTS (FROM matches WHERE matches.{name} = r.{POSITION})"
        for side, name in enumerate((first, second))
    ]
    left = f"SELECT {POSITION} AS {first}, NULL::BIGINT AS {second} FROM ({unmatched[0]})"
    right = f"SELECT NULL::BIGINT AS {first}, {POSITION} AS {second} FROM ({unmatched[1]})"
    pairs = "SELECT * FROM matches"
    match question.type:
        case "inner":
            return pairs
        case "left":
            return f"{pairs} UNION ALL {left}"
        case "right":
            return f"{pairs} UNION ALL {right}"
        case "full":
            return f"{pairs} UNION ALL {left} UNION ALL {right}"
        case "semi":
            return f"SELECT DISTINCT {first} FROM matches"
        case "anti":
            return f"SELECT {first} FROM ({left})"


def _closed(question: Question, side: int, final: tuple[int, ...]) -> str:
    """That nothing which could match the row comes any more; in order, only what is released has come."""
    passed = min(final) if question.in_order else final[1 - side]
    if passed == FOREVER:
        return "TRUE"
    match question.windows[side]:
        case Time(ns):
            return f"{TIME} < {max(passed - ns, _INT64_MIN)}"
        case Count(n):
            return f"(SELECT count(*) FROM timely{side}) - _count{side} >= {n}"
        case _:
            return "FALSE"
