"""`joinery run --sql`: a SELECT over files becomes a query file, as if somebody had written it.

Rule 1: a stream is the file of that name in this folder (orders: orders.parquet, .csv, .ndjson), or what --source says.
Rule 2: its columns and their types are those of the file.
Rule 3: its time is --time, else its only column of type timestamp, else the rows' arrival. Rows may be out of order by
        --lateness; those that are more are late: left out, and counted.
Rule 4: whatever is wrong is told in these words (`sql_words`), not in those of a query file, which nobody wrote.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import yaml
from pyarrow import csv, json, parquet
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from joinery.cli.leftovers import scratch
from joinery.cli.sql_words import in_words_of_sql
from joinery.model.complaints import did_you_mean
from joinery.model.errors import BadExpression, UserMustAct
from joinery.model.sql import plain_text
from joinery.model.types import PLAIN

_ENDINGS: Final = (".parquet", ".csv", ".ndjson")


@dataclass(frozen=True, slots=True)
class Said:
    """A statement, and the flags beside it."""

    sql: str
    sources: Sequence[str] = ()
    times: Sequence[str] = ()
    unit: str | None = None
    lateness: Sequence[str] = ()
    out: Path | None = None


@contextmanager
def query_file_of(said: Said) -> Iterator[Path]:
    """The file of a query that says this; complaints about it are told in its words."""
    paths = dict(_pair("--source", one, "orders=data/orders.parquet") for one in said.sources)
    times = dict(_for_all("--time", one, "ts") for one in said.times)
    lateness = dict(_for_all("--lateness", one, "5s") for one in said.lateness)
    names = _tables(said.sql)
    for flag, given in (("--source", paths), ("--time", times), ("--lateness", lateness)):
        _check_names(flag, given, names)
    streams = [_stream(name, paths, times, said.unit, lateness) for name in names]
    sink = {"file": {"path": str(said.out.resolve())}} if said.out is not None else {"stdout": {}}
    query = {
        "apiVersion": "joinery.dev/v1alpha1",
        "kind": "JoinQuery",
        "metadata": {"name": "sql"},
        "spec": {"streams": streams, "sql": said.sql, "sinks": [sink]},
    }
    with scratch("sql") as folder, in_words_of_sql(names):
        path = folder / "query.yaml"
        path.write_text(yaml.safe_dump(query, sort_keys=False, allow_unicode=True))
        yield path


def _tables(text: str) -> list[str]:
    """The streams of a statement; what is wrong with it is said when the query is read."""
    try:
        return list(dict.fromkeys(table.name for table in parse_one(plain_text(text)).find_all(exp.Table)))
    except (SqlglotError, BadExpression):
        return []


def _pair(flag: str, text: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise UserMustAct(f"{flag}: found {text}, wanted NAME=VALUE; write {flag} {example}")
    return name, value


def _for_all(flag: str, text: str, example: str) -> tuple[str, str]:
    """`ts` for every stream, or `orders=ts`."""
    return _pair(flag, text, f"orders={example}") if "=" in text else ("", text)


def _check_names(flag: str, given: dict[str, str], names: Sequence[str]) -> None:
    """A flag for a stream that is not in the statement would be without effect."""
    for name in given:
        if name and names and name not in names:
            remedy = did_you_mean(name, names) or "correct the name, or leave the flag out"
            raise UserMustAct(f"{flag}: found {name}, wanted a stream of the statement: {', '.join(names)}; {remedy}")


def _stream(
    name: str, paths: dict[str, str], times: dict[str, str], unit: str | None, lateness: dict[str, str]
) -> dict[str, Any]:
    path = Path(paths[name]) if name in paths else _beside(name)
    schema = _schema(path)
    made: dict[str, Any] = {"name": name, "schema": {one.name: _type(path, one) for one in schema}}
    stamps = [one.name for one in schema if pa.types.is_timestamp(one.type)]
    column = times.get(name) or times.get("") or (stamps[0] if len(stamps) == 1 else None)
    if column is not None:
        made["time"] = {"column": column}
        if column in schema.names and pa.types.is_integer(schema.field(column).type):
            made["time"]["unit"] = unit or "us"
    if (late := lateness.get(name) or lateness.get("")) is not None:
        if column is None:
            raise UserMustAct(f"--lateness: found no time column of {name}, wanted one; say --time {name}=COLUMN")
        made["time"]["lateness"] = late
    made["source"] = {"file": {"path": str(path.resolve())}}
    return made


def _beside(name: str) -> Path:
    there = [path for ending in _ENDINGS if (path := Path(f"{name}{ending}")).is_file()]
    if len(there) > 1:
        found = " and ".join(map(str, there))
        raise UserMustAct(f"--sql: found {found} for {name}, wanted one file; say --source {name}={there[0]}")
    if there:
        return there[0]
    wanted = ", ".join(f"{name}{ending}" for ending in _ENDINGS)
    raise UserMustAct(f"--sql: found no file for {name} here, wanted {wanted}; say --source {name}=PATH")


def _schema(path: Path) -> pa.Schema:
    try:
        match path.suffix:
            case ".parquet":
                return parquet.read_schema(path)
            case ".csv":
                with csv.open_csv(path) as reader:
                    return reader.schema
            case ".ndjson" | ".jsonl":
                return json.read_json(path).schema
    except (OSError, pa.ArrowException) as error:
        raise UserMustAct(f"{path}: found {error}, wanted a file with rows; check the path") from error
    raise UserMustAct(f"{path}: found {path.suffix or 'no ending'}, wanted {', '.join(_ENDINGS)}; rename the file")


def _type(path: Path, column: pa.Field) -> str:
    """The name that a spec has for the type of a file's column."""
    kind = pa.string() if pa.types.is_large_string(column.type) else column.type
    for name, plain in PLAIN.items():
        if plain.arrow == kind:
            return name
    if pa.types.is_timestamp(kind):
        return f"timestamp({kind.unit}, UTC)" if kind.tz is not None else f"timestamp({kind.unit})"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_null(kind):
        found = f"a column {column.name} without a value, whose type nobody can tell"
        remedy = "add rows, or say the types in a query file (docs/sql.md)"
        raise UserMustAct(f"{path}: found {found}, wanted a value in some row; {remedy}")
    message = f"{path}: found a column {column.name} of {kind}, wanted a plain type; leave the column out of the file"
    raise UserMustAct(message)
