"""`joinery tail`: the results of a running query to standard output."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, BinaryIO, Final, Protocol

import pyarrow as pa
import typer

from joinery.adapters.security import TOKEN, Security
from joinery.adapters.sinks.formats import CsvFormat, NdjsonFormat
from joinery.cli.complaining import complaining
from joinery.cli.running import WAIT_HELP, reached
from joinery.client import Query, Results, Unreachable
from joinery.client.query import QueryTalk
from joinery.client.talks import NoGateway, describe
from joinery.model.errors import UserMustAct

TAIL_HELP = """Print the committed results of a running query: those that are kept and, with --follow, those to come.

\b
  joinery tail query.yaml --follow
  joinery tail 127.0.0.1:7400 --format arrow > results.arrows

ADDRESS is a query file, a query's name, or HOST:PORT of its gateway or
collector. At the end the last token is printed to standard error; --token
goes on after it, without a gap or a repeated row. A query that asks its
clients for a token finds it in JOINERY_TOKEN.

Exit codes: 0 all that was asked for is printed, 1 the query cannot be
reached any more or the command was stopped, 2 the token or the words of the
command do not fit.
"""


class _Form(Protocol):
    def rows(self, rows: pa.RecordBatch) -> Iterator[bytes | memoryview]: ...

    def end(self, schema: pa.Schema | None) -> Iterator[bytes | memoryview]: ...


class _Ndjson:
    def rows(self, rows: pa.RecordBatch) -> Iterator[bytes | memoryview]:
        return NdjsonFormat().encode(rows)

    def end(self, schema: pa.Schema | None) -> Iterator[bytes | memoryview]:  # noqa: ARG002
        return iter(())


class _Csv:
    def __init__(self) -> None:
        self._has_header = False

    def rows(self, rows: pa.RecordBatch) -> Iterator[bytes | memoryview]:
        yield from self.end(rows.schema)
        yield from CsvFormat(rows.schema).encode(rows)

    def end(self, schema: pa.Schema | None) -> Iterator[bytes | memoryview]:
        if not self._has_header and schema is not None:
            self._has_header = True
            yield CsvFormat(schema).header()


class _Arrow:
    def __init__(self) -> None:
        self._has_schema = False

    def rows(self, rows: pa.RecordBatch) -> Iterator[bytes | memoryview]:
        yield from self._begin(rows.schema)
        yield memoryview(rows.serialize())

    def end(self, schema: pa.Schema | None) -> Iterator[bytes | memoryview]:
        if schema is not None:
            yield from self._begin(schema)
            yield b"\xff\xff\xff\xff\x00\x00\x00\x00"

    def _begin(self, schema: pa.Schema) -> Iterator[bytes | memoryview]:
        if not self._has_schema:
            self._has_schema = True
            yield memoryview(schema.serialize())


FORMS: Final[dict[str, type[_Form]]] = {"ndjson": _Ndjson, "csv": _Csv, "arrow": _Arrow}


@complaining
def tail(
    address: Annotated[str, typer.Argument(help="Query file, name, or HOST:PORT.", show_default=False)],
    token: Annotated[str | None, typer.Option("--token", help="Go on after this one.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Until the query ends.")] = False,
    kind: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMS)}.")] = "ndjson",
    tls: Annotated[Path | None, typer.Option("--tls", help="Folder with ca.crt, tls.crt, tls.key.")] = None,
    wait: Annotated[float | None, typer.Option("--wait", help=WAIT_HELP)] = None,
) -> None:
    """Subscribe, print, tell the token."""
    if kind not in FORMS:
        raise UserMustAct(f"--format: found {kind}, wanted one of {', '.join(FORMS)}; choose one")
    results, code, printer = None, 0, _Printer(FORMS[kind](), sys.stdout.buffer, token)
    try:
        security = Security.read(tls, os.environ.get(TOKEN))
        results = _subscribe(*reached(address, wait), security, token, follow=follow)
        printer.print(results)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that nobody complains at the exit
    except Unreachable as error:
        typer.echo(str(error), err=True)
        code = 1
    except KeyboardInterrupt:
        code = 1
    finally:
        if results is not None:
            if printer.token is not None:
                typer.echo(f"token {printer.token}", err=True)
            results.close()
    raise typer.Exit(code)


def _subscribe(address: str, wait_s: float, security: Security, token: str | None, *, follow: bool) -> Results:
    """Of the query whose gateway is there, or straight from its collector."""
    patience_s = max(wait_s, 1.0)
    try:
        describe(address, wait_s, security)
    except NoGateway:
        return Results.at(address, token, follow=follow, patience=patience_s, security=security)
    return Query(QueryTalk.at(address, wait_s, patience_s, security)).results(token, follow=follow)


class _Printer:
    """Prints batches, each whole; `token` is that of the last one that is out: what has come is not yet printed."""

    def __init__(self, form: _Form, out: BinaryIO, token: str | None) -> None:
        self._form, self._out, self.token = form, out, token

    def print(self, results: Results) -> None:
        for rows in results:
            with _whole():
                self._write(self._form.rows(rows))
                self.token = results.token
        self._write(self._form.end(results.schema))
        self.token = results.token

    def _write(self, pieces: Iterator[bytes | memoryview]) -> None:
        for piece in pieces:
            self._out.write(piece)
        self._out.flush()


@contextmanager
def _whole() -> Iterator[None]:
    """Ctrl-C waits until what is begun is done; a second one does not."""
    asked = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            signal.default_int_handler(number, frame)
        asked = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt
