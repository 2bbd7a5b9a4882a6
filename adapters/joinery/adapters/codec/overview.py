"""The overview of a query on the wire (control.proto): for whoever looks, nothing is decided by it."""

from typing import Final

from joinery.adapters.codec.errors import WireError
from joinery.adapters.codec.fields import (
    LONGEST_TEXT,
    MIN_I64,
    choice,
    flag,
    inner,
    maybe_number,
    number,
    real,
    text,
)
from joinery.adapters.codec.shared import (
    read_delays,
    read_report,
    read_windows,
    write_delays,
    write_report,
    write_windows,
)
from joinery.elastic.load import Role
from joinery.join.plan import JoinPlan
from joinery.machine.messages import Event, EventKind, MoveView, Overview, SettingsView, StreamView, WorkerView
from joinery.model.ids import GroupId, MapVersion, RecordNo, WorkerId
from joinery.v1 import control_pb2 as wire

ROLE_TO_WIRE: Final = {
    Role.SUPPLIER: wire.LOAD_ROLE_SUPPLIER,
    Role.CONSUMER: wire.LOAD_ROLE_CONSUMER,
    Role.NEUTRAL: wire.LOAD_ROLE_NEUTRAL,
}
ROLES: Final = {number: role for role, number in ROLE_TO_WIRE.items()}


def write_overview(view: Overview) -> wire.Overview:
    """An overview."""
    return wire.Overview(
        at_ns=view.at_ns,
        records=view.records,
        streams=[
            wire.StreamView(rows=one.rows, late_rows=one.late, rows_per_s=one.rows_per_s, watermark_ns=one.watermark_ns)
            for one in view.streams
        ],
        workers=[_write_worker(one) for one in view.workers],
        degree_workers=view.degree,
        suppliers=view.n_sup,
        consumers=view.n_con,
        map_version=view.map_version,
        results_rows=view.results,
        late_rows=view.late,
        produced=write_delays(view.produced),
        delivered=write_delays(view.delivered),
        moves=[_write_move(one) for one in view.moves],
        moves_done=view.moves_done,
        under_way=[_write_move(one) for one in view.under_way],
        events=[wire.EventView(at_ns=one.at_ns, kind=one.kind, text=one.text) for one in view.events],
        events_seen=view.events_seen,
        unsent_bytes=view.unsent_bytes,
        unsent_peak_bytes=view.unsent_peak_bytes,
        replay_bytes=view.replay_bytes,
        epoch_ns=view.epoch_ns,
        is_last=view.is_last,
        uncommitted_record=view.uncommitted,
        rejected_batches=view.rejected,
        checkpointed_ns=view.checkpointed_ns,
        stored_bytes=view.stored_bytes,
        settings=None if view.settings is None else _write_settings(view.settings),
    )


def _write_settings(view: SettingsView) -> wire.SettingsView:
    return wire.SettingsView(
        changes=view.changes,
        replicas_workers=view.replicas,
        beta=view.beta,
        supplier_threshold=view.supplier_threshold,
        consumer_threshold=view.consumer_threshold,
        windows=write_windows(view.windows),
    )


def _write_worker(view: WorkerView) -> wire.WorkerView:
    return wire.WorkerView(
        worker=view.worker,
        is_up=view.is_up,
        groups=view.groups,
        role=None if view.role is None else ROLE_TO_WIRE[view.role],
        report=None if view.report is None else write_report(view.report),
        clock_ahead_ns=view.clock_ahead_ns,
        slot=view.slot,
    )


def _write_move(move: MoveView) -> wire.MoveView:
    return wire.MoveView(
        group=move.group,
        source=move.source,
        target=move.target,
        window_bytes=move.nbytes,
        is_planned=move.is_planned,
        begun_ns=move.begun_ns,
        pause_ns=move.pause_ns,
    )


def read_overview(message: wire.Overview, plan: JoinPlan) -> Overview:
    """An overview."""
    if len(message.streams) != plan.streams:
        raise WireError("Overview.streams", f"{len(message.streams)} streams", f"{plan.streams}")
    return Overview(
        at_ns=number(message, "at_ns", MIN_I64),
        records=RecordNo(number(message, "records")),
        streams=tuple(_read_stream(one) for one in message.streams),
        workers=tuple(_read_worker(one, plan) for one in message.workers),
        degree=number(message, "degree_workers"),
        n_sup=number(message, "suppliers"),
        n_con=number(message, "consumers"),
        map_version=MapVersion(number(message, "map_version")),
        results=number(message, "results_rows"),
        late=number(message, "late_rows"),
        produced=read_delays(inner(message, "produced")),
        delivered=read_delays(inner(message, "delivered")),
        moves=tuple(_read_move(one, plan) for one in message.moves),
        moves_done=number(message, "moves_done"),
        under_way=tuple(_read_move(one, plan) for one in message.under_way),
        events=tuple(_read_event(one) for one in message.events),
        events_seen=number(message, "events_seen"),
        unsent_bytes=number(message, "unsent_bytes"),
        unsent_peak_bytes=number(message, "unsent_peak_bytes"),
        replay_bytes=number(message, "replay_bytes"),
        epoch_ns=number(message, "epoch_ns"),
        is_last=flag(message, "is_last"),
        uncommitted=number(message, "uncommitted_record"),
        rejected=number(message, "rejected_batches"),
        checkpointed_ns=number(message, "checkpointed_ns", MIN_I64),
        stored_bytes=number(message, "stored_bytes"),
        settings=_read_settings(message.settings, plan) if message.HasField("settings") else None,
    )


def _read_settings(message: wire.SettingsView, plan: JoinPlan) -> SettingsView:
    return SettingsView(
        changes=number(message, "changes"),
        windows=read_windows(message.windows, plan),
        replicas=number(message, "replicas_workers"),
        beta=real(message, "beta"),
        supplier_threshold=real(message, "supplier_threshold"),
        consumer_threshold=real(message, "consumer_threshold"),
    )


def _read_stream(message: wire.StreamView) -> StreamView:
    return StreamView(
        rows=number(message, "rows"),
        late=number(message, "late_rows"),
        rows_per_s=real(message, "rows_per_s"),
        watermark_ns=number(message, "watermark_ns", MIN_I64),
    )


def _read_worker(message: wire.WorkerView, plan: JoinPlan) -> WorkerView:
    return WorkerView(
        worker=WorkerId(text(message, "worker")),
        is_up=flag(message, "is_up"),
        groups=number(message, "groups"),
        role=choice("WorkerView.role", message.role, ROLES) if message.HasField("role") else None,
        report=read_report(message.report, plan) if message.HasField("report") else None,
        clock_ahead_ns=number(message, "clock_ahead_ns", MIN_I64),
        slot=maybe_number(message, "slot"),
    )


def _read_move(message: wire.MoveView, plan: JoinPlan) -> MoveView:
    return MoveView(
        group=GroupId(number(message, "group", 0, plan.partitions - 1)),
        source=WorkerId(text(message, "source")),
        target=WorkerId(text(message, "target")),
        nbytes=number(message, "window_bytes"),
        is_planned=flag(message, "is_planned"),
        begun_ns=number(message, "begun_ns", MIN_I64),
        pause_ns=maybe_number(message, "pause_ns"),
    )


def _read_event(message: wire.EventView) -> Event:
    kinds = {kind.value: kind for kind in EventKind}
    kind = text(message, "kind")
    if kind not in kinds:
        raise WireError("EventView.kind", kind, f"one of {sorted(kinds)}")
    return Event(number(message, "at_ns", MIN_I64), kinds[kind], text(message, "text", LONGEST_TEXT))
