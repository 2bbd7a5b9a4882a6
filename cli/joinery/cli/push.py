"""`joinery push`: rows from a file or a pipe into a running query."""

import os
import sys
import time
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from joinery.adapters.security import TOKEN
from joinery.adapters.sources.pipes import KINDS, file_batches, pipe_batches
from joinery.cli.complaining import complaining
from joinery.cli.running import WAIT_HELP, reached
from joinery.client import Producer, Query, Unreachable, connect
from joinery.model.errors import UserMustAct
from joinery.model.words import counted
from joinery.partition.format import StreamFormat

PUSH_HELP = """Push rows from a file, or from standard input, into a stream of a running query.

\b
  joinery push query.yaml orders orders.csv --end
  zcat log.ndjson.gz | joinery push 127.0.0.1:7400 clicks -

Every row is recorded when the command ends with 0. With --end the stream
ends, once all its producers have said so.
A query that asks for a token finds it in JOINERY_TOKEN.
A push that was broken off goes on with --producer NAME --resume, with the
same file: nothing is lost or sent twice.

Exit codes: 0 every row is recorded, 1 the query cannot be reached or the
push was stopped, 2 the rows or the words of the command do not fit.
"""
TELL_S = 0.5


@complaining
def push(
    query: Annotated[str, typer.Argument(help="Query file, name, or HOST:PORT of its gateway.", show_default=False)],
    stream: Annotated[str, typer.Argument(help="A stream of the query.", show_default=False)],
    file: Annotated[str, typer.Argument(help="CSV, NDJSON, Parquet or Arrow IPC; - is standard input.")] = "-",
    end: Annotated[bool, typer.Option("--end", help="This producer will send no more.")] = False,
    producer: Annotated[str | None, typer.Option("--producer", help="A name, by which one can go on.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Leave out what is recorded under that name.")] = False,
    append: Annotated[bool, typer.Option("--append", help="These are new rows of that name.")] = False,
    kind: Annotated[str | None, typer.Option("--format", help=f"One of {', '.join(KINDS)}.")] = None,
    tls: Annotated[Path | None, typer.Option("--tls", help="Folder with ca.crt, tls.crt, tls.key.")] = None,
    wait: Annotated[float | None, typer.Option("--wait", help=WAIT_HELP)] = None,
) -> None:
    """Read, send, tell."""
    _check(file, producer, kind, resume=resume)
    talk: Producer | None = None
    try:
        token = os.environ.get(TOKEN)
        gateway, wait_s = reached(query, wait)
        with connect(gateway, timeout=wait_s, patience=max(wait_s, 1.0), tls=tls, token=token) as running:
            batches = _batches(file, kind, running.form(stream))
            talk = _open(running, stream, producer, resume=resume, append=append)
            talk.push(_telling(talk, batches), skip=talk.recorded if resume else 0)
            talk.end() if end else talk.flush()
            ended = ", which has ended" if end else ""
            upto = "" if talk.last_record is None else f", up to record {talk.last_record}"
            _say(f"{counted(talk.rows, 'row')} recorded in stream {stream}, as producer {talk.name}{ended}{upto}")
    except Unreachable as error:
        _say(f"{error}{_so_far(talk)}")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        _say(f"stopped{_so_far(talk)}")
        raise typer.Exit(1) from None


def _so_far(talk: Producer | None) -> str:
    if talk is None:
        return ""
    sent = counted(talk.rows, "row was sent, and is", "rows were sent, the last of them")
    return f"\n{sent} perhaps not recorded; --producer NAME --resume goes on"


def _check(file: str, producer: str | None, kind: str | None, *, resume: bool) -> None:
    if kind is not None and kind not in KINDS:
        raise UserMustAct(f"--format: found {kind}, wanted one of {', '.join(KINDS)}; leave it out to have it guessed")
    is_pipe = file == "-" or (Path(file).exists() and not Path(file).is_file())  # its batches are cut as they come
    if resume and (producer is None or is_pipe):
        found = "no --producer" if producer is None else "standard input" if file == "-" else f"{file}, a pipe"
        raise UserMustAct(f"--resume: found {found}, wanted a name and a file that can be read again; give both")
    if file != "-" and not Path(file).exists():
        raise UserMustAct(f"found no file {file}, wanted one; its path is relative to the folder that you are in")


def _open(running: Query, stream: str, producer: str | None, *, resume: bool, append: bool) -> Producer:
    """A producer of whose earlier batches we know what they mean."""
    talk = running.producer(stream, producer)
    if talk.recorded and not resume and not append:
        raise UserMustAct(
            f"found {talk.recorded} batches of producer {producer} recorded already, wanted a new name; "
            "say --resume to go on with the same file, or --append for new rows"
        )
    return talk


def _batches(file: str, kind: str | None, form: StreamFormat) -> Iterator[pa.RecordBatch]:
    if file == "-":
        return pipe_batches(open(0, "rb", buffering=0, closefd=False), kind, form)  # reads what is there
    batches = file_batches(Path(file), kind, form)
    first = list(islice(batches, 1))  # a file that cannot be read opens no producer, for whom the stream would wait
    return chain(first, batches)


def _telling(talk: Producer, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches; and how far it is, to somebody who looks."""
    told = time.monotonic()
    for batch in batches:
        yield batch
        if sys.stderr.isatty() and time.monotonic() - told > TELL_S:
            told = time.monotonic()
            typer.echo(f"\r{talk.rows:,} rows", err=True, nl=False)
    if sys.stderr.isatty():
        typer.echo("\r", err=True, nl=False)


def _say(text: str) -> None:
    typer.echo(text, err=True)
