"""`joinery run --engine spark`: the same query file, executed by Spark Structured Streaming (docs/spark.md)."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import typer

from joinery.adapters.extras import how_to_get
from joinery.cli.summary import late_warning
from joinery.cli.words import counted, number
from joinery.join import fitness
from joinery.model.errors import UserMustAct
from joinery.model.spec import JoinQuerySpec


def is_for_spark(spec: JoinQuerySpec, engine: str | None, flags: Mapping[str, object]) -> bool:
    """Whether Spark runs it: the flag wins over the file. What only the service has is refused."""
    if engine not in (None, "service", "spark"):
        raise UserMustAct(f"--engine: found {engine}, wanted service or spark; correct it")
    if (engine or spec.engine) != "spark":
        return False
    if given := [name for name, value in flags.items() if value]:
        raise UserMustAct(
            f"found {', '.join(given)} with engine spark, wanted none of them: they belong to the service; "
            "joinery verify --no-run holds the files that Spark wrote to the truth"
        )
    return True


def run_on_spark(query: Path, spec: JoinQuerySpec, *, as_json: bool, quiet: bool) -> None:
    """From sources to sinks; refused by name where Spark would not give the same rows."""
    try:
        from joinery.spark import engine, session  # noqa: PLC0415 - Spark is an extra
    except ImportError as error:
        raise UserMustAct(f"found no PySpark ({error}), wanted it; {how_to_get('spark')}") from error
    fitness.check(spec)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with session.local("joinery run") as spark:
        done = engine.run(spec, query.parent, spark)
    told = {
        "engine": "spark", "state": "done", "seconds": round(done.seconds, 3), "rows": done.rows,
        "late": {"rows": done.late, "isKept": spec.late is not None}, "results": done.results,
    }  # fmt: skip
    if as_json:
        typer.echo(json.dumps(told))
    elif not quiet:
        rows, late = sum(done.rows.values()), sum(done.late.values())
        typer.echo(
            f"{counted(rows, 'row')} ({number(late)} late), {counted(done.results, 'result')}, by Spark", err=True
        )
    if (warning := late_warning(told)) is not None:
        typer.echo(warning, err=True)
