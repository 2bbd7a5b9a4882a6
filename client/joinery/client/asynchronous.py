"""The client for programs with an event loop: the same as `synchronous`, to be awaited."""

import asyncio
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from joinery.adapters.security import Security
from joinery.client.frames import Frame
from joinery.client.query import PATIENCE_S, QueryTalk
from joinery.client.talks import ProducerTalk, ResultsTalk
from joinery.client.watched import afinish


async def connect_async(
    address: str,
    *,
    timeout: float = 30.0,
    patience: float = PATIENCE_S,
    tls: Path | str | None = None,
    token: str | None = None,
) -> "AsyncQuery":
    """The running query whose gateway is at this address; as `connect`."""
    return AsyncQuery(await asyncio.to_thread(QueryTalk.at, address, timeout, patience, Security.read(tls, token)))


class AsyncQuery:
    """A running query; use it with `async with`, at whose end everything that was pushed is recorded."""

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

    async def push(self, stream: str, data: Frame, *, end: bool = False) -> None:
        """Send a frame, or an iterable of frames; with `end` nothing more will come, and all of it is recorded."""
        if end:
            self._talk.reserve()
        await afinish(self._talk.pushing(stream).push(data, end=end))

    async def end(self, stream: str) -> None:
        """This client sends no more to the stream; everything is recorded."""
        self._talk.reserve()
        await afinish(self._talk.pushing(stream).end())

    async def flush(self) -> None:
        """Wait until everything that was pushed is recorded."""
        for talk in self._talk.producers.values():
            await afinish(talk.flush())

    async def producer(self, stream: str, name: str | None = None) -> "AsyncProducer":
        """A producer of its own; one with a name can be gone on with by another process."""
        talk = self._talk.producer(stream, name)
        return AsyncProducer(talk, await afinish(talk.open()))

    def results(self, token: str | None = None, *, follow: bool = True) -> "AsyncResults":
        """Committed results after a token, or all that are kept, to the query's end."""
        return AsyncResults(self._talk.results(token, follow=follow))

    async def close(self) -> None:
        """Hang up; what is not recorded yet may be lost."""
        await asyncio.to_thread(self._talk.close)

    async def __aenter__(self) -> "AsyncQuery":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                await self.flush()
        finally:
            await self.close()


class AsyncProducer:
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

    async def push(self, data: Frame, *, skip: int = 0) -> None:
        """Send a frame, or an iterable of frames, without its first `skip` batches.

        Who was stopped and sends the same frames again under the same name leaves out what is `recorded`.
        """
        await afinish(self._talk.push(data, end=False, skip=skip))

    async def flush(self) -> None:
        """Wait until everything that was pushed is recorded."""
        await afinish(self._talk.flush())

    async def end(self) -> None:
        """Send no more; everything is recorded."""
        await afinish(self._talk.end())

    async def close(self) -> None:
        """Hang up without an end: another may go on under this name."""
        await asyncio.to_thread(self._talk.close)


class AsyncResults:
    """Results as Arrow batches, in the order of their commits."""

    def __init__(self, talk: ResultsTalk) -> None:
        self._talk = talk

    @property
    def token(self) -> str | None:
        """Subscribe with this to get what comes after the last batch that was taken."""
        return self._talk.token

    @property
    def schema(self) -> pa.Schema | None:
        """The columns; None: no batch has come yet."""
        return self._talk.schema

    def __aiter__(self) -> "AsyncResults":
        return self

    async def __anext__(self) -> pa.RecordBatch:
        """The next batch; who is tired of waiting (`asyncio.wait_for`) may ask again."""
        if (rows := await afinish(self._talk.next())) is None:
            raise StopAsyncIteration
        return rows

    async def close(self) -> None:
        """Hang up."""
        await asyncio.to_thread(self._talk.close)
