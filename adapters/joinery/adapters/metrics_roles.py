"""What each role's `/metrics` shows, read from its machine on the machine's own thread (`Shell.look`)."""

from collections.abc import Callable, Iterator

from joinery.adapters.http_probes import Answer, Page, Probes
from joinery.adapters.metrics import Sample, own_samples, page_of
from joinery.adapters.process import Process
from joinery.elastic.load import Role
from joinery.flow.delays import Delays
from joinery.machine.collector import CollectorMachine
from joinery.machine.gateway import GatewayMachine
from joinery.machine.messages import EventKind, Overview, WorkerView
from joinery.machine.worker import WorkerMachine
from joinery.model.errors import TryAgain
from joinery.model.spec import JoinQuerySpec
from joinery.model.time import TIME_MAX, TIME_MIN


def measured(probes: Probes | None, process: Process, joinquery: str, read: Callable[[int], list[Sample]]) -> None:
    """Show what `read` finds at `/metrics`; it is given the time, between two facts of the machine."""
    if probes is not None:
        probes.pages["/metrics"] = _page(process, joinquery, read)


def _page(process: Process, joinquery: str, read: Callable[[int], list[Sample]]) -> Page:
    def page() -> Answer:
        try:
            found = process.shell.look(read)
        except TryAgain as error:
            return Answer(503, str(error))
        return page_of([*found, *own_samples(process.shell.waiting_facts)], {"joinquery": joinquery})

    return page


# --- gateway


def gateway_samples(machine: GatewayMachine) -> Callable[[int], list[Sample]]:
    """Everything that the gateway knows of its query."""
    return lambda now_ns: list(_of_gateway(machine, now_ns)) if machine.is_open else []


def _of_gateway(machine: GatewayMachine, now_ns: int) -> Iterator[Sample]:
    role = "joinery_gateway"
    yield from overview_samples(machine.overview(now_ns), machine.spec, now_ns)
    for kind in EventKind:
        yield Sample(f"{role}_events_total", machine.watch.events_by_kind[kind], {"kind": kind.value})
    for (action, held), count in machine.looking.outcomes.items():
        yield Sample(f"{role}_scaling_decisions_total", count, {"action": action.value, "blocked_by": held})
    yield Sample(f"{role}_backlog_tuples", machine.serving.unsent_rows(machine.backlog))
    yield Sample(f"{role}_tuples_dropped_total", machine.losses.rows)
    pauses_of = machine.placement.handovers.pauses
    for result, count in (
        ("moved", pauses_of[True].rows),
        ("recovered", pauses_of[False].rows),
        ("given_up", machine.moves.given_up),
        ("state_lost", machine.losses.groups),
    ):
        yield Sample(f"{role}_migrations_total", count, {"result": result})
    for planned, pauses in pauses_of.items():
        yield Sample(f"{role}_migration_pause_seconds", pauses, {"kind": "planned" if planned else "lost"})


def overview_samples(view: Overview, spec: JoinQuerySpec, now_ns: int) -> Iterator[Sample]:
    """What an overview tells; a runner that sees only these can show them too."""
    role = "joinery_gateway"
    yield from _of_streams(view, [stream.name for stream in spec.streams], now_ns)
    for name, value in (
        ("batches_rejected_total", view.rejected),
        ("records_total", view.records),
        ("results_total", view.results),
        ("uncommitted_records", view.records - view.uncommitted),
        ("backlog_bytes", view.unsent_bytes),
        ("backlog_peak_bytes", view.unsent_peak_bytes),
        ("replay_bytes", view.replay_bytes),
        ("slot_epoch_seconds", view.epoch_ns / 1e9),
        ("degree_workers", view.degree),
        ("replicas_wanted", spec.replicas),
        ("suppliers", view.n_sup),
        ("consumers", view.n_con),
        ("beta_ratio", spec.scaling.beta),
        ("map_version", view.map_version),
        ("migrations_under_way", len(view.under_way)),
    ):
        yield Sample(f"{role}_{name}", value)
    if view.stored_bytes:
        yield Sample(f"{role}_stored_bytes", view.stored_bytes)
    if view.checkpointed_ns:
        yield Sample(f"{role}_checkpoint_age_seconds", max(0, now_ns - view.checkpointed_ns) / 1e9)
    for stage, delays in (("produced", view.produced), ("delivered", view.delivered)):
        yield Sample(f"{role}_result_delay_seconds", delays, {"stage": stage})
    yield from _of_slots(view)
    for worker in view.workers:
        yield from _of_owner(worker)


