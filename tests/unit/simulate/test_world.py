"""The simulated world: repeatable, honest about faults, and able to run the real machines."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from joinery.join.results import Kind
from joinery.machine import facts, messages, orders
from joinery.machine.effects import Effect
from joinery.machine.facts import Fact
from joinery.machine.log import Record, SpecChange
from joinery.machine.orders import Order, Send, Stop
from joinery.model.ids import COLLECTOR, GATEWAY, OPERATOR, GroupId, Peer, RecordNo, Term, WorkerId
from joinery.model.quantities import TimeWindow
from joinery.partition.map import PartitionMap
from joinery.simulate.outcome import Outcome
from joinery.simulate.schedule import (
    MS,
    AddWorker,
    BreakConnection,
    Change,
    Crash,
    DrainLast,
    MoveGroup,
    Pause,
    Role,
    Schedule,
    StoreDown,
)
from joinery.simulate.world import World, run
from tests.unit.simulate.toys import HEAD, Cast, Toy, point, recorder, rows, schedule, script


def heard(toy: Toy, kind: type) -> list[Any]:
    return [fact for _, fact in toy.heard if isinstance(fact, kind)]


def terms(outcome: Outcome) -> list[int]:
    """Who wrote each record."""
    return [record.term for record in outcome.history.records.values()]


def mark(number: int) -> Order:
    """An effect that does nothing."""
    return orders.SetReplicas(number, "")


# --- the run


def test_a_run_ends_when_the_gateway_has_stopped_and_whoever_is_left_is_stopped() -> None:
    outcome = run(schedule(), Cast(gateway=recorder(3)).machines())
    assert outcome.ended
    assert [0, 1, 2] == list(outcome.history.records)
    assert 2 == outcome.counts["left over"]


def test_a_schedule_gives_the_same_run_every_time() -> None:
    faults = (Crash(point(Role.GATEWAY, Effect.APPEND, 2), 5 * MS), StoreDown(10 * MS, 20 * MS))

    def told(seed: int) -> list[str]:
        return list(run(schedule(seed=seed, faults=faults), Cast(gateway=recorder(6)).machines()).story)

    assert told(4) == told(4)
    assert told(4) != told(5)


def test_a_run_that_does_not_end_is_stuck_and_says_who_is_there() -> None:
    outcome = run(schedule(deadline_ns=50 * MS))
    assert not outcome.ended
    assert "gateway/1 running" in (outcome.stuck or "")
    outcome = run(schedule(deadline_ns=50 * MS), Cast().machines())
    assert "worker-0/1 running" in (outcome.stuck or "")


def test_a_machine_that_breaks_is_named_with_the_last_events() -> None:
    def answer(toy: Toy, fact: Fact) -> list[Order]:
        if isinstance(fact, facts.Connected):
            raise ValueError(f"no {fact.peer}")
        return []

    outcome = run(schedule(), Cast(worker=answer).machines())
    assert (outcome.failed or "").startswith("worker-0/1: ValueError: no ")
    assert "worker-0/1 < Connected peer=" in (outcome.failed or "")


def test_a_machine_is_asked_for_its_invariants_after_every_fact() -> None:
    class Sick(Toy):
        def check_invariants(self) -> None:
            assert len(self.heard) < 2, "two is too much"

    machines = replace(Cast().machines(), collector=lambda *_: Sick())
    assert "two is too much" in (run(schedule(), machines).failed or "")


def test_an_order_that_the_shell_does_not_know_is_an_error() -> None:
    class Strange:
        effect = Effect.SEND

    outcome = run(schedule(), Cast(gateway=lambda *_: [Strange()]).machines())
    assert "teach it" in (outcome.failed or "")


# --- crashes


def test_a_crash_strikes_just_before_its_effect() -> None:
    cast = Cast(gateway=recorder(5))
    outcome = run(schedule(faults=(Crash(point(Role.GATEWAY, Effect.APPEND, 3), 5 * MS),)), cast.machines())
    assert outcome.ended
    assert [1, 1, 2, 2, 2] == terms(outcome)
    assert ["gateway/1", "gateway/2"] == [toy.instance for toy in cast.of("gateway")]
    assert 1 == outcome.counts["crashes"]
    assert 6 == outcome.effects[Role.GATEWAY, Effect.APPEND]


def test_crash_points_are_counted_over_all_instances() -> None:
    faults = tuple(Crash(point(Role.GATEWAY, Effect.APPEND, count), 5 * MS) for count in (2, 4))
    outcome = run(schedule(faults=faults), Cast(gateway=recorder(5)).machines())
    #  1st effect: record 0, 2nd: crash, 3rd: record 1, 4th: crash, then records 2, 3, 4
    assert [1, 2, 3, 3, 3] == terms(outcome)


def test_a_crash_point_of_any_kind_counts_every_effect_but_timers() -> None:
    def answer(toy: Toy, fact: Fact) -> list[Order]:
        if isinstance(fact, facts.Started):
            return [orders.WakeAt(0), mark(1), mark(2), orders.WakeAt(0)]
        return []

    cast = Cast(collector=answer, gateway=recorder(30))
    outcome = run(schedule(faults=(Crash(point(Role.COLLECTOR, None, 2), 5 * MS),)), cast.machines())
    marks = [line for line in outcome.story if "> SetReplicas" in line]
    assert 2 == len(cast.of("collector"))
    assert ["replicas=1", "replicas=1", "replicas=2"] == [line.split()[-2] for line in marks]


def test_a_crash_point_of_another_ordinal_does_not_strike() -> None:
    faults = (Crash(point(Role.GATEWAY, Effect.APPEND, ordinal=1), MS),)
    assert 0 == run(schedule(faults=faults), Cast(gateway=recorder(3)).machines()).counts["crashes"]


def test_what_was_under_way_to_a_store_at_a_crash_arrives_or_not() -> None:
    last = Counter[int]()
    for seed in range(30):
        #  each record is ordered together with a message; the crash strikes after the record was ordered
        def answer(toy: Toy, fact: Fact) -> list[Order]:
            made = recorder(3)(toy, fact)
            return [*made, Send(OPERATOR, messages.Alive())] if isinstance(fact, facts.GatewayOpened) else made

        faults = (Crash(point(Role.GATEWAY, Effect.SEND), 50 * MS),)
        last[terms(run(schedule(seed=seed, faults=faults), Cast(gateway=answer).machines()))[0]] += 1
    assert {1, 2} == set(last)


def test_a_crashed_process_hears_nothing_more_and_its_peers_hear_of_its_end() -> None:
    cast = Cast(gateway=recorder(100), worker=lambda *_: [mark(0)])
    run(schedule(faults=(Crash(point(Role.WORKER, Effect.SEND, 3), 50 * MS),)), cast.machines())
    first, second = cast.of("worker")
    assert 3 == len(first.heard)
    assert facts.Disconnected(Peer("worker-0#1")) in heard(cast.of("gateway")[0], facts.Disconnected)
    assert {GATEWAY, COLLECTOR} == {fact.peer for fact in heard(second, facts.Connected)}


def test_processes_that_had_stopped_come_back_if_the_gateway_crashes_before_it_has_stopped() -> None:
    def worker(toy: Toy, fact: Fact) -> list[Order]:
        return [Stop("the query has ended")] if isinstance(fact, facts.Connected) else []

    cast = Cast(gateway=recorder(30), worker=worker)
    outcome = run(schedule(faults=(Crash(point(Role.GATEWAY, Effect.STOP), 5 * MS),)), cast.machines())
    assert outcome.ended
    assert ["worker-0/1", "worker-0/2"] == [toy.instance for toy in cast.of("worker")]


# --- pauses


def test_a_paused_process_stands_still_between_its_orders_and_hears_the_rest_later() -> None:
    def answer(toy: Toy, fact: Fact) -> list[Order]:
        return [mark(1), mark(2)] if isinstance(fact, facts.Started) else []

    cast = Cast(gateway=recorder(100), collector=answer)
    faults = (Pause(point(Role.COLLECTOR, Effect.SEND, 2), 200 * MS, None),)
    outcome = run(schedule(faults=faults), cast.machines())
    moments = [float(line.split()[0]) for line in outcome.story if "> SetReplicas" in line]
    assert [0.0, 200.0] == moments
    told = [line.split() for line in outcome.story if " collector/1 < Connected" in line]
    assert {"peer=gateway", "peer=worker-0#1"} == {line[-1] for line in told}
    assert all(float(line[0]) >= 200 for line in told)


def test_a_process_that_is_replaced_goes_on_as_a_zombie_and_is_fenced() -> None:
    cast = Cast(gateway=recorder(8))
    faults = (Pause(point(Role.GATEWAY, Effect.APPEND, 3), 30 * MS, 5 * MS),)
    outcome = run(schedule(faults=faults), cast.machines())
    assert outcome.ended
    old, new = cast.of("gateway")
    assert [1, 1, 2, 2, 2, 2, 2, 2] == terms(outcome)
    assert [facts.Fenced(2)] == heard(old, facts.Fenced)
    assert [] == heard(new, facts.Fenced)
    assert 1 == outcome.counts["zombies"]


def test_a_pause_that_is_over_before_the_replacement_has_no_zombie() -> None:
    cast = Cast(gateway=recorder(8))
    faults = (Pause(point(Role.GATEWAY, Effect.APPEND, 3), 5 * MS, 30 * MS),)
    outcome = run(schedule(faults=faults), cast.machines())
    assert [1] * 8 == terms(outcome)
    assert 0 == outcome.counts["zombies"]


def test_an_instance_that_a_zombie_has_fenced_is_started_again() -> None:
    #  gateway/1 stands still before it opens the log, gateway/2 opens it, then gateway/1 does: gateway/3 is needed
    cast = Cast(gateway=recorder(40))
    outcome = run(schedule(faults=(Pause(point(Role.GATEWAY, Effect.OPEN), 60 * MS, 5 * MS),)), cast.machines())
    assert outcome.ended
    assert 3 == len(cast.of("gateway"))
    assert 3 == terms(outcome)[-1]


# --- stores


def test_the_calls_of_a_process_reach_the_stores_in_order() -> None:
    def answer(toy: Toy, fact: Fact) -> list[Order]:
        if isinstance(fact, facts.GatewayOpened):
            return [
                orders.AppendRecord(fact.term, RecordNo(number), Record(fact.term, (), (0, 0))) for number in range(5)
            ]
        return recorder(5)(toy, fact) if isinstance(fact, facts.Started) else []

    cast = Cast(gateway=answer)
    run(schedule(deadline_ns=500 * MS), cast.machines())
    assert [0, 1, 2, 3, 4] == [fact.record for fact in heard(cast.of("gateway")[0], facts.Appended)]


def test_while_the_stores_are_down_nothing_is_answered_and_calls_are_made_again() -> None:
    for seed in range(5):
        cast = Cast(gateway=recorder(12))
        outcome = run(schedule(seed=seed, faults=(StoreDown(15 * MS, 100 * MS),)), cast.machines())
        assert outcome.ended
        assert [1] * 12 == terms(outcome)
        assert outcome.counts["calls repeated"] > 0
        answered = [float(line.split()[0]) for line in outcome.story if "< Appended" in line]
        assert [] == [moment for moment in answered if 15 < moment < 115]


def test_a_call_whose_answer_is_lost_is_carried_out_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = set()
    for seed in range(20):
        world = World(schedule(seed=seed, faults=(StoreDown(15 * MS, 50 * MS),)), Cast(gateway=recorder(12)).machines())
        calls, append = Counter[int](), world.stores.log.append

        def counted(term: Term, number: RecordNo, record: Record, calls: Any = calls, append: Any = append) -> None:
            calls[number] += 1
            append(term, number, record)

        monkeypatch.setattr(world.stores.log, "append", counted)
        assert world.run().ended
        twice.add(max(calls.values()))
    assert {1, 2} == twice


def test_a_former_gateway_s_trim_is_answered_with_a_fence() -> None:
    def answer(toy: Toy, fact: Fact) -> list[Order]:
        if isinstance(fact, facts.GatewayOpened) and toy.instance == "gateway/1":
            return [orders.TrimLog(fact.term, HEAD, RecordNo(0))]
        return recorder(20)(toy, fact)

    cast = Cast(gateway=answer)
    run(schedule(faults=(Pause(point(Role.GATEWAY, Effect.TRIM), 40 * MS, 5 * MS),)), cast.machines())
    assert [facts.Fenced(2)] == heard(cast.of("gateway")[0], facts.Fenced)


# --- join modules and clocks


def test_a_module_works_through_its_orders_and_answers_one_by_one() -> None:
    def answer(toy: Toy, fact: Fact) -> list[Order]:
        if isinstance(fact, facts.Started):
            return [
                orders.TakeIncrements((GroupId(1), GroupId(2))),
                orders.MeasureState(),
                orders.TakeIncrements((GroupId(3),)),
            ]
        return []

    cast = Cast(gateway=recorder(40), worker=answer)
    run(schedule(), cast.machines())
    answers = [(now, fact.bytes_held) for now, fact in cast.of("worker")[0].heard if hasattr(fact, "bytes_held")]
    assert [1, 2, 3] == [number for _, number in answers]
    assert 3 == len({now for now, _ in answers})


def test_a_module_of_a_paused_process_stands_still() -> None:
    def answer(toy: Toy, fact: Fact) -> list[Order]:
        if isinstance(fact, facts.Started):
            return [orders.TakeIncrements((GroupId(1),)), mark(0)]
        return []

    faults = (Pause(point(Role.WORKER, Effect.SEND), 100 * MS, None),)
    outcome = run(schedule(faults=faults), Cast(gateway=recorder(40), worker=answer).machines())
    [moment] = [float(line.split()[0]) for line in outcome.story if "< StateMeasured" in line]
    assert 100.0 == moment


def test_a_clock_rings_when_it_was_asked_to_by_the_process_s_own_clock() -> None:
    for seed in range(30):
        asked: list[int] = []

        def answer(toy: Toy, fact: Fact, asked: list[int] = asked) -> list[Order]:
            now = toy.heard[-1][0]
            asked.append(now + 7 * MS)
            first: list[Order] = [orders.WakeAt(now + 1000 * MS)] if isinstance(fact, facts.Started) else []
            return [*first, orders.WakeAt(asked[-1])] if isinstance(fact, facts.Started | facts.Tick) else []

        cast = Cast(gateway=recorder(60), collector=answer)
        run(schedule(seed=seed), cast.machines())
        ticks = [now for now, fact in cast.of("collector")[0].heard if isinstance(fact, facts.Tick)]
        others = [now for now, fact in cast.of("collector")[0].heard if not isinstance(fact, facts.Tick)]
        assert len(ticks) > 10
        first, *_ = [wish for wish in asked if wish - 7 * MS == others[0]]
        assert ticks[0] >= first


def test_clocks_of_processes_differ_and_some_jump() -> None:
    offsets, jumped = set(), 0
    for seed in range(30):
        cast = Cast(gateway=recorder(60))
        outcome = run(schedule(seed=seed), cast.machines())
        true = [round(float(line.split()[0]) * MS) for line in outcome.story if " gateway/1 < " in line]
        own = [now for now, fact in cast.of("gateway")[0].heard if not isinstance(fact, facts.Tick)]
        gaps = {round((shown - moment) / 10_000) for shown, moment in zip(own, true, strict=True)}
        offsets.add(min(gaps))
        jumped += len(gaps) > 1
    assert len(offsets) > 20
    assert 0 < jumped < 20


# --- producers


class ToyProducer(Toy):
    """Takes up to two batches at a time; a batch is recorded when the clock rings."""

    recorded: list[int] = []  # noqa: RUF012 - the log, which outlives every instance

    def __init__(self) -> None:
        super().__init__()
        self.next_sequence: int | None = None
        self.waiting: list[Any] = []

    @property
    def room(self) -> bool:
        return len(self.waiting) < 2

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:
        super().handle(fact, now_ns)
        match fact:
            case facts.Started():
                return [orders.WakeAt(now_ns + 30 * MS)]
            case facts.Offered():
                assert self.room
                self.waiting.append(fact)
                return [mark(len(self.recorded))]
            case facts.Tick():
                self.next_sequence = len(self.recorded) if self.next_sequence is None else self.next_sequence
                for one in self.waiting:
                    self.recorded.append(-1 if one.rows is None else one.rows.column("n")[0].as_py())
                ended, self.waiting = any(one.end for one in self.waiting), []
                return [Stop("done")] if ended else [orders.WakeAt(now_ns + 30 * MS)]
        return []


def produced(*faults: Any) -> tuple[list[int], Outcome]:
    ToyProducer.recorded = []
    scripts = (script(0, "p", *(rows(number) for number in range(6)), every_ms=5),)
    machines = replace(Cast(gateway=recorder(100)).machines(), producer=lambda *_: ToyProducer())
    return ToyProducer.recorded, run(schedule(scripts=scripts, faults=faults), machines)


def test_batches_are_offered_when_they_are_due_and_there_is_room() -> None:
    recorded, outcome = produced()
    assert outcome.ended
    assert [0, 1, 2, 3, 4, 5, -1] == recorded


def test_a_producer_that_crashed_is_offered_what_was_not_recorded() -> None:
    for count in range(1, 8):
        recorded, outcome = produced(Crash(point(Role.PRODUCER, Effect.SEND, count), 20 * MS))
        assert outcome.ended
        assert [0, 1, 2, 3, 4, 5, -1] == recorded


# --- the operator


class ToyControl(Toy):
    """A gateway that grants wishes late, after it was asked often enough."""

    def __init__(self, asked: list[Any], patience: int) -> None:
        super().__init__(recorder(10_000))
        self.asked, self.patience = asked, patience
        self.version = 0

    def handle(self, fact: Fact, now_ns: int) -> list[Order]:
        if not isinstance(fact, facts.Received) or fact.peer != OPERATOR:
            return [] if isinstance(fact, facts.Appended) else self._only_open(fact, now_ns)
        self.asked.append(fact.message)
        self.patience -= 1
        if self.patience >= 0:
            return []
        match fact.message:
            case messages.Drain():
                return [Send(OPERATOR, messages.Empty(fact.message.workers)), orders.WakeAt(now_ns + 50 * MS)]
            case messages.MoveGroup():
                self.version += 1
                first = PartitionMap.initial(4, [WorkerId("worker-0"), WorkerId("worker-1")])
                return [orders.WriteMap(self.term, first.move({fact.message.group: fact.message.to}).to_dict())]
            case messages.ChangeSpec():
                change = SpecChange(RecordNo(0), fact.message.version, fact.message.windows, (0,), (0,), (0,), (0,))
                number = RecordNo(fact.message.version - 1)
                return [orders.AppendRecord(self.term, number, Record(self.term, (), (0, 0), (change,)))]
        return []

    def _only_open(self, fact: Fact, now_ns: int) -> list[Order]:
        made = super().handle(fact, now_ns)
        if isinstance(fact, facts.Tick):
            return [Stop("the query has ended")]
        return [] if isinstance(fact, facts.GatewayOpened) else made


def asked_for(steps: Any, faults: Any = (), patience: int = 0, **changed: Any) -> tuple[list[Any], Outcome]:
    asked: list[Any] = []
    machines = replace(Cast().machines(), gateway=lambda *_: ToyControl(asked, patience))
    return asked, run(schedule(steps=steps, faults=faults, deadline_ns=400 * MS, **changed), machines)


def test_a_drained_worker_is_taken_away_and_the_last_one_stays() -> None:
    asked, outcome = asked_for((DrainLast(40 * MS), DrainLast(60 * MS)), workers=2)
    assert [messages.Drain((WorkerId("worker-1"),))] == asked
    assert 1 == outcome.counts["drains"]


def test_a_worker_is_added_under_the_lowest_free_name() -> None:
    _, outcome = asked_for((AddWorker(10 * MS), DrainLast(40 * MS), AddWorker(70 * MS)), workers=2)
    started = [line.split()[-1] for line in outcome.story if "< Started instance=worker" in line]
    assert ["instance=worker-0/1", "instance=worker-1/1", "instance=worker-2/1", "instance=worker-2/2"] == started


def test_a_wish_is_told_again_on_every_connection_until_it_is_granted() -> None:
    breaks = tuple(BreakConnection(at * MS, "operator", "gateway") for at in (60, 120, 180, 240))
    asked, _ = asked_for((MoveGroup(40 * MS, 0, 1),), breaks, patience=2, workers=2)
    assert [messages.MoveGroup(GroupId(0), WorkerId("worker-1"))] * 3 == asked


def test_nothing_moves_to_a_worker_that_is_not_there() -> None:
    asked, _ = asked_for((MoveGroup(40 * MS, 0, 5),), workers=2)
    assert [] == asked


def test_a_change_of_the_spec_waits_for_the_one_before_it() -> None:
    steps = tuple(
        Change(40 * MS, messages.ChangeSpec(version, (TimeWindow(version),), (0,), (0,))) for version in (1, 2, 3)
    )
    asked, outcome = asked_for(steps)
    assert [1, 2, 3] == [change.version for change in asked]
    assert 3 == outcome.history.spec_version


# --- with the real machines


def real(**changed: Any) -> Schedule:
    """Two streams of 40 rows with four keys: every row meets those of its key within 100 ms."""
    scripts = tuple(
        script(stream, name, *(rows(2 * at, 2 * at + 1, k=at % 4, ts=20 * at) for at in range(20)), every_ms=8)
        for stream, name in enumerate("ab")
    )
    return schedule(scripts=scripts, workers=2, **changed)


def pairs(outcome: Outcome) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for part in outcome.sinks["sink-0"]:
        assert Kind.RESULT is part.kind
        found.update(zip(part.rows.column("a_n").to_pylist(), part.rows.column("b_n").to_pylist(), strict=True))
    return found


def wanted() -> Counter[tuple[int, int]]:
    times = {2 * at + more: (at % 4, 20 * at + more) for at in range(20) for more in (0, 1)}
    return Counter(
        (a, b)
        for a, (key, time) in times.items()
        for b, (other, when) in times.items()
        if key == other and abs(time - when) <= 100
    )


FAULTS = [
    (),
    (Crash(point(Role.GATEWAY, Effect.APPEND, 5), 30 * MS),),
    (Crash(point(Role.WORKER, Effect.EMIT, 4), 30 * MS),),
    (Crash(point(Role.COLLECTOR, Effect.COMMIT, 3), 30 * MS),),
    (Crash(point(Role.PRODUCER, Effect.SEND, 6), 30 * MS),),
    (Pause(point(Role.GATEWAY, Effect.ACKNOWLEDGE, 6), 150 * MS, 30 * MS),),
    (Pause(point(Role.WORKER, Effect.EMIT, 4), 150 * MS, 30 * MS),),
    (Pause(point(Role.COLLECTOR, Effect.STAGE, 3), 150 * MS, 30 * MS),),
    (BreakConnection(60 * MS, "worker-0", "collector"), BreakConnection(90 * MS, "a", "gateway")),
    (StoreDown(50 * MS, 40 * MS),),
]


@pytest.mark.parametrize("faults", FAULTS, ids=str)
def test_the_real_machines_give_every_pair_once_whatever_happens(faults: Any) -> None:
    steps = (AddWorker(30 * MS), MoveGroup(60 * MS, 0, 1), DrainLast(110 * MS))
    outcome = run(real(faults=faults, steps=steps))
    assert (None, None) == (outcome.failed, outcome.stuck)
    assert [] == outcome.history.complaints()
    assert wanted() == pairs(outcome)
    assert len(faults) == sum(outcome.counts[name] for name in ("crashes", "pauses", "breaks", "outages"))


def test_the_real_machines_give_the_same_run_every_time() -> None:
    once, again = (run(real(faults=FAULTS[2])) for _ in range(2))
    assert list(once.story) == list(again.story)
    assert once.counts == again.counts
