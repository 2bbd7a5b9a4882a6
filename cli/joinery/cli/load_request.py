"""From the words of `joinery simulate load` to settings, costs and rates.

Order: the query file (or the paper's query), then every option that was given on top of it.
"""

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from joinery.cli.query_file import parsed
from joinery.elastic.classify import Thresholds
from joinery.generate.profiles import Burst, Constant, Ramp, RateProfile, Sine, Step
from joinery.model.complaints import BadValue
from joinery.model.errors import BadSpec, Complaint
from joinery.model.quantities import parse_duration
from joinery.model.spec import JoinQuerySpec
from joinery.simulate.costs import CostModel
from joinery.simulate.load_input import Recorded
from joinery.simulate.load_settings import LoadSettings, Method, Rule, SpeedChange
from joinery.simulate.load_spec import costs_of, profiles_of, settings_of

PROFILES: Final = (
    "constant:1500",
    "step:500,2000",
    "ramp:500,2000,100s,400s",
    "sine:1500,1000,600s",
    "burst:500,2000,200s,60s",
)
PAPER_RATE_HZ: Final = 1500.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options, as they were typed; None: not given."""

    query: Path | None
    profile: str | None
    trace: Path | None
    until: str
    workers: int | None
    window: str | None
    method: str | None
    slow: tuple[str, ...]
    seed: int
    rule: str | None
    beta: float | None
    least: int | None
    most: int | None
    step: int | None
    target: float | None
    up: str | None
    down: str | None
    fixed: bool
    start_delay: str | None
    comparison_ns: float | None
    row_ns: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is simulated."""

    title: str
    settings: LoadSettings
    costs: CostModel
    profiles: tuple[RateProfile, ...]


def request(asked: Asked) -> Request:
    """The request that these options make; `BadSpec` says what is wrong with them."""
    until_ns = duration("--until", asked.until)
    spec = None if asked.query is None else parsed(asked.query)
    spec = _with_window(spec, asked.window)
    streams = len(spec.streams) if spec else 2
    profiles = _profiles(asked, spec, streams, until_ns)
    base = _base(spec, profiles, until_ns, asked.seed)
    settings = _with_rules(_with_sizes(base, asked, until_ns), asked)
    title = "the paper's query" if asked.query is None else asked.query.name
    return Request(title=title, settings=settings, costs=_costs(asked, spec, settings), profiles=profiles)


def duration(field: str, text: str) -> int:
    """Nanoseconds, or a complaint about the option."""
    return _said(field, lambda: parse_duration(text))