def _of_streams(view: Overview, names: list[str], now_ns: int) -> Iterator[Sample]:
    known = {
        name: one.watermark_ns
        for name, one in zip(names, view.streams, strict=True)
        if TIME_MIN < one.watermark_ns < TIME_MAX
    }
    for name, one in zip(names, view.streams, strict=True):
        labels = {"stream": name}
        yield Sample("joinery_gateway_tuples_received_total", one.rows, labels)
        yield Sample("joinery_gateway_tuples_late_total", one.late, labels)
        if name in known:
            yield Sample("joinery_gateway_watermark_seconds", known[name] / 1e9, labels)
            yield Sample("joinery_gateway_watermark_lag_seconds", (now_ns - known[name]) / 1e9, labels)
            behind = max(known.values()) - known[name]
            yield Sample("joinery_gateway_watermark_behind_seconds", behind / 1e9, labels)


def _of_slots(view: Overview) -> Iterator[Sample]:
    """Workers report how long their messages were under way, from the start of their slots; a slot is t_d / n_g."""
    slots = {worker.slot for worker in view.workers if worker.slot is not None}
    used: dict[int, float] = {}
    for worker in view.workers:
        if worker.slot is not None and worker.report is not None and worker.report.elapsed_s > 0:
            share = worker.report.comm_s / worker.report.elapsed_s * len(slots)
            used[worker.slot] = max(share, used.get(worker.slot, 0.0))
    for slot, share in sorted(used.items()):
        yield Sample("joinery_gateway_slot_utilization_ratio", share, {"slot": str(slot)})


def _of_owner(worker: WorkerView) -> Iterator[Sample]:
    labels, prefix = {"worker": str(worker.worker)}, "joinery_gateway_worker"
    yield Sample(f"{prefix}_up", worker.is_up, labels)
    yield Sample(f"{prefix}_groups", worker.groups, labels)
    for role in Role if worker.role is not None else ():
        yield Sample(f"{prefix}_role", worker.role is role, {**labels, "role": role.value})
    if (load := worker.report) is None:
        return
    yield Sample(f"{prefix}_occupancy_ratio", load.occupancy, labels)
    yield Sample(f"{prefix}_busy_ratio", load.busy, labels)
    yield Sample(f"{prefix}_window_bytes", load.window_bytes, labels)
    yield Sample(f"{prefix}_memory_limit_bytes", load.memory_limit, labels)
    for part in load.groups:
        group = {"partition_group": str(part.group)}
        yield Sample("joinery_gateway_partition_group_window_bytes", part.memory_bytes, group)


# --- worker and collector


def worker_samples(machine: WorkerMachine) -> Callable[[int], list[Sample]]:
    """What a worker did, and what it holds."""

    def read(now_ns: int) -> list[Sample]:
        meter, last = machine.meter, machine.meter.last
        found: dict[str, float | Delays] = {
            "tuples_joined_total": meter.rows,
            "comparisons_total": meter.comparisons,
            "busy_seconds_total": meter.busy_ns / 1e9,
            "buffer_bytes": machine.buffered_bytes,
            "buffer_limit_bytes": machine.spec.worker.buffer,
            "checkpoint_duration_seconds": machine.checkpointing.durations,
            "retained_bytes": machine.retained_bytes,
            "groups": int(machine.here.sum()),
            "groups_loading": int(((machine.versions > 0) & ~machine.here).sum()),
            "gateway_up": machine.gateway_up,
            "collector_up": machine.collector_up,
        }
        if machine.spec.table is not None:
            deferred = machine.deferred
            found |= {
                "table_waiting_rows": deferred.waiting_rows,
                "table_waiting_messages": deferred.waiting_messages,
                "table_segments_read_total": deferred.segments_read,
                "table_read_bytes_total": deferred.bytes_read,
            }
        if last is not None:
            found |= {"occupancy_ratio": last.occupancy, "window_bytes": last.window_bytes}
        if meter.oldest_ns is not None:
            found["state_oldest_event_age_seconds"] = (now_ns - machine.clock_ahead_ns - meter.oldest_ns) / 1e9
        return [Sample(f"joinery_worker_{name}", value) for name, value in found.items()]

    return read


def collector_samples(machine: CollectorMachine) -> Callable[[int], list[Sample]]:
    """What is committed."""

    def read(now_ns: int) -> list[Sample]:
        del now_ns
        last = machine.last_commit
        found = {
            "results_total": last.totals.results,
            "commits_total": last.number,
            "uncommitted_results": machine.held_rows,
            "groups_behind": int((machine.taken > machine.committed).sum()),
            "ready": machine.is_ready,
        }
        late = [
            Sample("joinery_collector_tuples_late_total", last.totals.late_of(number), {"stream": stream.name})
            for number, stream in enumerate(machine.spec.streams)
        ]
        return [*(Sample(f"joinery_collector_{name}", value) for name, value in found.items()), *late]

    return read
