"""The driver of a LoadTest in a cluster: reads what the operator wrote, sends the load, says what came of it.

    spark-submit ... load.py --file load.yaml --last-words /dev/termination-log

Its last words are a line of JSON that the operator reads: what was sent, or `failed` and why.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from joinery.adapters.security import TOKEN
from joinery.generate.from_spec import load_profile_of
from joinery.model.errors import BadSpec, TryAgain, UserMustAct
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_load import LoadTestSpec
from joinery.spark.loading import Load, Whole, send

MAX_WORDS: Final = 3000
"""Kubernetes keeps 4096 bytes."""


def main(arguments: Sequence[str]) -> int:
    """0 if every row is recorded."""
    parser = argparse.ArgumentParser(prog="load_test", description=__doc__)
    parser.add_argument("--file", type=Path, required=True, help="name, gateway, load and query")
    parser.add_argument("--last-words", type=Path, required=True, help="where to say what came of it")
    parser.add_argument("--tls", help="folder with ca.crt, tls.crt, tls.key")
    asked = parser.parse_args(arguments)
    options = {} if asked.tls is None else {"tls": asked.tls}
    if token := os.environ.get(TOKEN):
        options["token"] = token
    try:
        whole = run(yaml.safe_load(asked.file.read_text()), options)
    except (BadSpec, UserMustAct, TryAgain, Py4JJavaError) as error:
        say(asked.last_words, {"failed": reason_of(error)[-MAX_WORDS:]})
        return 1
    say(asked.last_words, whole.to_dict())
    return 0


def run(held: dict[str, Any], options: dict[str, str]) -> Whole:
    """The load that a file describes, on the Spark that was submitted to."""
    load = load_of(held)
    spark = SparkSession.builder.getOrCreate()
    try:
        return Whole.of(send(load, spark, options))
    finally:
        spark.stop()


def load_of(held: dict[str, Any]) -> Load:
    """What the operator wrote, as a load."""
    wanted, spec = LoadTestSpec.parse(held["load"]), JoinQuerySpec.parse(held["query"])
    return Load(
        held["gateway"], spec, wanted.streams or tuple(stream.name for stream in spec.streams if stream.table is None),
        load_profile_of(wanted.profile), wanted.duration, wanted.producers, wanted.seed, held["name"], wanted.paced,
        wanted.end, wanted.workload,
    )  # fmt: skip


def reason_of(error: Exception) -> str:
    """Of a failed task, what its Python said; Java's story around it helps nobody."""
    text = str(error)
    said = [line.strip() for line in text.splitlines() if line.startswith("joinery.")]
    return said[-1] if said else text


def say(path: Path, words: dict[str, Any]) -> None:
    """The last words of a driver."""
    text = json.dumps(words)
    path.write_text(text)
    sys.stderr.write(f"{text}\n")
