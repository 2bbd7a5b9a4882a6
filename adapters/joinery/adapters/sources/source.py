"""A source: a producer inside the gateway's process, on a thread of its own (docs/design.md §3, producers).

It opens a session under one fixed name, pushes pieces whose sequence is their place in the input, and goes on where the
log says, so that a gateway that was started again neither loses nor repeats a row. What it may have under way is
bounded (`flight`); it reads on only when there is room. An input that ends is ended with an empty push.

Whatever goes wrong stops the source: `error` says it, and `failed` is called, which by default ends the query.
"""

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from joinery.adapters.process import Process
from joinery.adapters.sources.flight import Flight
from joinery.adapters.sources.pieces import Pause, Piece, Reader
from joinery.flow.checksum import checksum_of
from joinery.machine.facts import Received
from joinery.machine.messages import Message, Open, Push
from joinery.model.errors import Bug, JoineryError, UserMustAct
from joinery.model.ids import Peer, ProducerId

NAME: Final = ProducerId("source")
"""Of every built-in source; a stream has at most one."""
_CLOSE_S: Final = 10.0
_NOTHING: Final = pa.RecordBatch.from_arrays([], names=[])


class _Closed(Exception):
    """The source was closed from outside."""


class Source:
    """Feeds one stream from a reader, between `start` and `close`."""

    def __init__(
        self,
        stream: int,
        name: str,
        reader: Reader,
        process: Process,
        failed: Callable[["Source"], None] | None = None,
    ) -> None:
        self.stream, self.name, self.reader = stream, name, reader
        self.error: JoineryError | None = None
        self.flight = Flight()
        self._process, self._failed = process, failed or _end_the_query
        self._peer = Peer(f"source of {name}")
        self._inbox: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"source {name}", daemon=True)
        self._has_started = False

    @property
    def finished(self) -> bool:
        """Whether the whole input, and its end, is recorded."""
        return self.flight.ended

    @property
    def process(self) -> Process:
        """The gateway's process."""
        return self._process

    def check(self) -> None:
        """Look at the input before anything is started; refused with the reason."""
        self.reader.check()

    def start(self) -> None:
        """Begin to read."""
        self._has_started = True
        self._thread.start()

    def close(self) -> None:
        """Stop reading; what is under way may or may not be recorded."""
        self._inbox.put(None)
        if self._has_started and threading.current_thread() is not self._thread:
            self._thread.join(_CLOSE_S)

    def wait(self, seconds: float) -> bool:
        """Until the source has ended, by its end or an error; False: not yet."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    # --- the thread

    def _run(self) -> None:
        try:
            self._feed()
        except _Closed:
            pass
        except Exception as error:
            self.error = _told(self, error)
            self._failed(self)
        finally:
            self._process.detach(self._peer)

    def _feed(self) -> None:
        self._process.attach(self._peer, self._inbox.put)
        self._say(Open(self.stream, NAME))
        while self.flight.session is None:
            self._listen(None)
        while not self.flight.ended:
            with _closing(self.reader.read(self.flight.position)) as pieces:
                self._send_all(pieces)

    def _send_all(self, pieces: Iterator[Piece | Pause]) -> None:
        """To the end of the input, or until the gateway wants another place of it."""
        turns = self.flight.turns
        for piece in pieces:
            if isinstance(piece, Pause):
                self._rest(piece.seconds)
            elif self._make_room(turns):
                self._push(piece.sequence, piece.next_sequence, piece.rows)
            if self.flight.turns != turns:
                return
        if self._make_room(turns):
            at = self.flight.position or 0
            self._push(at, at, _NOTHING, end=True)
        while self.flight.turns == turns and not self.flight.ended:
            self._listen(None)

    def _make_room(self, turns: int) -> bool:
        """Wait until another piece may be sent; False: it is no longer wanted."""
        self._listen(0.0)
        while self.flight.turns == turns and not self.flight.room:
            self._listen(None)
        return self.flight.turns == turns

    def _push(self, sequence: int, next_sequence: int, rows: pa.RecordBatch, *, end: bool = False) -> None:
        if self.flight.session is None:
            raise Bug("a source pushed without a session")
        self.flight.depart(sequence, next_sequence, end=end)
        self._say(Push(self.flight.session, sequence, next_sequence, checksum_of(rows), rows, end))

    def _say(self, message: Message) -> None:
        self._process.shell.tell(Received(self._peer, message))

    def _rest(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        turns = self.flight.turns
        while (left_s := until_s - time.monotonic()) > 0 and self.flight.turns == turns:
            self._listen(left_s)
        self._listen(0.0)

    def _listen(self, seconds: float | None) -> None:
        """Take what the gateway has answered; wait up to so long (None: as long as it takes) for one answer."""
        try:
            message = self._inbox.get(timeout=seconds) if seconds != 0.0 else self._inbox.get_nowait()
            while True:
                if message is None:
                    raise _Closed
                self.flight.hear(message)
                message = self._inbox.get_nowait()
        except queue.Empty:
            return


def _end_the_query(source: Source) -> None:
    source.process.shell.stop(str(source.error))


def _told(source: Source, error: Exception) -> JoineryError:
    """The error with the name of its source."""
    where = f"source of stream {source.name} ({source.reader.title})"
    if isinstance(error, JoineryError):
        told: JoineryError = (
            UserMustAct(f"{where}: {error}") if not isinstance(error, Bug) else Bug(f"{where}: {error}")
        )
    else:
        told = Bug(f"{where}: {type(error).__name__}: {error}")
    told.__cause__ = error
    return told


@contextmanager
def _closing(pieces: Iterator[Piece | Pause]) -> Iterator[Iterator[Piece | Pause]]:
    """A file that is read is closed when nobody reads on."""
    try:
        yield pieces
    finally:
        if isinstance(pieces, Generator):
            pieces.close()
