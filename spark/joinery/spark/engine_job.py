"""The driver of a query with `engine: spark` in a cluster: `python -m joinery.spark.engine_job --query FILE ...`.

Its last words are a line of JSON that the operator reads: what the query came to, or `failed` and why. Sinks are
written whole at the end, so a driver that dies is started again and begins anew: nothing is lost or there twice.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from joinery.adapters.settings import CANNOT_RUN
from joinery.model.errors import UserMustAct
from joinery.model.spec import JoinQuery
from joinery.spark import engine, session
from joinery.spark.load_job import MAX_WORDS, reason_of, say

_REFUSED: Final = f"{UserMustAct.__module__}.{UserMustAct.__name__}"
"""How the words of a Python that Spark started begin, if it was that."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if the query was run to its end; `CANNOT_RUN` if another try would end the same."""
    parser = argparse.ArgumentParser(prog="python -m joinery.spark.engine_job", description=__doc__)
    parser.add_argument("--query", type=Path, required=True, help="the JoinQuery file")
    parser.add_argument("--shared", type=Path, required=True, help="a folder that the executors have, too")
    parser.add_argument("--slots", type=int, required=True, help="tasks of all executors")
    parser.add_argument("--last-words", type=Path, required=True, help="where to say what came of it")
    asked = parser.parse_args(arguments)
    try:
        done = _run(asked)
    except UserMustAct as refused:
        say(asked.last_words, {"failed": str(refused)[-MAX_WORDS:]})
        return CANNOT_RUN
    except (PySparkException, Py4JJavaError) as error:
        text = reason_of(error)
        say(asked.last_words, {"failed": text[-MAX_WORDS:]})
        return CANNOT_RUN if text.startswith(_REFUSED) else 1
    say(asked.last_words, asdict(done))
    return 0


def _run(asked: argparse.Namespace) -> engine.Outcome:
    query = JoinQuery.parse_yaml(asked.query.read_text())
    for left in asked.shared.glob("joinery-spark-*"):  # of a driver before us
        shutil.rmtree(left, ignore_errors=True)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with session.local("joinery query", asked.slots) as spark:
        return engine.run(query.spec, asked.query.parent, spark, asked.shared)


if __name__ == "__main__":
    sys.exit(main())
