"""`joinery load`: rows for a running query, made and sent by Spark (docs/spark.md)."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from joinery.adapters.extras import how_to_get
from joinery.adapters.security import TOKEN
from joinery.cli.complaining import complaining
from joinery.cli.load_request import PROFILES, duration, read_profile
from joinery.cli.query_file import parsed
from joinery.cli.running import gateway_of
from joinery.cli.words import counted, number
from joinery.cli.words import duration as duration_text
from joinery.model.errors import UserMustAct

if TYPE_CHECKING:
    from joinery.spark.loading import Load, Sent, Whole

LOAD_HELP = f"""Send generated rows to a running query at a rate that rises and falls, by Spark.

\b
  joinery load query.yaml --profile step:500,3000,20s --duration 60s
  joinery load query.yaml --gateway 127.0.0.1:7400 --stream orders --end

Every stream of the query gets the profile, its producers share it. Rows are
made by the query's generators (a stream without one: their defaults), the
same ones in every run of a seed. Times in the rows begin with 1970.

Profiles: {", ".join(PROFILES[:3])},
{", ".join(PROFILES[3:])}.

Exit codes: 0 every row is recorded, 1 it was broken off, 2 the words of the
command or the query do not fit.
"""


@complaining
def load(
    query: Annotated[Path, typer.Argument(help="The query's file.", show_default=False)],
    gateway: Annotated[
        str | None, typer.Option("--gateway", help="HOST:PORT; found by the file if it runs here.")
    ] = None,
    stream: Annotated[list[str] | None, typer.Option("--stream", help="Only this one; may be repeated.")] = None,
    profile: Annotated[str, typer.Option("--profile", help="Rows per second over time.")] = "constant:1000",
    for_: Annotated[str, typer.Option("--duration", help="How long.")] = "30s",
    producers: Annotated[int, typer.Option("--producers", min=1, max=64, help="Of each stream.")] = 1,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of everything random.")] = 0,
    name: Annotated[str, typer.Option("--name", help="Of the producers; another one for another load.")] = "load",
    unpaced: Annotated[bool, typer.Option("--unpaced", help="As fast as the query takes them.")] = False,
    end: Annotated[bool, typer.Option("--end", help="The producers will send no more.")] = False,
    tls: Annotated[Path | None, typer.Option("--tls", help="Folder with ca.crt, tls.crt, tls.key.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="What was sent, as JSON on standard output.")] = False,
) -> None:
    """Make, send, tell."""
    spec = parsed(query)
    names = [one.name for one in spec.streams]
    for one in stream or ():
        if one not in names:
            raise UserMustAct(f"--stream: found {one}, wanted one of {', '.join(names)}; correct it")
    try:
        from joinery.spark import loading, session  # noqa: PLC0415 - Spark is an extra
    except ImportError as error:
        raise UserMustAct(f"found no PySpark ({error}), wanted it; {how_to_get('spark')}") from error
    length_ns = duration("--duration", for_)
    wanted = loading.Load(
        gateway or gateway_of(str(query)), spec, tuple(stream or names), read_profile(profile, length_ns), length_ns,
        producers, seed, name, not unpaced, end,
    )  # fmt: skip
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    options = {} if tls is None else {"tls": str(tls.resolve())}
    if TOKEN in os.environ:
        options["token"] = os.environ[TOKEN]
    with session.local("joinery load", slots=len(wanted.streams) * producers) as spark:
        told = loading.send(wanted, spark, options)
    _tell(told, loading.Whole.of(told), wanted, as_json=as_json)


def _tell(told: "Sequence[Sent]", whole: "Whole", wanted: "Load", *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({**whole.to_dict(), "producers": [asdict(one) for one in told]}))
        return
    pace = f", {duration_text(whole.behind_s)} behind" if wanted.is_paced else ""
    typer.echo(f"sent {number(whole.sent)}, acknowledged {number(whole.acknowledged)} rows ", nl=False)
    typer.echo(f"in {duration_text(whole.seconds)}: {number(round(whole.rate))} rows/s ", nl=False)
    typer.echo(f"by {counted(len(told), 'producer')}{pace}")