def text_of(path: Path) -> str:
    """A file's text, or a complaint."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failed:
        reason = getattr(failed, "strerror", None) or "not UTF-8 text"
        raise BadSpec([Complaint(str(path), reason, "a readable file", "check its name")]) from None


# --- rates


def _profiles(asked: Asked, spec: JoinQuerySpec | None, streams: int, until_ns: int) -> tuple[RateProfile, ...]:
    if asked.profile is not None and asked.trace is not None:
        raise BadSpec([Complaint("--profile and --trace", "both", "one of them", "leave one out")])
    if asked.trace is not None:
        return read_trace(asked.trace, streams)
    if asked.profile is not None:
        return (read_profile(asked.profile, until_ns),) * streams
    if spec is None:
        return (Constant(rate_hz=PAPER_RATE_HZ),) * streams
    made = profiles_of(spec)
    if made is None:
        remedy = "give --profile step:500,2000 or --trace rates.csv"
        raise BadSpec([Complaint("rates", "a stream without a generator", "a rate for every stream", remedy)])
    return tuple(made)


def read_profile(text: str, until_ns: int) -> RateProfile:
    """A profile as the help writes them."""
    kind, _, rest = text.partition(":")
    parts = [part.strip() for part in rest.split(",")] if rest else []
    wrong = BadSpec(
        [Complaint("--profile", text, f"one of {', '.join(PROFILES)}", "give rows per second and times with units")]
    )
    numbers = [_number(part) for part in parts]
    rates = [number for number in numbers if number is not None]
    try:
        times = [parse_duration(part) for part, number in zip(parts, numbers, strict=True) if number is None]
    except BadValue:  # a rate that is no number, as likely as a time that is none
        raise wrong from None
    if [number is None for number in numbers] != [False] * len(rates) + [True] * len(times):
        raise wrong
    match kind, rates, times:
        case "constant", [rate], []:
            return Constant(rate_hz=rate)
        case "step", [before, after], [] | [_]:
            return Step(before_hz=before, after_hz=after, at_ns=times[0] if times else until_ns // 3)
        case "ramp", [low, high], [] | [_, _]:
            start_ns, end_ns = times or (until_ns // 4, 3 * until_ns // 4)
            return Ramp(from_hz=low, to_hz=high, start_ns=start_ns, end_ns=end_ns)
        case "sine", [mean, amplitude], [period_ns]:
            return Sine(mean_hz=mean, amplitude_hz=amplitude, period_ns=period_ns)
        case "burst", [base, burst], [start_ns, length_ns, *every]:
            return Burst(
                base_hz=base,
                burst_hz=burst,
                start_ns=start_ns,
                length_ns=length_ns,
                every_ns=every[0] if every else None,
            )
        case _:
            raise wrong


def read_trace(path: Path, streams: int) -> tuple[RateProfile, ...]:
    """A recorded trace: time_s, then one column of rates for each stream, or one for all."""
    rows = list(csv.reader(text_of(path).splitlines()))
    header = rows[0] if rows else []
    remedy = "write a header and rows such as: time_s,left,right / 0,500,480"
    if not header or header[0].strip() != "time_s" or len(header) not in (2, streams + 1):
        wanted = f"time_s and one or {streams} columns of rates"
        raise BadSpec([Complaint(f"{path}: header", ", ".join(header) or "nothing", wanted, remedy)])
    table: list[list[float]] = []
    for place, row in enumerate(rows[1:], 2):
        numbers = [_number(cell.strip()) for cell in row]
        if len(row) != len(header) or None in numbers:
            raise BadSpec([Complaint(f"{path}: line {place}", ", ".join(row), f"{len(header)} numbers", remedy)])
        table.append([number for number in numbers if number is not None])
    columns = range(1, streams + 1) if len(header) == streams + 1 else [1] * streams
    return tuple(Recorded(tuple((round(row[0] * 1e9), row[column]) for row in table)) for column in columns)


# --- settings


def _base(spec: JoinQuerySpec | None, profiles: Sequence[RateProfile], until_ns: int, seed: int) -> LoadSettings:
    if spec is not None:
        return settings_of(spec, profiles, until_ns=until_ns, seed=seed)
    return LoadSettings(degree=1, adaptive=True, until_ns=until_ns, seed=seed)


def _with_window(spec: JoinQuerySpec | None, window: str | None) -> JoinQuerySpec | None:
    """The option is written into the query, so that it also helps where a count window cannot be simulated."""
    if spec is None or window is None:
        return spec
    duration("--window", window)
    written = spec.to_dict()
    return JoinQuerySpec.parse(written | {"streams": [stream | {"window": window} for stream in written["streams"]]})


def _with_sizes(base: LoadSettings, asked: Asked, until_ns: int) -> LoadSettings:
    changes: dict[str, object] = {"speeds": tuple(_speed(text) for text in asked.slow), "until_ns": until_ns}
    if asked.window is not None:
        changes["windows_ns"] = (duration("--window", asked.window),) * len(base.windows_ns)
    if asked.method is not None:
        changes["method"] = _choice("--method", asked.method, Method)
    if asked.workers is not None:
        changes["degree"] = asked.workers
    if asked.start_delay is not None:
        changes["ready_ns"] = duration("--start-delay", asked.start_delay)
    if asked.fixed:
        changes["adaptive"] = False
    return replace(base, **changes)  # type: ignore[arg-type]


def _with_rules(base: LoadSettings, asked: Asked) -> LoadSettings:
    rule = base.rule if asked.rule is None else _choice("--rule", asked.rule, Rule)
    given = {"beta": asked.beta, "min_degree": asked.least, "max_degree": asked.most, "step": asked.step}
    scaling = replace(base.scaling, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    guards = replace(
        base.guards,
        target=base.guards.target if asked.target is None else asked.target,
        up_ns=base.guards.up_ns if asked.up is None else duration("--scale-up", asked.up),
        down_ns=base.guards.down_ns if asked.down is None else duration("--scale-down", asked.down),
    )
    bounds = {"supplier": base.thresholds.supplier, "consumer": base.thresholds.consumer}
    paper = Thresholds.paper(**bounds)
    thresholds = paper if rule is Rule.PAPER else Thresholds.guarded(**bounds, target=guards.target)
    return replace(base, rule=rule, scaling=scaling, guards=guards, thresholds=thresholds)


def _costs(asked: Asked, spec: JoinQuerySpec | None, settings: LoadSettings) -> CostModel:
    costs = CostModel.paper() if spec is None else costs_of(spec)
    if asked.comparison_ns is not None:
        costs = replace(costs, comparison_ns=asked.comparison_ns)
    if asked.row_ns is not None:
        costs = replace(costs, insert_ns=asked.row_ns / 2, probe_ns=asked.row_ns / 2)
    if asked.comparison_ns is not None and settings.method is Method.HASH:
        remedy = "use --row-ns, or --method nested-loop"
        raise BadSpec([Complaint("--comparison-ns", "a hash join", "nested loops", remedy)])
    return costs


def _speed(text: str) -> SpeedChange:
    found = re.fullmatch(r"(\d{1,4})@([^:]+):([0-9.]+)", text)
    speed = None if found is None else _number(found[3])
    if found is None or speed is None:
        raise BadSpec([Complaint("--slow", text, "WORKER@TIME:SPEED", "write for example 1@300s:0.5")])
    return SpeedChange(ordinal=int(found[1]), at_ns=duration("--slow", found[2]), speed=speed)


def _choice(field: str, text: str, kinds: type[T]) -> T:
    try:
        return kinds(text)  # type: ignore[call-arg]
    except ValueError:
        names = " or ".join(str(kind) for kind in kinds)  # type: ignore[attr-defined]
        raise BadSpec([Complaint(field, text, names, "leave it out for the query's own")]) from None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?(e[0-9]{1,2})?", text) else None


def _said(field: str, parse: Callable[[], T]) -> T:
    try:
        return parse()
    except BadValue as bad:
        raise BadSpec([bad.complaint(field)]) from None
