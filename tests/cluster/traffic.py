"""Runs in a pod, as a user's program would: pushes two streams into a query, reads its results, compares.

    python traffic.py GATEWAY --phases 500x20,2000x30,500x30 [--window-s 5] [--keys 5000]

Phases are rows per second and stream, times seconds. The last line of the output is the verdict, as JSON.
The oracle is its own: which pairs there must be follows from the times alone.
"""

import argparse
import json
import os
import sys
import threading
import time
from typing import Any

import numpy as np
import pyarrow as pa

from joinery.client import connect

EPOCH_US = 1_700_000_000_000_000
TICK_S = 0.1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gateway")
    parser.add_argument("--phases", default="500x10")
    parser.add_argument("--window-s", type=float, default=5)
    parser.add_argument("--keys", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tls", default=None)
    asked = parser.parse_args()
    phases = [tuple(map(float, one.split("x"))) for one in asked.phases.split(",")]
    left, right = (stream(phases, asked.keys, asked.seed + number) for number in (0, 1))
    token = os.environ.get("JOINERY_TOKEN") or None
    threading.excepthook = _end
    with connect(asked.gateway, timeout=120, patience=180, tls=asked.tls, token=token) as query:
        say(f"connected; {left['ts'].size} rows in each stream")
        results: list[pa.RecordBatch] = []
        reading = threading.Thread(target=lambda: results.extend(query.results()), daemon=True)
        query._talk.reserve()
        pushing = [
            threading.Thread(target=push, args=(query, name, rows, phases))
            for name, rows in (("a", left), ("b", right))
        ]
        for one in (*pushing, reading):
            one.start()
        for one in (*pushing, reading):
            one.join()
    verdict = compare(left, right, results, asked.window_s)
    say(json.dumps(verdict))
    return 0 if verdict["missing"] == verdict["extra"] == verdict["duplicate"] == 0 and verdict["wanted"] else 1


def _end(failed: threading.ExceptHookArgs) -> None:
    """What fails in a thread fails the whole."""
    threading.__excepthook__(failed)
    os._exit(2)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def stream(phases: list[Any], keys: int, seed: int) -> dict[str, Any]:
    """Rows of all phases: their times are when they are to be pushed."""
    times, at = [], 0.0
    for rate, seconds in phases:
        times.append(at + np.arange(int(rate * seconds)) / rate)
        at += seconds
    seconds = np.concatenate(times)
    key = np.random.default_rng(seed).integers(0, keys, seconds.size)
    return {"k": key, "n": np.arange(seconds.size), "ts": EPOCH_US + (seconds * 1e6).astype(np.int64)}


def push(query: Any, name: str, rows: dict[str, Any], phases: list[Any]) -> None:
    """In real time, a tick at once."""
    began, sent = time.monotonic(), 0
    whole = sum(seconds for _, seconds in phases)
    while sent < rows["ts"].size:
        now = time.monotonic() - began
        upto = int(np.searchsorted(rows["ts"], EPOCH_US + int(now * 1e6)))
        if upto > sent:
            query.push(name, pa.record_batch({column: values[sent:upto] for column, values in rows.items()}))
            sent = upto
        time.sleep(TICK_S)
        if int(now / 10) != int((now - TICK_S) / 10):
            say(f"{name}: {sent} rows after {now:.0f} of {whole:.0f} s")
    query.end(name)
    say(f"{name}: all {sent} rows are recorded")


def compare(left: dict[str, Any], right: dict[str, Any], results: list[pa.RecordBatch], window_s: float) -> Any:
    """Pairs by their row numbers: wanted against found."""
    wanted = np.sort(pairs(left, right, int(window_s * 1e6)))
    found = [pair(batch["a_n"].to_numpy(), batch["b_n"].to_numpy()) for batch in results if batch.num_rows]
    got, counts = np.unique(np.concatenate(found) if found else np.empty(0, np.int64), return_counts=True)
    return {
        "wanted": int(wanted.size),
        "missing": int(np.setdiff1d(wanted, got).size),
        "extra": int(np.setdiff1d(got, wanted).size),
        "duplicate": int((counts - 1).sum()),
    }


def pair(a: Any, b: Any) -> Any:
    return a.astype(np.int64) << 32 | b.astype(np.int64)


def pairs(left: dict[str, Any], right: dict[str, Any], window_us: int, start_us: int = EPOCH_US) -> Any:
    """Equal keys, at most a window apart: rows of the right, by key and time, are a range for each of the left."""
    span = 1 << 42
    codes = right["k"] * span + (right["ts"] - start_us)
    order = np.argsort(codes, kind="stable")
    base = left["k"] * span + (left["ts"] - start_us)
    low = np.searchsorted(codes[order], np.maximum(base - window_us, left["k"] * span), "left")
    high = np.searchsorted(codes[order], base + window_us, "right")
    sizes = high - low
    places = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(low, sizes)
    return pair(np.repeat(left["n"], sizes), right["n"][order][places])


if __name__ == "__main__":
    sys.exit(main())
