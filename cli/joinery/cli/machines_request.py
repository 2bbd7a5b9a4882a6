"""From the words of `joinery simulate machines` to a schedule: the rows of the query's generators, or other rates.

Rows come from the generators of the streams (a stream without one gets the defaults of a generator); `--profile` and
`--trace` change when they come, not which keys they have. The query runs without its sources, sinks and retention:
producers of the simulation push, and what comes out is counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from joinery.adapters.sources.generated import GeneratedReader
from joinery.adapters.sources.pieces import Piece
from joinery.cli.load_request import Asked, Request, duration, request
from joinery.cli.query_file import parsed
from joinery.generate.from_spec import keys_of
from joinery.generate.points import Independent, PointProcess
from joinery.generate.poisson import PoissonArrivals
from joinery.join.plan import JoinPlan
from joinery.model.errors import BadSpec, Complaint
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_sections import GeneratorSpec
from joinery.model.tuples import I64Array
from joinery.simulate.load_settings import READY_NS
from joinery.simulate.schedule import MS, Schedule, Script
from joinery.simulate.scripts import script_of

MOST_ROWS: Final = 5_000_000
"""More would take hours: every row is really joined."""
PATIENCE: Final = 20
"""A query that needs so many times the length of the run to drain is told to be stuck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinesRequest:
    """What is simulated."""

    told: Request
    """The same, as the load simulator would be asked: title, settings, costs and rates."""
    schedule: Schedule
    ready_ns: int


def machines_request(asked: Asked) -> MachinesRequest:
    """The request that these options make; `BadSpec` says what is wrong with them."""
    if asked.query is None:
        raise BadSpec([Complaint("query", "nothing", "a JoinQuery file", "joinery simulate machines query.yaml")])
    told = request(asked)
    spec = parsed(asked.query)
    until_ns = told.settings.until_ns
    rows = sum(float(profile.count_until(np.array([until_ns]))[0]) for profile in told.profiles)
    if rows > MOST_ROWS:
        remedy = "shorten --until, lower the rates, or ask joinery simulate load"
        raise BadSpec([Complaint("rows", f"about {rows:.3g}", f"at most {MOST_ROWS:,}", remedy)])
    query = _without_ends(spec, told.settings.degree)
    schedule = Schedule(
        seed=asked.seed,
        query=query,
        scripts=_scripts(spec, told, is_given=asked.profile is not None or asked.trace is not None),
        workers=told.settings.degree,
        deadline_ns=PATIENCE * until_ns,
    )
    ready_ns = READY_NS if asked.start_delay is None else duration("--start-delay", asked.start_delay)
    return MachinesRequest(told=told, schedule=schedule, ready_ns=ready_ns)


def _without_ends(spec: JoinQuerySpec, workers: int) -> dict[str, Any]:
    """The query that the machines get."""
    written = spec.to_dict()
    streams = [{name: value for name, value in stream.items() if name != "source"} for stream in written["streams"]]
    kept = {name: value for name, value in written.items() if name not in ("sinks", "late")}
    return kept | {"streams": streams, "replicas": workers}


def _scripts(spec: JoinQuerySpec, told: Request, *, is_given: bool) -> tuple[Script, ...]:
    plan, until_ns = JoinPlan.of(spec), told.settings.until_ns
    batch_ns = max(10 * MS, told.settings.epoch_ns // 4)
    made = []
    for number, (stream, form, profile) in enumerate(zip(spec.streams, plan.formats, told.profiles, strict=True)):
        wanted = (stream.source.generator if stream.source else None) or GeneratorSpec()
        points: PointProcess | None = None
        if is_given:
            points = Independent(PoissonArrivals(profile), keys_of(wanted.keys))
        reader = GeneratedReader(f"spec.streams.{stream.name}", stream, form, wanted, points)
        made.append(script_of(number, stream.name, _pieces(reader), until_ns=until_ns, batch_ns=batch_ns))
    return tuple(made)


def _pieces(reader: GeneratedReader) -> Iterator[tuple[pa.RecordBatch, I64Array]]:
    for piece in reader.read(None):
        if isinstance(piece, Piece) and piece.times is not None:
            yield piece.rows, piece.times
