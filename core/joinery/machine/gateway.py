"""The gateway: the paper's master (seed 000, algorithm 1). It records, buffers, serves, measures and moves.

What it decides is divided over parts that know nothing of each other's insides; this machine passes facts to them:

    intake     sessions, late rows, watermarks, alignment, the next record
    backlog    mini-buffers and replay memory
    workforce  who is there, and its credit
    placement  the map, and each group's way to its owner
    serving    slots and messages
    moving     planned moves and drains
    trimming   what nobody can ask for again
    losing     damaged checkpoints, and groups that stop because of them
    changing   changes of the running query; tuning: who goes by which setting; tables: versions of a stored table

Rule 1: one append at a time; what comes meanwhile is the next record (group commit). Producers are acknowledged, and
        workers served, only after a record is durable.
Rule 2: a gateway that finds a newer term in the store stops.
Rule 3: nothing here is needed after a crash but the log and the map.
"""

from typing import Final

import numpy as np

from joinery.join.plan import JoinPlan
from joinery.machine import facts, messages, orders
from joinery.machine.backlog import Backlog
from joinery.machine.changing import Changing
from joinery.machine.facts import Fact
from joinery.machine.intake import NO_STREAM, Cut, Intake, first_head
from joinery.machine.looking import Looking
from joinery.machine.losing import Losses
from joinery.machine.moving import Moves
from joinery.machine.opening import open_session
from joinery.machine.orders import Order, Send
from joinery.machine.placement import Phase, Placement
from joinery.machine.reorganizing import Reorganizing
from joinery.machine.serving import Serving
from joinery.machine.tables import Tables
from joinery.machine.trimming import Trimming
from joinery.machine.tuning import Tuning, lost_after_ns
from joinery.machine.watching import Watch
from joinery.machine.workforce import Workforce
from joinery.model.errors import Bug, require
from joinery.model.ids import OPERATOR, Peer, RecordNo, Term, WorkerId
from joinery.model.spec import JoinQuerySpec

MAX_UNSENT_BYTES: Final = 64 << 20
"""No record is cut while so many bytes wait for workers: producers wait for their acknowledgements instead."""


