"""Runs in a pod, as a user's program would: pushes rows into one stream of a query in real time, and ends it.

    python pushing.py GATEWAY STREAM --rate 1000 --seconds 60 --keys 5000 --tls FOLDER

The rows follow from the flags alone. Four of five have a key of the lowest tenth.
"""

import argparse
import os
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa

from joinery.client import connect

TICK_S = 0.1


def rows_of(count: int, keys: int) -> dict[str, Any]:
    """Columns k, n, ts."""
    draw = np.random.default_rng(7)
    hot = draw.integers(0, max(1, keys // 10), count)
    number = np.arange(count)
    return {"k": np.where(draw.random(count) < 0.8, hot, draw.integers(0, keys, count)), "n": number, "ts": number}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gateway")
    parser.add_argument("stream")
    parser.add_argument("--rate", type=int, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--tls", default=None)
    asked = parser.parse_args()
    rows = rows_of(asked.rate * asked.seconds, asked.keys)
    token = os.environ.get("JOINERY_TOKEN") or None
    with connect(asked.gateway, timeout=120, patience=240, tls=asked.tls, token=token) as query:
        began, sent = time.monotonic(), 0
        while sent < rows["n"].size:
            upto = min(int((time.monotonic() - began) * asked.rate), rows["n"].size)
            if upto > sent:
                query.push(asked.stream, pa.record_batch({name: held[sent:upto] for name, held in rows.items()}))
                sent = upto
            time.sleep(TICK_S)
        query.end(asked.stream)
    sys.stdout.write(f"{sent} rows are recorded\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
