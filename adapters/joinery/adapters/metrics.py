"""Figures of a process for Prometheus: which there are, and its text format.

Rule 1: names are `joinery_<role>_<what>_<unit>`; seconds and bytes, counters end in `_total`. No label holds row data.
Rule 2: what is shown is read from the machine when somebody asks (`metrics_roles`); nothing is counted for it per row.
Rule 3: a sample of a metric that is not in the list below is a bug: docs, dashboards and alerts are tested against it.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from joinery.adapters.http_probes import Answer
from joinery.flow.delays import PER_DOUBLING, Delays
from joinery.model.errors import require

KIND: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of the format."""
BOUNDS: Final = tuple(range(18, 37))
"""A bucket of a histogram ends at 2**n ns: 0.26 ms to 69 s, where `Delays` has an edge, so the counts are exact."""
Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
Labels: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of the list."""

    name: str
    kind: Kind
    about: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """One value."""

    name: str
    value: float | Delays
    labels: Labels = field(default_factory=dict)


_GATEWAY: Final = (
    ("tuples_received_total", "Rows that are recorded, late ones too.", ("stream",)),
    ("tuples_late_total", "Rows that came too late to be joined; they are in the late output.", ("stream",)),
    (
        "tuples_dropped_total",
        "Rows that are recorded and never joined: the state of their group is lost (event `StateLost`); else 0.",
        (),
    ),
    ("batches_rejected_total", "Batches of producers that were refused.", ()),
    ("records_total", "Records of the query's log.", ()),
    ("results_total", "Results that are committed.", ()),
    ("events_total", "What happened to the query, by kind; those of this gateway process.", ("kind",)),
    ("uncommitted_records", "Records that are not committed for every group yet: the lag of the output.", ()),
    ("backlog_bytes", "Rows that wait in the mini-buffers for a slot.", ()),
    ("backlog_tuples", "The same in rows.", ()),
    ("backlog_peak_bytes", "The most that ever waited there.", ()),
    ("replay_bytes", "Rows that are kept for workers that may ask again.", ()),
    ("stored_bytes", "What Redis takes in all; absent: not known.", ()),
    ("slot_epoch_seconds", "The distribution epoch t_d: in it every worker is served once.", ()),
    (
        "slot_utilization_ratio",
        "How much of a slot goes by until the last of its workers has its messages, mean over the last report; "
        "above 1: it runs into the next slot.",
        ("slot",),
    ),
    (
        "watermark_seconds",
        "Watermark, in seconds since 1970; absent before the first row and after the end.",
        ("stream",),
    ),
    ("watermark_lag_seconds", "Clock minus watermark; of use where rows carry the time of now.", ("stream",)),
    ("watermark_behind_seconds", "How far the watermark is behind the stream that is ahead.", ("stream",)),
    ("degree_workers", "Workers in the map: the degree of declustering.", ()),
    ("replicas_wanted", "Workers that the query's spec asks for at its start.", ()),
    ("suppliers", "Overloaded workers, N_sup.", ()),
    ("consumers", "Workers with room, N_con.", ()),
    ("beta_ratio", "β: the degree grows when N_sup > β N_con.", ()),
    (
        "scaling_decisions_total",
        "Decisions about the degree, told to this gateway process: what was done, and what first held it back.",
        ("action", "blocked_by"),
    ),
    ("map_version", "Version of the partition map.", ()),
    ("worker_up", "1: the worker is connected.", ("worker",)),
    ("worker_role", "1 for the role that the worker has: supplier, consumer, neutral.", ("worker", "role")),
    ("worker_occupancy_ratio", "f: mean fill of the worker's buffer over the last epoch.", ("worker",)),
    ("worker_busy_ratio", "u: share of the last epoch in which it had rows to join.", ("worker",)),
    ("worker_window_bytes", "Windows of the worker and their index.", ("worker",)),
    ("worker_memory_limit_bytes", "What they may take (`worker.memory`).", ("worker",)),
    ("worker_groups", "Partition-groups that it owns.", ("worker",)),
    ("partition_group_window_bytes", "Window of a partition-group, as its owner reported it.", ("partition_group",)),
    ("migrations_under_way", "Groups that are about to change, or are changing, their owner.", ()),
    (
        "migrations_total",
        "Groups that changed their owner by plan (moved), or because it was lost, be it to its successor (recovered), "
        "moves that were begun and given up, groups that came nowhere because their state is lost (state_lost).",
        ("result",),
    ),
    ("migration_pause_seconds", "How long a group that changed its owner was not served.", ("kind",)),
    ("checkpoint_age_seconds", "Since an increment of a group was written last; absent: none was yet.", ()),
    ("result_delay_seconds", "Arrival of the later member to the result made (produced) or committed.", ("stage",)),
)
_WORKER: Final = (
    (
        "tuples_joined_total",
        "Rows that went through the join; those that are joined again after a loss count again.",
        (),
    ),
    ("comparisons_total", "Rows of windows that they were compared with.", ()),
    ("busy_seconds_total", "Time in which it joined.", ()),
    ("buffer_bytes", "Messages that wait for the join.", ()),
    ("buffer_limit_bytes", "Size of that buffer (`worker.buffer`).", ()),
    ("occupancy_ratio", "f of the last epoch.", ()),
    ("window_bytes", "Windows and their index, at the last report.", ()),
    (
        "state_oldest_event_age_seconds",
        "Clock minus the time of the oldest row in the windows, as of the last report; absent: there is none, or the "
        "join is with a stored table. Minus the watermark's lag: how far it is behind the watermark.",
        (),
    ),
    ("checkpoint_duration_seconds", "From the begin of a checkpoint of its groups until it is valid in Redis.", ()),
    ("retained_bytes", "Results that are kept until they are committed.", ()),
    ("groups", "Partition-groups that are loaded here.", ()),
    ("groups_loading", "Partition-groups that are on their way here.", ()),
    ("table_waiting_rows", "With a stored table: rows that waited for segments, at the last report.", ()),
    ("table_waiting_messages", "Messages whose results wait for such rows, or for messages before them.", ()),
    ("table_segments_read_total", "Segments that were read: answered probes.", ()),
    ("table_read_bytes_total", "Bytes of these segments.", ()),
    ("gateway_up", "1: connected with the gateway.", ()),
    ("collector_up", "1: connected with the collector.", ()),
)
_COLLECTOR: Final = (
    ("results_total", "Results that are committed.", ()),
    ("tuples_late_total", "Late rows that are committed.", ("stream",)),
    ("commits_total", "Commits.", ()),
    ("uncommitted_results", "Results that are taken and not committed.", ()),
    ("groups_behind", "Groups of which something is taken and not committed.", ()),
    ("ready", "1: the sinks are ready and the last commit is read.", ()),
)
_PROCESS: Final = (
    Metric(
        "joinery_process_waiting_facts", "gauge", "Facts that wait for the machine; thousands: it is the limit."
    ),
    Metric("process_cpu_seconds_total", "counter", "CPU time of the process."),
    Metric("process_resident_memory_bytes", "gauge", "Memory of the process."),
)  # fmt: skip


def _listed(role: str, lines: Iterable[tuple[str, str, tuple[str, ...]]]) -> Iterator[Metric]:
    for name, about, labels in lines:
        kind: Kind = "counter" if name.endswith("_total") else "histogram" if name in _HISTOGRAMS else "gauge"
        yield Metric(f"joinery_{role}_{name}", kind, about, ("joinquery", *labels))


_HISTOGRAMS: Final = ("migration_pause_seconds", "result_delay_seconds", "checkpoint_duration_seconds")
METRICS: Final = {
    one.name: one
    for one in (
        *_listed("gateway", _GATEWAY),
        *_listed("worker", _WORKER),
        *_listed("collector", _COLLECTOR),
        *_PROCESS,
    )
}


def text_of(samples: Iterable[Sample], shared: Labels) -> str:
    """Samples in Prometheus' text format, in the order of the list; `shared`: labels of all that have any."""
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        require(sample.name in METRICS, f"{sample.name} is not in the list of metrics")
        by_name.setdefault(sample.name, []).append(sample)
    return "\n".join(line for name, metric in METRICS.items() for line in _lines(metric, by_name.get(name, []), shared))


