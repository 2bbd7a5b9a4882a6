"""What a run comes to, at its end: for people as lines, for machines as one JSON object with the same numbers."""

from pathlib import Path
from typing import Any

import numpy as np

from joinery.cli.progress import Progress
from joinery.cli.query_file import late_outputs
from joinery.cli.words import counted, duration, number, size
from joinery.elastic.beta import Decision
from joinery.flow.delays import Delays
from joinery.model.spec_sections import SinkSpec


def as_json(
    progress: Progress, folder: Path, decision: Decision | None, *, seconds: float, ended: bool, failed: str | None
) -> dict[str, Any]:
    """All numbers; times in seconds, sizes in bytes."""
    view, spec = progress.last, progress.spec
    seen = zip(spec.streams, view.streams if view else (), strict=False)
    streams = [(one.name, got) for one, got in seen if one.table is None]  # the rows of a stored table do not come in
    began = progress.degrees[0][0] if progress.degrees else 0
    return {
        "query": progress.name,
        "state": "done" if ended else "failed" if failed else "stopped",
        "error": failed,
        "seconds": round(seconds, 3),
        "rows": {name: got.rows for name, got in streams},
        "late": {
            "rows": {name: got.late for name, got in streams},
            "files": {name: str(path) for name, path in late_outputs(spec, folder)},
            "isKept": spec.late is not None,
        },
        "results": view.results if view else 0,
        "sinks": [_sink(sink, folder) for sink in spec.sinks],
        "degree": [{"at": round((at - began) / 1e9, 3), "workers": workers} for at, workers in progress.degrees],
        "moves": _moves(progress),
        "delaysSinceRestart": progress.began_anew,
        "delay": _delays(view.produced if view else Delays()),
        "delivery": _delays(view.delivered if view else Delays()),
        "unsentPeakBytes": view.unsent_peak_bytes if view else 0,
        "replayBytes": view.replay_bytes if view else 0,
        "redisBytes": progress.stored_peak or None,
        "mapVersion": view.map_version if view else 0,
        "workers": _workers(progress),
        "lastDecision": _decision(decision),
        "notes": progress.notes,
    }


def _sink(sink: SinkSpec, folder: Path) -> dict[str, Any]:
    if sink.file is not None:
        path = folder / sink.file.path
        return {"file": str(path), "bytes": path.stat().st_size if path.is_file() else None}
    if sink.redis_stream is not None:
        return {"redisStream": sink.redis_stream.key}
    return {"stdout" if sink.stdout is not None else "count": {}}


def _moves(progress: Progress) -> dict[str, Any]:
    pauses = [move.pause_ns / 1e9 for move in progress.moves if move.pause_ns is not None]
    return {
        "count": progress.last.moves_done if progress.last else 0,
        "pauseMedian": float(np.median(pauses)) if pauses else None,
        "pauseMax": max(pauses, default=None),
        "newest": [
            {
                "group": move.group, "from": move.source, "to": move.target, "bytes": move.nbytes,
                "planned": move.is_planned, "pause": (move.pause_ns or 0) / 1e9,
            }
            for move in progress.moves[-20:]
        ],
    }  # fmt: skip


def _delays(delays: Delays) -> dict[str, Any]:
    named = {"p50": delays.percentile_ns(0.5), "p99": delays.percentile_ns(0.99), "max": delays.max_ns}
    return {"results": delays.rows, "mean": delays.mean_ns / 1e9, **{key: ns / 1e9 for key, ns in named.items()}}


def _workers(progress: Progress) -> list[dict[str, Any]]:
    found = []
    for worker in progress.last.workers if progress.last else ():
        one: dict[str, Any] = {
            "worker": worker.worker, "role": worker.role and worker.role.value, "groups": worker.groups,
            "clockAhead": worker.clock_ahead_ns / 1e9,
        }  # fmt: skip
        if (load := worker.report) is not None:
            one |= {
                "occupancy": load.occupancy, "busy": load.busy, "windowBytes": load.window_bytes, "cpu": load.cpu_s,
                "idle": load.idle_s, "comm": load.comm_s, "comparisons": load.comparisons, "epoch": load.elapsed_s,
            }  # fmt: skip
        found.append(one)
    return found


