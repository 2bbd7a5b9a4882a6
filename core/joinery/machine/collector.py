"""Station 7 of 8, collector: takes the workers' results whole, and commits each once (docs/design.md §3).

Rule 1: a group's batch (a, b] is taken iff its version is the group's current one and a = taken(group), when its last
        part is here. Of a message with several groups each is taken, or not, by itself; a group that left between two
        parts is not in the last one, and is not taken.
Rule 2: one commit at a time: stage, write, tell. The next one begins as soon as the last has ended and something was
        taken; it holds all that was taken meanwhile. Batches without rows are committed too, together with others.
Rule 3: `Owners` with a greater version is a new owner: from that moment on nothing of the old one is taken. When the
        commit under way has ended, what else was taken of the group is dropped and taken = committed; then `Vector`
        answers. It is always answered: a gateway that was started again asks to know.
Rule 4: before the first `Owners` nothing is taken, and no worker is asked for anything. A worker is told what was
        taken (`Resume`) on every new connection, but not while groups are between two owners: it would be too much.
Rule 5: parts of a message follow each other on one connection. A part without its forerunners means that a message got
        lost, which would leave a gap for ever: the connection is closed, and on the new one the worker sends it again.
Rule 6: all that is held is taken and not committed (`ordered_output`), or a message of a connected worker of which the
        last part is missing, or kept for subscribers (`subscriptions`).
Rule 7: a collector that the gateway sends away again and again, without a word, has been replaced by one of a higher
        term: it stops. (With nothing to commit no store would ever tell it.)
Rule 8: `Drained` finishes the sinks once nothing is under way; asked again, a collector that has finished says so.
        Subscribers who read on get all results before (`subscriptions`, rule 6).
Rule 9: the first subscriber of a query waits until results are kept for it (`retaining`): what it is told, or is given
        a token of, must be there for the next collector too. With `durability: memory` nobody waits.
"""

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from joinery.join.plan import JoinPlan
from joinery.machine import facts, messages, orders, result_rows
from joinery.machine.assembling import Assembling, Partial
from joinery.machine.facts import Fact
from joinery.machine.log import BEFORE_ALL
from joinery.machine.messages import Message, Results, mask_of
from joinery.machine.ordered_output import Draft, Output, PlainOutput, output_of
from joinery.machine.orders import Order, Send
from joinery.machine.ports import Commit, Kept, Receipt
from joinery.machine.subscriptions import Subscriptions
from joinery.machine.tallying import Tallying, results_in
from joinery.model.errors import require
from joinery.model.ids import GATEWAY, GroupId, Peer, Term
from joinery.model.spec import JoinQuerySpec
from joinery.model.tuples import I64Array

Orders: TypeAlias = list[Order]

SENT_AWAY: Final = 3
"""So many greetings in a row that end without an answer."""


@dataclass(slots=True, eq=False)
class _UnderWay:
    """A commit that is staged, then written."""

    number: int
    draft: Draft
    commit: Commit | None = None
    """None: the sinks have not all staged it."""


