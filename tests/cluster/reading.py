"""Runs in a pod, as a user's program would: reads all results of a query to its end, and tells what they come to.

    python reading.py GATEWAY [--tls FOLDER]

The last line of the output is JSON: how many results there were, and a digest that knows each of them but no order.
"""

import argparse
import json
import os
import sys
from typing import Any

import numpy as np

from joinery.client import connect

COLUMNS = ("a_k", "a_number", "a_ts", "b_number", "b_ts")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gateway")
    parser.add_argument("--tls", default=None)
    asked = parser.parse_args()
    token = os.environ.get("JOINERY_TOKEN") or None
    found, digest = 0, 0
    with connect(asked.gateway, timeout=120, patience=180, tls=asked.tls, token=token) as query:
        for rows in query.results():
            found += rows.num_rows
            digest = (digest + digest_of([rows[name].to_numpy() for name in COLUMNS])) % 2**64
    sys.stdout.write(json.dumps({"results": found, "digest": digest}) + "\n")
    return 0


def digest_of(columns: list[Any]) -> int:
    """The sum of a mixed word of each row: the same for the same rows in any order, and for nothing else."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.int64).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return int(mixed.sum(dtype=np.uint64))


if __name__ == "__main__":
    sys.exit(main())