class GatewayMachine:
    """Decides what the gateway does."""

    def __init__(self, spec: JoinQuerySpec, results_address: str | None = None) -> None:
        self.plan = JoinPlan.of(spec)
        self.description = messages.Description(self.plan.formats, self.plan.schema, results_address)
        self.term, self.collector_term, self.instance = Term(0), Term(0), ""
        self.intake = Intake(spec, self.plan)
        self.backlog = Backlog(spec.partitions, RecordNo(0))
        self.workforce = Workforce(spec.worker.buffer, lost_after_ns(spec))
        self.placement = Placement(spec.partitions, self.workforce)
        self.serving = Serving(spec, self.placement)
        self.moves = Moves(self.placement, spec.scaling.max_parallel_moves)
        self.trimming = Trimming(spec.partitions)
        self.reorganizing = Reorganizing(spec, self.placement, self.moves)
        self.watch = Watch(spec, self.placement, self.serving, self.moves)
        self.losses = Losses(self.placement, self.trimming, self.moves, self.watch)
        tuning = Tuning(self.intake, self.workforce, self.serving, self.moves, self.reorganizing, self.watch)
        self.changing = Changing(spec, tuning)
        self.tables = Tables(self.intake, self.serving)
        self.looking = Looking(self)
        self.finished = self._told_drained = False
        self._appending: Cut | None = None
        self._early: list[Fact] = []
        """What came before the log was open."""
        self._peers: dict[Peer, WorkerId] = {}
        self._opened_ns = self._seen_ns = self._map_of_slots = 0

    @property
    def spec(self) -> JoinQuerySpec:
        return self.changing.spec

    @property
    def is_open(self) -> bool:
        return self.term > 0

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:
        """What to do about a fact."""
        if isinstance(fact, facts.Started):
            self.instance = fact.instance
            return [orders.OpenLog(first_head(self.spec), fact.instance, self.spec)]
        if isinstance(fact, facts.GatewayOpened):
            return self._open(fact, now_ns)
        if isinstance(fact, facts.Fenced):
            return [orders.Stop(f"a gateway of term {fact.by} has taken over")]
        if not self.is_open:
            self._early.append(fact)
            return []
        if now_ns < self._seen_ns:  # set back: or the next alarm would be set for when it is there again
            self._mind_the_clock(now_ns)
        self._seen_ns = now_ns
        made = self._dispatch(fact, now_ns)
        return made + self._after(now_ns)

    def _dispatch(self, fact: Fact, now_ns: int) -> list[Order]:
        match fact:
            case facts.Tick():
                return self._tick(now_ns)
            case facts.Connected():
                return self._connected(fact.peer)
            case facts.Disconnected():
                return self._disconnected(fact.peer, hung_up=fact.hung_up)
            case facts.Received():
                return self._received(fact.peer, fact.message, now_ns)
            case facts.Appended():
                return self._appended(fact.record, now_ns)
            case facts.MapWritten():
                made = self.placement.written(fact.version, now_ns)
                self.workforce.expect(self.placement.map.workers if self.placement.map else (), now_ns)
                return made
            case facts.StoreMeasured():
                self.watch.stored_bytes = fact.nbytes
                return []
            case facts.TableIs():
                return self.tables.answered(fact.version)
            case facts.SpecWritten():
                return self.changing.written(fact.kept, self.term, now_ns)
            case _:
                raise Bug(f"a gateway cannot use {type(fact).__name__}")

    # --- start

    def _open(self, fact: facts.GatewayOpened, now_ns: int) -> list[Order]:
        self.term, self._opened_ns = fact.term, now_ns
        self.backlog = Backlog(self.spec.partitions, fact.head.next_record)
        self.placement.restore(fact.map, fact.term)
        if self.placement.map is not None:
            self.workforce.expect(self.placement.map.workers, now_ns)
        kept, cuts = self.intake.restore(fact.head, fact.records, now_ns)
        for number, latest_ns in kept:
            self.trimming.kept(number, latest_ns)
        self.watch.begins(fact.head)
        for number, record in fact.records[: len(kept)]:
            self.watch.stamped(number, record)
        for cut in cuts:
            self._recorded(cut)
        self.changing.opened(fact.spec, now_ns)
        early, self._early = self._early, []
        made = [order for one in early for order in self._dispatch(one, now_ns)]
        return made + self._tick(now_ns) + self._after(now_ns)

    # --- clock

    def _tick(self, now_ns: int) -> list[Order]:
        self._mind_the_clock(now_ns)
        made = self._found_map(now_ns) + self.reorganizing.welcome(has_rows=any(self.intake.head.positions))
        self.reorganizing.came(self.backlog.total_bytes, now_ns)
        made += self._lose_workers(now_ns) + self.reorganizing.tick(self.term, now_ns)
        if self.watch.is_due(now_ns):
            made += self.watch.beat(self.reorganizing.memory_share, now_ns) + self._overview(now_ns)
            made += self.tables.ask(self.backlog)
        return made + self.serving.serve(self.backlog, self.intake.head.changes, now_ns)

    def _mind_the_clock(self, now_ns: int) -> None:
        """A clock that was set back must not make everybody wait until it is where it was."""
        self.serving.clock_is(now_ns)
        self.reorganizing.next_ns = min(self.reorganizing.next_ns, now_ns + self.spec.epochs.reorganization)
        self.workforce.clock_is(now_ns)
        self.intake.sessions.clock_is(now_ns)
        self.watch.clock_is(now_ns)

    def _after(self, now_ns: int) -> list[Order]:
        """What may have become possible by any fact: a record, an early slot, the end; and when to look again."""
        made = self._record(now_ns)
        if self.placement.map is not None and self.placement.map.version != self._map_of_slots:
            self._map_of_slots = self.placement.map.version
            self.serving.reschedule(now_ns)
        made += self.trimming.trim_all(self.placement, self.backlog, self.serving, is_quiet=not self.moves.under_way)
        made += self.moves.hand_over() + self.moves.advance(self.term) + self.reorganizing.drain(self.term)
        made += self.serving.serve_if_full(self.backlog, self.intake.head.changes, now_ns)
        made += self._drained(now_ns)
        return [*made, orders.WakeAt(self._next_look_ns(now_ns))]

    def _next_look_ns(self, now_ns: int) -> int:
        """When to look again; a silence that is due already waits for the record that is being written."""
        wishes = [self.reorganizing.next_ns, self.watch.next_ns]
        if (turn := self.serving.next_turn_ns()) is not None and self.serving.has_unsent(self.backlog):
            wishes.append(turn)  # else a slot has nothing to give; what comes meanwhile is looked at when it comes
        if (idle := self.intake.next_idle_ns()) is not None and idle > now_ns:
            wishes.append(idle)
        return max(now_ns + 1, min(wishes))

    def _found_map(self, now_ns: int) -> list[Order]:
        """The first map, once the workers that were asked for are there, or some are and time has passed."""
        up = self.workforce.up()
        waited = now_ns - self._opened_ns > lost_after_ns(self.spec)
        if self.placement.map is not None or not self.placement.is_settled or not up:
            return []
        return self.placement.found(up) if len(up) >= self.spec.replicas or waited else []

    def _lose_workers(self, now_ns: int) -> list[Order]:
        made: list[Order] = []
        for worker in self.workforce.lost(now_ns):
            if self.workforce.is_up(worker):  # it stands still: if it goes on it must introduce itself again
                peer = self.workforce.peer(worker)
                made += [orders.Disconnect(peer), *self._disconnected(peer)]
            self.watch.lost(worker, now_ns)
            made += self.reorganizing.lose(worker)
        return made

    # --- connections

    def _connected(self, peer: Peer) -> list[Order]:
        made = self._disconnected(peer)
        self.watch.is_watched |= peer == OPERATOR  # an older connection, if there was one, is gone; hellos come next
        return made + (self.changing.tell(peer, self.term) if peer == OPERATOR else [])

    def _disconnected(self, peer: Peer, *, hung_up: bool = False) -> list[Order]:
        self.watch.disconnected(peer)
        if peer == self.placement.collector:
            self.placement.collector = None
        elif (worker := self._peers.pop(peer, None)) is not None:
            if self.workforce.disconnected(worker, peer):
                self.moves.give_up(worker)
        elif peer != OPERATOR:
            self.intake.sessions.disconnected(peer, hung_up=hung_up)
        return []

    def _received(self, peer: Peer, message: messages.Message, now_ns: int) -> list[Order]:
        worker = self._peers.get(peer)
        if worker is not None and not self.workforce.heard(worker, peer, now_ns):
            worker = None  # it was drained or given up; it must introduce itself again
        match message:
            case messages.Open():
                return open_session(self.intake, peer, message, self.term, now_ns)
            case messages.Describe():
                return [Send(peer, self.description)]
            case messages.Push():
                answer = self.intake.sessions.push(peer, message, self.intake.head, now_ns)
                return [] if answer is None else [orders.answer_to(peer, answer)]
            case messages.WorkerHello():
                return self._hello(peer, message, now_ns)
            case messages.CollectorHello():
                return self._hello_collector(peer, message, now_ns)
            case messages.Vector():
                is_current = peer == self.placement.collector
                self.watch.vector(message, self.intake.head, now_ns)
                return self.placement.vector(message, self.intake.head.changes) if is_current else []
            case messages.Committed():
                groups = message.groups
                self.watch.committed(message.tally, message.totals)
                self.placement.committed[groups] = np.maximum(self.placement.committed[groups], message.upto)
                return []
            case messages.Finished():
                return self._finish(now_ns)
            case messages.Pong():
                self.watch.pong(peer, message, now_ns)
                return []
            case messages.ChangeSpec():
                self.intake.change_spec(message)
                return []
            case messages.ChangeQuery() | messages.EndStreams():
                return self.changing.asked(peer, message, self.term)
            case messages.Drain() | messages.MoveGroup():
                return self.reorganizing.asked(message, self.term)
            case messages.Look() | messages.Decided():
                return self.looking.asked(peer, message, now_ns)
            case _ if worker is not None:
                return self._from_worker(worker, message, now_ns)
            case _:
                return []  # of a connection that has been replaced

    def _hello_collector(self, peer: Peer, message: messages.CollectorHello, now_ns: int) -> list[Order]:
        """The newest collector is listened to; one of a lower term has been replaced."""
        if message.term < self.collector_term:
            return [orders.Disconnect(peer)]
        older, self._told_drained = self.placement.collector, False
        self.collector_term, self.placement.collector = message.term, peer
        away: list[Order] = [orders.Disconnect(older)] if older not in (None, peer) else []
        return [*away, *self.placement.tell_collector(), self.watch.ping(peer, now_ns)]

    # --- workers

    def _hello(self, peer: Peer, message: messages.WorkerHello, now_ns: int) -> list[Order]:
        self.watch.hello(message, now_ns)
        older = self.workforce.peer(message.worker) if self.workforce.is_up(message.worker) else peer
        if not self.workforce.hello(peer, message, now_ns):
            return [orders.Disconnect(peer)]
        self._peers[peer] = message.worker
        away: list[Order] = [orders.Disconnect(older)] if older != peer else []  # it may be needed again: it must know
        self.moves.give_up(message.worker)
        self.losses.check(message.worker, message.holdings, self.backlog, now_ns)
        mine, made = self.placement.hello(message.worker, message.holdings, now_ns)
        rightly = np.isin(message.holdings.groups, mine)
        self.trimming.owned(message.holdings.groups[rightly], message.holdings.tags[rightly])
        away += self.changing.tell(peer, self.term)
        return [*away, *made, *self._found_map(now_ns), self.watch.ping(peer, now_ns)]

    def _from_worker(self, worker: WorkerId, message: messages.Message, now_ns: int) -> list[Order]:
        match message:
            case messages.Holding():
                made = self.losses.check(worker, message.holdings, self.backlog, now_ns)
                mine = self.placement.holding(worker, message.holdings, now_ns)
                rightly = np.isin(message.holdings.groups, mine)
                self.trimming.owned(message.holdings.groups[rightly], message.holdings.tags[rightly])
                return made
            case messages.CheckpointDamaged():
                return self.losses.damaged(worker, message, self.backlog, self.term, now_ns)
            case messages.Credit():
                self.workforce.credit(worker, message.nbytes)
                return []
            case messages.Checkpointed():
                current = np.isin(message.groups, self.placement.served_by(worker))
                current &= self.placement.terms_of(message.groups) == message.versions
                self.trimming.tagged(message.groups[current], message.tags[current])
                self.watch.checkpointed_ns = now_ns
                return self.moves.checkpointed(message.groups[current], self.term)
            case messages.Preloaded():
                return self.moves.preloaded(worker, message.groups, message.tags)
            case messages.ResultsLost():
                current = self.placement.terms_of(message.groups) == message.versions
                return self.reorganizing.recover(worker, message.groups[current])
            case messages.Load() | messages.Alive():
                if isinstance(message, messages.Load):
                    self.reorganizing.reported(worker, message.report)
                return []
            case _:
                raise Bug(f"a gateway cannot use {type(message).__name__} from {worker}")

    # --- records

    def _record(self, now_ns: int) -> list[Order]:
        """Cut the next record, unless one is being written or workers cannot follow."""
        if self._appending is not None or self.serving.unsent_bytes(self.backlog) > MAX_UNSENT_BYTES:
            return []
        memory = self.reorganizing.memory_share
        only = self.intake.slowest_stream() if memory > self.reorganizing.memory_high else None
        if memory >= 1:
            only = NO_STREAM  # records without rows go on: a clock or a silence may free what is held
        self._appending = self.intake.cut(self.term, now_ns, only)
        if self._appending is None:
            return []
        return [orders.AppendRecord(self.term, self._appending.number, self._appending.record)]

    def _appended(self, number: RecordNo, now_ns: int) -> list[Order]:
        cut = self._appending
        if cut is None or cut.number != number:
            raise Bug(f"record {number} was appended, but {cut.number if cut else None} is under way")
        self._appending, self.intake.head = None, cut.head
        self._recorded(cut)
        made: list[Order] = []
        for key, sequence in cut.acknowledge:
            if (peer := self.intake.sessions.peer_of(key)) is not None:
                made.append(orders.SendAcknowledge(peer, messages.Acknowledge(sequence, number)))
        for peer, message in self.intake.sessions.written():
            made += open_session(self.intake, peer, message, self.term, now_ns)
        made += [Send(peer, refused) for peer, refused in self.intake.sessions.refuse_ended(cut.head)]
        made += self.changing.recorded(cut, self.term)
        return made + self.serving.serve(self.backlog, cut.head.changes, now_ns)

    def _recorded(self, cut: Cut) -> None:
        self.watch.recorded(cut.number, cut.record)
        self.backlog.add(cut.released, cut.marks)
        self.losses.recorded(self.backlog)
        self.trimming.recorded(cut)

    # --- the end

    def _drained(self, now_ns: int) -> list[Order]:
        """Every stream has ended and all of it is committed: told to the collector, again if it comes back."""
        last = self.intake.head.next_record - 1
        done = (self.placement.committed >= last) | self.placement.stopped
        is_over = self.intake.head.ended and bool(done.all())
        if (lost := self.losses.text) is not None:  # it cannot end as if it were complete
            return [*self._overview(now_ns), orders.Stop(lost)] if is_over or self.spec.output.order == "time" else []
        if not is_over or self.placement.collector is None or self._told_drained:
            return []
        self._told_drained = True
        return [Send(self.placement.collector, messages.Drained(self.term))]

    def overview(self, now_ns: int, *, is_last: bool = False) -> messages.Overview:
        """The query as it is now; to look changes nothing."""
        load, rejected = self.reorganizing.load(), self.intake.sessions.rejections
        return self.watch.overview(load, self.intake.head, self.backlog, now_ns, rejected=rejected, is_last=is_last)

    def _overview(self, now_ns: int, *, is_last: bool = False) -> list[Order]:
        return self.watch.tell(self.overview(now_ns, is_last=is_last)) if self.watch.is_watched else []

    def _finish(self, now_ns: int) -> list[Order]:
        self.finished = True
        peers = [OPERATOR, *(self.workforce.peer(worker) for worker in self.workforce.up())]
        told = [*self._overview(now_ns, is_last=True), *(Send(peer, messages.Finished()) for peer in peers)]
        return [*told, orders.Stop("the query has ended, everything is committed")]

    def check_invariants(self) -> None:
        """Stop with a `Bug` if the machine's state contradicts itself."""
        served = self.placement.phase == Phase.SERVED
        require(bool((self.placement.sent[served] <= self.backlog.last).all()), "a group was sent what is not recorded")
        require(bool((self.trimming.trim <= self.placement.committed).all()), "trimmed past what is committed")