def _lines(metric: Metric, samples: list[Sample], shared: Labels) -> Iterator[str]:
    if samples:
        yield f"# HELP {metric.name} {_escaped(metric.about)}"
        yield f"# TYPE {metric.name} {metric.kind}"
    for sample in samples:
        labels = {**(shared if metric.labels else {}), **sample.labels}
        require(set(labels) == set(metric.labels), f"{metric.name} has labels {set(labels)}, want {metric.labels}")
        if isinstance(sample.value, Delays):
            yield from _histogram(metric.name, sample.value, labels)
        else:
            yield f"{metric.name}{_braces(labels)} {_number(sample.value)}"


def _histogram(name: str, delays: Delays, labels: Labels) -> Iterator[str]:
    below = delays.counts.cumsum()
    for power in BOUNDS:
        upto = int(below[power * PER_DOUBLING - 1])
        yield f"{name}_bucket{_braces({**labels, 'le': repr(2**power / 1e9)})} {upto}"
    yield f"{name}_bucket{_braces({**labels, 'le': '+Inf'})} {delays.rows}"
    yield f"{name}_sum{_braces(labels)} {_number(delays.total_ns / 1e9)}"
    yield f"{name}_count{_braces(labels)} {delays.rows}"


def _braces(labels: Labels) -> str:
    inside = ",".join(f'{key}="{_quoted(value)}"' for key, value in labels.items())
    return f"{{{inside}}}" if inside else ""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def own_samples(waiting_facts: int) -> Iterator[Sample]:
    """What every process knows of itself."""
    yield Sample("joinery_process_waiting_facts", waiting_facts)
    yield Sample("process_cpu_seconds_total", time.process_time())
    statm = Path("/proc/self/statm")
    if statm.exists():
        yield Sample("process_resident_memory_bytes", int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))


def page_of(samples: Iterable[Sample], shared: Labels) -> Answer:
    """The page `/metrics`."""
    return Answer(200, text_of(samples, shared), KIND)
