"""Ten bugs that a system like this one has had or could have, planted in the real machines while a block runs.

Each takes one rule of docs/design.md §3 away. Where a machine checks that very rule about itself, the check is taken
away with it: results and records must show the bug, not an assertion that knows of it.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from joinery.join.logic import WindowJoin
from joinery.join.state import MatchJournal
from joinery.machine import log
from joinery.machine.collector import CollectorMachine
from joinery.machine.gateway import GatewayMachine
from joinery.machine.intake import Intake
from joinery.machine.messages import Opened, Refuse
from joinery.machine.retention import Retention
from joinery.machine.sessions import Sessions
from joinery.machine.trimming import Trimming
from joinery.machine.worker import WorkerMachine
from joinery.model.time import DEAD
from joinery.window.watermark import StreamClock

Planted = Callable[[], Iterator[None]]


@contextmanager
def _replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """Put something made from the original in its place."""
    with patch.object(owner, name, make(getattr(owner, name))):
        yield


@contextmanager
def trim_past_commit() -> Iterator[None]:
    """The log and the checkpoints go up to the newest tag, committed or not."""

    def make(advance: Any) -> Any:
        return lambda self, committed: advance(self, np.full_like(committed, 2**62))

    with _replaced(Trimming, "advance", make), _replaced(GatewayMachine, "check_invariants", _nothing):
        yield


@contextmanager
def matched_bit_not_checkpointed() -> Iterator[None]:
    """Rows that match after they were checkpointed come back unmatched."""
    with _replaced(MatchJournal, "note", _nothing):
        yield


@contextmanager
def stale_owner_accepted() -> Iterator[None]:
    """The collector takes results whatever the map version under which they were made."""

    def make(take: Any) -> Any:
        def anybody(self: CollectorMachine, message: Any, partial: Any) -> Any:
            return take(self, replace(message, versions=self.versions[message.groups]), partial)

        return anybody

    with _replaced(CollectorMachine, "_take", make):
        yield


@contextmanager
def late_decided_again_on_replay() -> Iterator[None]:
    """A gateway that starts again judges the rows of the log by the watermarks that it finds at its end."""

    def make(restore: Any) -> Any:
        def again(self: Intake, head: Any, records: Any, *rest: Any) -> Any:
            records = tuple(records)
            marks = records[-1][1].watermarks if records else head.watermarks

            def judged(record: Any, plan: Any) -> Any:
                return [replace(batch, late=batch.times < marks[batch.stream]) for batch in tuples_of(record, plan)]

            tuples_of = log.tuples_of
            with patch.object(log, "tuples_of", judged):
                return restore(self, head, records, *rest)

        return again

    with _replaced(Intake, "restore", make):
        yield


@contextmanager
def watermark_per_batch() -> Iterator[None]:
    """Inside a record, rows are judged by a watermark that counts the batches before theirs."""

    def make(late: Any) -> Any:
        return lambda self, producer, times: late(self.recorded(), producer, times)

    with _replaced(StreamClock, "late", make):
        yield


@contextmanager
def taken_not_reset_at_a_new_owner() -> Iterator[None]:
    """The collector drops what it took of a group with a new owner, but still waits for what comes after it."""

    def make(go_on: Any) -> Any:
        def forgetful(self: CollectorMachine) -> Any:
            if self._under_way is None and self._changing.any():
                self._output.forget(self._changing)
                self._changing[:] = False
            return go_on(self)

        return forgetful

    with _replaced(CollectorMachine, "_go_on", make), _replaced(CollectorMachine, "check_invariants", _nothing):
        yield


@contextmanager
def floor_not_applied_after_a_window_grew() -> Iterator[None]:
    """Rows that the old window had closed match again under a longer one."""

    def make(change_windows: Any) -> Any:
        return lambda self, windows, floors, upto: change_windows(self, windows, (DEAD,) * len(floors), upto)

    with _replaced(WindowJoin, "change_windows", make):
        yield


@contextmanager
def session_sequence_reused() -> Iterator[None]:
    """A session that is opened again may begin with any number, as if nothing had been recorded."""

    def make(open_: Any) -> Any:
        def anew(self: Sessions, peer: Any, message: Any, *rest: Any) -> Any:
            answer = open_(self, peer, message, *rest)
            if not isinstance(answer, Opened) or answer.ended:
                return answer
            self.producers[message.stream, answer.producer].expected = None
            return replace(answer, expected=None)

        return anew

    with _replaced(Sessions, "open", make):
        yield


@contextmanager
def bounded_results_that_deadlock() -> Iterator[None]:
    """A worker whose kept results have reached their bound stops joining, instead of dropping the oldest."""

    def make(_: Any) -> Any:
        return lambda self: self._joining is None and bool(self._buffer) and not self.retention.is_full

    def keep_all(keep: Any) -> Any:
        return lambda self, results, **_: keep(self, results, may_drop=False)

    with ExitStack() as stack:
        stack.enter_context(_replaced(WorkerMachine, "_may_join", make))
        stack.enter_context(_replaced(Retention, "keep", keep_all))
        yield


@contextmanager
def nobody_joins_once_somebody_ended() -> Iterator[None]:
    """A stream counts as ended for newcomers as soon as one of its producers has ended."""

    def make(open_: Any) -> Any:
        def refuse(self: Sessions, peer: Any, message: Any, head: Any, *rest: Any) -> Any:
            over = any(key[0] == message.stream and session.ended for key, session in head.sessions.items())
            if over and (message.stream, message.name) not in head.sessions:
                return Refuse(None, self._ended_text(message.stream))
            return open_(self, peer, message, head, *rest)

        return refuse

    with _replaced(Sessions, "open", make):
        yield


def _nothing(_: Any) -> Any:
    return lambda *_, **__: None


MUTATIONS = {
    planted.__name__: planted
    for planted in (
        trim_past_commit,
        matched_bit_not_checkpointed,
        stale_owner_accepted,
        late_decided_again_on_replay,
        watermark_per_batch,
        taken_not_reset_at_a_new_owner,
        floor_not_applied_after_a_window_grew,
        session_sequence_reused,
        bounded_results_that_deadlock,
        nobody_joins_once_somebody_ended,
    )
}