def _decision(decision: Decision | None) -> dict[str, Any] | None:
    if decision is None:
        return None
    inputs = decision.inputs
    return {
        "action": type(decision).__name__.lower(), "because": decision.because, "nSup": inputs.n_sup,
        "nCon": inputs.n_con, "beta": inputs.rule.beta, "busy": inputs.busy,
        "blockedBy": list(getattr(decision, "blocked_by", ())),
    }  # fmt: skip


def as_lines(told: dict[str, Any]) -> list[str]:
    """The same for people."""
    lines = [_head(told)]
    lines.append(_line("rows in", ", ".join(f"{name} {number(rows)}" for name, rows in told["rows"].items()) or "none"))
    where = _where(told["sinks"]) if told["state"] == "done" else _where_stopped(told["sinks"])
    lines.append(_line("results", f"{number(told['results'])}{where}"))
    if late := sum(told["late"]["rows"].values()):
        lines.append(_line("late", _late(told["late"], late)))
    lines.append(_line("workers", " → ".join(str(one["workers"]) for one in told["degree"]) or "none"))
    moves = told["moves"]
    if moves["count"]:
        text = counted(moves["count"], "group")
        if moves["pauseMedian"] is not None:
            text += f", paused median {duration(moves['pauseMedian'])}, longest {duration(moves['pauseMax'])}"
        lines.append(_line("moves", text))
    if told["redisBytes"]:
        lines.append(_line("redis", f"at most {size(told['redisBytes'])} of memory"))
    delay = told["delay"]
    if delay["results"]:
        text = ", ".join(f"{key} {duration(delay[key])}" for key in ("p50", "p99", "max"))
        since = ", since the gateway's restart" if told["delaysSinceRestart"] else ""
        lines.append(_line("delay", f"{text} (arrival of the later row to result made{since})"))
    return lines + [_line("note", note) for note in told["notes"]]


def _head(told: dict[str, Any]) -> str:
    took = duration(told["seconds"])
    match told["state"]:
        case "done":
            return f"{told['query']}: done in {took}"
        case "failed":
            return f"{told['query']}: failed after {took}: {told['error']}"
        case _:
            return f"{told['query']}: stopped after {took}; the files of its sinks are as they were"


def _line(name: str, text: str) -> str:
    return f"  {name:<8} {text}"


def _where(sinks: list[dict[str, Any]]) -> str:
    """Where results went: files by name and size, the rest by kind."""
    places = []
    for sink in sinks:
        if "file" in sink:
            there = "not written" if sink["bytes"] is None else size(sink["bytes"])
            places.append(f"{sink['file']} ({there})")
        elif "redisStream" in sink:
            places.append(f"Redis Stream {sink['redisStream']}")
        elif "stdout" in sink:
            places.append("standard output")
    return f" in {', '.join(places)}" if places else " (counted, not kept)"


def _where_stopped(sinks: list[dict[str, Any]]) -> str:
    """The same of a run that did not end: files are written at the end, the others with each commit."""
    at_once = [sink for sink in sinks if "redisStream" in sink or "stdout" in sink]
    if not at_once:
        return " committed, but not written"
    return f" committed,{_where(at_once)}" + (", but not in files" if any("file" in sink for sink in sinks) else "")


def _late(late: dict[str, Any], rows: int) -> str:
    which = ", ".join(f"{name} {number(count)}" for name, count in late["rows"].items() if count)
    files = [path for name, path in late["files"].items() if late["rows"].get(name)]
    where = f" in {', '.join(files)}" if files else "" if late["isKept"] else ", not kept"
    return f"{counted(rows, 'row')} ({which}){where}"


def late_warning(told: dict[str, Any]) -> str | None:
    """What whoever reads nothing else must know: rows are in no result, nor anywhere else. None: there are none."""
    late = {name: rows for name, rows in told["late"]["rows"].items() if rows}
    if not late or told["late"]["isKept"]:
        return None
    which = ", ".join(f"{number(rows)} of {number(told['rows'][name])} of {name}" for name, rows in late.items())
    return (
        f"WARNING: found late rows, which are in no result: {which}; sort them by time, or allow for more disorder: "
        "spec.streams[].time.lateness, with --sql --lateness 1h (late: {sink: {file: {path: late.csv}}} keeps them)"
    )
