"""`joinery explain`: why there are as many workers as there are, and what other settings would have done."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from joinery.adapters.scaling_record import NAME, decision_story, load_story, read_scaling
from joinery.cli.asking import Asker, place_of
from joinery.cli.complaining import complaining
from joinery.cli.settings_asked import change_of, given, in_words
from joinery.cli.words import counted, duration
from joinery.client import Unreachable
from joinery.elastic.guarded import Wish
from joinery.machine.messages import Decided, last_act
from joinery.model.spec import JoinQuerySpec
from joinery.simulate.recorded import Outcome, RecordedRun, run_of, what_if

EXPLAIN_HELP = """Why this many workers? The last decisions with the load that each was made from.

\b
  joinery explain query.yaml                 a query that runs here
  joinery explain --gateway 127.0.0.1:7400   one that runs elsewhere
  joinery explain record/                    what run --record record/ kept
  joinery explain record/ --beta 0.9         what another β would have done
  joinery explain query.yaml --th-sup 0.3 --last 20

A decision is made once per reorganization epoch (t_r) from the workers'
reports: grow when suppliers > β x consumers, shrink when there are fewer
than S_low. With --beta and the like the recorded load is told to the same
rule with that setting. As long as it asks for the same workers the reports
are as they were; from the first difference on the load is modelled: its
demand divided evenly over the workers there would be.

