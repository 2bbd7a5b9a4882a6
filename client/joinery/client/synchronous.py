"""The client for programs with threads: calls wait."""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from joinery.adapters.security import PLAIN, Security
from joinery.client.frames import Frame
from joinery.client.query import PATIENCE_S, QueryTalk
from joinery.client.talks import ProducerTalk, ResultsTalk
from joinery.client.watched import finish
from joinery.partition.format import StreamFormat


def connect(
    address: str,
    *,
    timeout: float = 30.0,
    patience: float = PATIENCE_S,
    tls: Path | str | None = None,
    token: str | None = None,
) -> "Query":
    """The running query whose gateway is at this address, such as 127.0.0.1:7400.

    `timeout`: seconds to wait for it now; `patience`: seconds that a connection may be down later on.
    `tls`: folder with ca.crt, tls.crt and tls.key, for a query with TLS; `token`: what the query asks of its clients.
    """
    return Query(QueryTalk.at(address, timeout, patience, Security.read(tls, token)))


class Query:
    """A running query; use it with `with`, at whose end everything that was pushed is recorded."""

    def __init__(self, talk: QueryTalk) -> None:
        self._talk = talk

    @property
    def streams(self) -> dict[str, pa.Schema]:
        """The columns that each stream wants."""
        return {form.name: form.schema for form in self._talk.description.formats}

    @property
    def schema(self) -> pa.Schema:
        """The columns of the results."""
        return self._talk.description.results

    def form(self, stream: str) -> StreamFormat:
        """All that a stream wants: columns, keys, time."""
        return self._talk.form(stream)

    def push(self, stream: str, data: Frame, *, end: bool = False) -> None:
        """Send a frame, or an iterable of frames; with `end` nothing more will come, and all of it is recorded."""
        if end:
            self._talk.reserve()
        finish(self._talk.pushing(stream).push(data, end=end))

    def end(self, stream: str) -> None:
        """This client sends no more to the stream; everything is recorded."""
        self._talk.reserve()
        finish(self._talk.pushing(stream).end())

    def flush(self) -> None:
        """Wait until everything that was pushed is recorded."""
        for talk in self._talk.producers.values():
            finish(talk.flush())

    def producer(self, stream: str, name: str | None = None) -> "Producer":
        """A producer of its own; one with a name can be gone on with by another process."""
        talk = self._talk.producer(stream, name)
        return Producer(talk, finish(talk.open()))

    def results(self, token: str | None = None, *, follow: bool = True) -> "Results":
        """Committed results after a token, or all that are kept, to the query's end.

        Without `follow` only those that are there now.
        """
        return Results(self._talk.results(token, follow=follow))

    def close(self) -> None:
        """Hang up; what is not recorded yet may be lost."""
        self._talk.close()

    def __enter__(self) -> "Query":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()


class Producer:
    """A producer of one stream."""

    def __init__(self, talk: ProducerTalk, recorded: int) -> None:
        self._talk = talk
        self.recorded = recorded
        """Batches of this name that were recorded before; a program that repeats itself leaves out so many."""

    @property
    def name(self) -> str:
        """As the gateway knows it."""
        return str(self._talk.machine.name)

    @property
    def rows(self) -> int:
        """Rows sent so far, by this object."""
        return self._talk.rows

    @property
    def last_record(self) -> int | None:
        """The record of the last batch that is known to be recorded: `joinery where` follows it; None: none is."""
        return self._talk.machine.last_record

    def push(self, data: Frame, *, skip: int = 0) -> None:
        """Send a frame, or an iterable of frames, without its first `skip` batches.

        Who was stopped and sends the same frames again under the same name leaves out what is `recorded`.
        """
        finish(self._talk.push(data, end=False, skip=skip))

    def flush(self) -> None:
        """Wait until everything that was pushed is recorded."""
        finish(self._talk.flush())

    def end(self) -> None:
        """Send no more; everything is recorded."""
        finish(self._talk.end())

    def close(self) -> None:
        """Hang up without an end: another may go on under this name."""
        self._talk.close()


class Results:
    """Results as Arrow batches, in the order of their commits."""

    def __init__(self, talk: ResultsTalk) -> None:
        self._talk = talk

    @staticmethod
    def at(
        address: str,
        token: str | None = None,
        *,
        follow: bool = True,
        patience: float = PATIENCE_S,
        security: Security = PLAIN,
    ) -> "Results":
        """Straight from a collector; after this token of results."""
        return Results(ResultsTalk(address, token, patience, only_kept=not follow, security=security))

    @property
    def token(self) -> str | None:
        """Subscribe with this to get what comes after the last batch that was taken."""
        return self._talk.token

    @property
    def schema(self) -> pa.Schema | None:
        """The columns; None: no batch has come yet."""
        return self._talk.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (rows := finish(self._talk.next())) is not None:
            yield rows

    def poll(self, seconds: float) -> pa.RecordBatch | None:
        """The next rows, if they come in this time; None: they did not, or there will be no more."""
        return finish(self._talk.next()) if self._talk.is_ready(seconds) else None

    def close(self) -> None:
        """Hang up."""
        self._talk.close()