class CollectorMachine:
    """Facts in, orders out; `check_invariants` may be asked after every step."""

    def __init__(self, spec: JoinQuerySpec) -> None:
        groups = spec.partitions
        self.spec = spec
        self.term: Term | None = None
        self.versions: I64Array = np.zeros(groups, np.int64)
        """The current map version of each group; 0: not known."""
        self.taken: I64Array = np.full(groups, BEFORE_ALL, np.int64)
        self.committed: I64Array = np.full(groups, BEFORE_ALL, np.int64)
        self.is_ready = self.is_finished = self.is_stopped = False
        self._last = Commit(0, _frozen(self.committed))
        self._output: Output = PlainOutput(groups)
        self._subscriptions: Subscriptions | None = None
        self._early: dict[Peer, messages.Subscribe] = {}
        """Subscribers that came before the sinks were ready, or before results are kept (rule 9)."""
        self._is_kept = spec.checkpoint.durability != "wal"
        self._asked_to_keep = False
        self._gateway_term = Term(0)
        self._unanswered = 0
        """Greetings since the gateway last said something."""
        self._connected: set[Peer] = set()
        self._workers: dict[Peer, None] = {}
        """Workers that said hello on their present connection."""
        self._unresumed: dict[Peer, None] = {}
        """Those of them that wait for `Resume`."""
        self._partial = Assembling()
        self._changing: NDArray[np.bool_] = np.zeros(groups, np.bool_)
        """Groups with a new owner, to be set back when the commit under way has ended."""
        self._owes_vector = self._is_drained = self._is_finishing = self._has_taken = False
        self._is_lingering = False
        """The sinks are finished, but subscribers may still read."""
        self._under_way: _UnderWay | None = None
        self.tallying = Tallying(in_order=spec.output.order != "none")

    @property
    def last_commit(self) -> Commit:
        """The newest that is durable."""
        return self._last

    @property
    def held_rows(self) -> int:
        """Taken, and not committed."""
        return self._output.rows

    def handle(self, fact: Fact, now_ns: int) -> Orders:
        """What to do about a fact."""
        if self.is_stopped:
            return []
        match fact:
            case facts.Started():
                return [orders.OpenCommits(fact.instance)]
            case facts.CollectorOpened():
                return self._opened(fact.term, fact.commit)
            case facts.SinksReady():
                return self._sinks_ready(fact.kept)
            case facts.ResultsKept():
                self._is_kept = True
                return self._serve_early() + (self._finished(now_ns) if self._is_lingering else [])
            case facts.Connected():
                return self._came(fact.peer)
            case facts.Disconnected():
                self._gone(fact.peer)
                self._connected.discard(fact.peer)
                if fact.peer == GATEWAY and self._unanswered >= SENT_AWAY:
                    return self._stop("the gateway sends this collector away: it is fenced")
                return self._finished(now_ns) if self._is_lingering else []
            case facts.Tick() if self._is_lingering:
                return self._finished(now_ns)
            case facts.Received():
                return self._received(fact.peer, fact.message, now_ns)
            case facts.Staged():
                return self._staged(fact.number, fact.receipts)
            case facts.CommitWritten():
                return self._written(fact.number, now_ns)
            case facts.SinksFinished():
                self.is_finished = self._is_lingering = True
                told = self._subscriptions.end() if self._subscriptions is not None else []
                return [*(Send(peer, answer) for peer, answer in told), *self._finished(now_ns)]
            case facts.Fenced():
                return self._stop(f"a collector with term {fact.by} has taken over")
        return []

    def _received(self, peer: Peer, message: Message, now_ns: int) -> Orders:
        if peer not in self._connected:
            return []  # its connection is gone: it says hello again on the next one
        if peer == GATEWAY:
            self._unanswered = 0
        match message:
            case Results():
                return self._results(peer, message)
            case messages.WorkerHello():
                return self._hello(peer)
            case messages.Owners() if peer == GATEWAY:
                return self._owners(message)
            case messages.Drained() if peer == GATEWAY:
                return self._drained(message)
            case messages.Ping() if peer == GATEWAY:
                self.tallying.clock_ahead_ns = message.ahead_ns
                return self._to_gateway(messages.Pong(message.sent_ns, now_ns))
            case messages.Subscribe():
                return self._subscribe(peer, message)
            case messages.Grant() if self._subscriptions is not None:
                made: Orders = [Send(peer, one) for one in self._subscriptions.grant(peer, message.credit)]
                return made + (self._finished(now_ns) if self._is_lingering else [])
        return []

    # --- start

    def _opened(self, term: Term, commit: Commit | None) -> Orders:
        self.term, self._last = term, commit or self._last
        groups = self._last.committed.size
        require(groups == self.spec.partitions, f"the last commit has {groups} groups, not {self.spec.partitions}")
        self.committed, self.taken = self._last.committed.copy(), self._last.committed.copy()
        self._output = output_of(self.spec, self._last)
        return [orders.RecoverSinks(term, self._last.receipts)]

    def _sinks_ready(self, kept: Kept | None) -> Orders:
        schema = JoinPlan.of(self.spec).schema
        self._subscriptions = Subscriptions(self.spec.results.retain, self._last.number, schema, kept)
        self.is_ready, self._is_kept = True, self._is_kept or kept is not None
        return self._greet() + self._serve_early()

    def _greet(self) -> Orders:
        if not self.is_ready:
            return []
        self._unanswered += GATEWAY in self._connected
        return self._to_gateway(messages.CollectorHello(self._own_term()))

    # --- connections

    def _came(self, peer: Peer) -> Orders:
        self._gone(peer)
        self._connected.add(peer)
        return self._greet() if peer == GATEWAY else []

    def _gone(self, peer: Peer) -> None:
        """All that hung on a connection."""
        for held in (self._workers, self._unresumed, self._partial, self._early):
            held.pop(peer, None)
        if self._subscriptions is not None:
            self._subscriptions.leave(peer)
        if peer == GATEWAY:
            self._owes_vector = False

    def _hello(self, peer: Peer) -> Orders:
        self._workers[peer] = self._unresumed[peer] = None
        return self._resume()

    def _resume(self) -> Orders:
        """Rule 4."""
        if not self.is_ready or not self.versions.any() or self._changing.any():
            return []
        waiting, self._unresumed = list(self._unresumed), {}
        return [Send(peer, messages.Resume(self._own_term(), _frozen(self.taken))) for peer in waiting]

    # --- owners

    def _owners(self, message: messages.Owners) -> Orders:
        if not self.is_ready or message.term < self._gateway_term:
            return []
        require(message.versions.size == self.versions.size, "the gateway knows of another number of groups")
        self._gateway_term = message.term
        self._changing |= message.versions > self.versions
        self.versions = np.maximum(self.versions, message.versions)
        self._owes_vector = True
        return self._go_on()

    def _go_on(self) -> Orders:
        """What can only be done while no commit is under way (rules 2, 3, 8)."""
        if self._under_way is not None:
            return []
        if self._changing.any():
            self._output.forget(self._changing)
            self.taken[self._changing] = self.committed[self._changing]
            self._changing[:] = False
        made = self._answer_owners() + self._resume() + self._next_commit()
        idle = self._under_way is None and bool((self.taken == self.committed).all())
        if self._is_drained and idle and not self._is_finishing:
            self._is_finishing = True
            made.append(orders.FinishSinks(self._last.receipts))
        return made

    def _answer_owners(self) -> Orders:
        if not self._owes_vector:
            return []
        self._owes_vector = False
        seen = np.full(self.taken.size, BEFORE_ALL, np.int64) if self._last.seen is None else self._last.seen
        vectors = (_frozen(self.versions), _frozen(self.committed), _frozen(seen))
        return self._to_gateway(messages.Vector(self._own_term(), *vectors, self._last.totals))

    def _drained(self, message: messages.Drained) -> Orders:
        if not self.is_ready or message.term < self._gateway_term:
            return []
        self._gateway_term, self._is_drained = message.term, True
        if self.is_finished:
            return [] if self._is_lingering else self._to_gateway(messages.Finished())
        return self._go_on()

    def _finished(self, now_ns: int) -> Orders:
        """Tell the gateway, but let subscribers who read on have the rest first."""
        if self._early:
            return []  # they are served in a moment, and this is asked again
        until_ns = None if self._subscriptions is None else self._subscriptions.wait_until_ns(now_ns)
        if until_ns is not None:
            return [orders.WakeAt(until_ns)]
        self._is_lingering = False
        return self._to_gateway(messages.Finished())

    # --- taking

    def _results(self, peer: Peer, message: Results) -> Orders:
        if peer not in self._workers:
            return []
        partial = self._partial.add(peer, message, self.taken.size)
        if partial is None:  # rule 5
            self._gone(peer)
            return [orders.Disconnect(peer)]
        if not message.last:
            return []
        del self._partial[peer]
        return self._take(message, partial)

    def _take(self, message: Results, partial: Partial) -> Orders:
        """Rule 1."""
        groups = message.groups
        fits = (self.versions[groups] == message.versions) & (self.taken[groups] == message.after)
        fits &= partial.whole[groups] & ~self._changing[groups] & (message.after < message.upto)
        fits &= self.versions[groups] > 0
        if not fits.any():
            return []
        accepted = groups[fits]
        mask = mask_of(accepted, self.taken.size)
        parts = [result_rows.keep(part, mask[part.groups]) for part in partial.parts]
        parts = [part for part in parts if part.times.size]
        self.tallying.took(partial.messages, results_in(parts))
        self._output.take(accepted, message.after[fits], message.upto, message.marks, parts)
        self.taken[accepted] = message.upto
        self._has_taken = True
        taken = orders.Take(tuple(GroupId(group) for group in accepted.tolist()), message.upto)
        return [taken, *self._go_on()]

    # --- committing

    def _next_commit(self) -> Orders:
        """Rule 2."""
        if not self._has_taken:
            return []
        self._has_taken = False
        draft = self._output.draft(self.taken, self.committed)
        if draft is None:
            return []
        self._under_way = _UnderWay(self._last.number + 1, draft)
        self.tallying.drafted()
        return [orders.StageResults(self._under_way.number, draft.parts)]

    def _staged(self, number: int, receipts: tuple[Receipt, ...]) -> Orders:
        now = self._under_way
        if now is None or now.number != number or now.commit is not None:
            return []
        draft, totals = now.draft, self._last.totals.after(now.draft.parts)
        now.commit = Commit(number, _frozen(draft.committed), receipts, _frozen(draft.seen), draft.before_ns, totals)
        return [orders.WriteCommit(self._own_term(), now.commit)]

    def _written(self, number: int, now_ns: int) -> Orders:
        now = self._under_way
        if now is None or now.number != number or now.commit is None:
            return []
        self._under_way, self._last = None, now.commit
        groups = np.flatnonzero(now.commit.committed > self.committed)
        self.committed = now.commit.committed.copy()
        self.tallying.written(now_ns)
        made: Orders = []
        if groups.size:
            news = messages.Committed(self._own_term(), number, _frozen(groups), _frozen(self.committed[groups]))
            if GATEWAY in self._connected:
                made += self._to_gateway(replace(news, tally=self.tallying.tell(), totals=now.commit.totals))
            made += [Send(peer, news) for peer in self._workers]
        if self._subscriptions is not None:
            delivered = self._subscriptions.committed(number, now.draft.parts)
            made += [Send(peer, delivery) for peer, delivery in delivered]
        return made + self._go_on()

    # --- others

    def _subscribe(self, peer: Peer, message: messages.Subscribe) -> Orders:
        if self._subscriptions is not None and self._is_kept:
            return [Send(peer, answer) for answer in self._subscriptions.subscribe(peer, message)]
        self._early[peer] = message
        if self._subscriptions is None or self._asked_to_keep:
            return []
        self._asked_to_keep = True  # rule 9
        return [orders.KeepResults(self._subscriptions.first)]

    def _serve_early(self) -> Orders:
        early, self._early = self._early, {}
        return [order for peer, message in early.items() for order in self._subscribe(peer, message)]

    def _to_gateway(self, message: Message) -> Orders:
        return [Send(GATEWAY, message)] if GATEWAY in self._connected else []

    def _stop(self, because: str) -> Orders:
        self.is_stopped = True
        return [orders.Stop(because)]

    def _own_term(self) -> Term:
        require(self.term is not None, "a collector spoke before it had a term")
        return Term(self.term or 0)

    def check_invariants(self) -> None:
        """Stop with a `Bug` if the machine's state contradicts itself."""
        require(bool((self.committed <= self.taken).all()), "more is committed than was taken")
        require(
            bool((self.committed == self._last.committed).all()), "what counts as committed is not in the last commit"
        )
        require(bool((self.taken[self.versions == 0] == self.committed[self.versions == 0]).all()), "taken of nobody")
        require(self._under_way is not None or not self._changing.any(), "groups wait for a commit that is not there")
        require(self._workers.keys() <= self._connected, "a worker without a connection")
        require(self._partial.keys() <= self._workers.keys(), "a message of nobody is waited for")
        require(self._unresumed.keys() <= self._workers.keys(), "nobody waits for Resume")
        require(not self.is_finished or self._under_way is None, "a commit after the sinks were finished")
        self._output.check(self.taken)
        if self._subscriptions is not None:
            self._subscriptions.check()


def _frozen(vector: NDArray[np.int64] | NDArray[np.intp]) -> I64Array:
    """A copy that nobody changes: it leaves the machine."""
    copy = vector.astype(np.int64)
    copy.setflags(write=False)
    return copy