Exit codes: 0 it is explained, 1 the query cannot be reached, 2 there is no
such query or recording, or a setting does not fit.
"""
NOTHING: Final = "no decision was made yet: one is made each t_r, once workers have reported"
_MANUAL: Final = "no decision: scaling.mode is Manual, a person decides"


@complaining
def explain(
    query: Annotated[
        str | None, typer.Argument(help="Query file or name, or the folder of a recorded run.", show_default=False)
    ] = None,
    gateway: Annotated[str | None, typer.Option("--gateway", help="HOST:PORT, if it runs elsewhere.")] = None,
    last: Annotated[int, typer.Option("--last", min=1, help="How many decisions to show.")] = 5,
    beta: Annotated[float | None, typer.Option("--beta", help="What another β would have done.")] = None,
    th_sup: Annotated[float | None, typer.Option("--th-sup", help="Another supplierThreshold.")] = None,
    th_con: Annotated[float | None, typer.Option("--th-con", help="Another consumerThreshold.")] = None,
    s_low: Annotated[int | None, typer.Option("--s-low", help="Another minSuppliers.")] = None,
    target: Annotated[float | None, typer.Option("--target", help="Another target of a shrink.")] = None,
    most: Annotated[int | None, typer.Option("--max", help="Other workers at most.")] = None,
    rule: Annotated[str | None, typer.Option("--rule", help="guarded or paper.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    tls: Annotated[Path | None, typer.Option("--tls", help="Folder with ca.crt, tls.crt, tls.key.")] = None,
    wait: Annotated[float, typer.Option("--wait", help="Seconds to wait for the gateway.")] = 10.0,
) -> None:
    """Read or ask, explain."""
    asked = given(
        {"beta": beta, "th_sup": th_sup, "th_con": th_con, "s_low": s_low, "target": target, "max": most, "rule": rule}
    )
    try:
        run = _run(query, gateway, tls, wait)
    except Unreachable as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    other = what_if(run, change_of(asked)) if asked and run.decisions else None
    if as_json:
        typer.echo(json.dumps(as_plain(run, other, asked, last), allow_nan=False))
        return
    for line in [*story(run, last), *([] if other is None else other_story(run, other, asked))]:
        typer.echo(line)


def _run(query: str | None, gateway: str | None, tls: Path | None, wait_s: float) -> RecordedRun:
    """A recorded one, or what a gateway knows of a running one."""
    if query is not None and gateway is None and (Path(query).is_dir() or Path(query).name == NAME):
        return read_scaling(Path(query))[-1]
    _, address = place_of(query, gateway)
    with Asker(address, tls) as asker:
        looked = asker.look(wait_s)
    return run_of(looked.spec, looked.decisions)


def story(run: RecordedRun, last: int) -> list[str]:
    """The decisions in words."""
    lines, decisions = [_rule(run.spec)], run.decisions
    if not decisions:
        return [*lines, _MANUAL if run.spec.scaling.mode != "Auto" else NOTHING]
    for one in decisions[-last:]:
        lines += [f"{_clock(one.at_ns)}  {one.words()}", f"          {inputs(one)}"]
    acted = last_act(decisions)
    if acted is None:
        before = f"in the {counted(len(decisions), 'decision')} that are known"
        return [*lines, f"{counted(decisions[-1].load.degree, 'worker')}: the number was not changed {before}"]
    becomes = acted.load.degree + (acted.by if acted.wish is Wish.GROW else -acted.by)
    return [*lines, f"{counted(becomes, 'worker')} since {_clock(acted.at_ns)}: {acted.words()}"]


def _rule(spec: JoinQuerySpec) -> str:
    scaling = spec.scaling
    up, down = (duration(one.stabilization / 1e9) for one in (scaling.scale_up, scaling.scale_down))
    guards = f", target {scaling.target:g}, waits up {up}, down {down}" if scaling.rule == "guarded" else ""
    return (
        f"rule {scaling.rule}: β {scaling.beta:g}, Th_sup {scaling.supplier_threshold:g}, "
        f"Th_con {scaling.consumer_threshold:g}, S_low {scaling.min_suppliers}, "
        f"{scaling.min} to {scaling.max} workers, t_r {duration(spec.epochs.reorganization / 1e9)}{guards}"
    )


def inputs(one: Decided) -> str:
    """What a decision saw."""
    load = one.load
    workers = ", ".join(
        f"{report.worker} {role.value} f {report.occupancy:.2g} u {report.busy:.2g}"
        for report, role in zip(load.reports, load.roles, strict=True)
    )
    held = ", rows were held back" if load.back_pressure else ""
    ready = f"{len(load.reports)} of {load.degree} ready"
    return (
        f"{ready}, {counted(load.n_sup, 'supplier')}, {counted(load.n_con, 'consumer')}, "
        f"busy {load.busy:.2f}, memory {load.memory:.2f}{held}: {workers}"
    )


def other_story(run: RecordedRun, other: Outcome, asked: dict[str, str]) -> list[str]:
    """What other settings would have done."""
    head = f"with {in_words(asked)}"
    recorded = {one.at_ns: one for one in run.decisions}
    if other.differs_ns is None:
        return [f"{head}: the same workers at every one of {counted(len(recorded), 'decision')}"]
    lines = [
        f"{head}: other workers from {_clock(other.differs_ns)} on; before it the load is as recorded, then modelled"
    ]
    for point in other.points:
        acts = point.decided is not None and point.decided.wish is not Wish.KEEP
        if point.decided is None or (not acts and point.at_ns != other.differs_ns):
            continue
        was = recorded.get(point.at_ns)
        instead = f" (it was: {was.words()})" if was is not None and point.at_ns == other.differs_ns else ""
        lines.append(f"{_clock(point.at_ns)}  {point.decided.words()}{instead}")
    return [*lines, _compared(other, what_if(run, lambda spec: spec))]


def _compared(other: Outcome, recorded: Outcome) -> str:
    return (
        f"{other.mean:.2f} workers in the mean instead of {recorded.mean:.2f}, "
        f"{other.overloaded:.0%} of the time more load than workers instead of {recorded.overloaded:.0%}"
    )


def as_plain(run: RecordedRun, other: Outcome | None, asked: dict[str, str], last: int) -> dict[str, Any]:
    """As JSON holds it."""
    told: dict[str, Any] = {
        "scaling": run.spec.to_dict()["scaling"],
        "decisions": [_plain(one) for one in run.decisions[-last:]],
    }
    if other is not None:
        told["other"] = asked | {
            "differs_ns": other.differs_ns,
            "mean": other.mean,
            "overloaded": other.overloaded,
            "decisions": [_plain(one) for one in _made(other)],
        }
    return told


def _made(other: Outcome) -> Sequence[Decided]:
    return [one.decided for one in other.points if one.decided is not None]


def _plain(one: Decided) -> dict[str, Any]:
    return {"at_ns": one.at_ns, "words": one.words(), **decision_story(one), "load": load_story(one.load)}


def _clock(at_ns: int) -> str:
    return f"{datetime.fromtimestamp(at_ns / 1e9):%H:%M:%S}"
