"""`joinery where`: a record of a running query, followed by its number."""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from joinery.cli.asking import Asker, place_of
from joinery.cli.complaining import complaining
from joinery.cli.words import counted, number
from joinery.client import Unreachable
from joinery.machine.messages import GroupPlace, Looked, RecordPlace, Station
from joinery.model.errors import Bug, UserMustAct

WHERE_HELP = """Where is record n? The stations of its rows, group by group, from the log to the commit.

\b
  joinery push query.yaml orders orders.csv    says its last record
  joinery where query.yaml 1234                where its rows are now
  joinery where query.yaml 1234 --follow       until all are committed
  joinery where --gateway 127.0.0.1:7400 1234 --json

A record is one entry of the query's log; every producer's batch is
acknowledged with its number. Its rows go to partition-groups, each with
a worker: waiting (at the gateway), moving (its group changes hands),
sent (on the way to the worker, in its buffer, or being joined), joined
(results are with the collector, not committed), committed.

Exit codes: 0 all of it is committed, or --follow was not asked for, 1 the
query cannot be reached, or --wait ended a --follow, 2 the words of the
command do not fit.
"""
STORY: Final = {
    Station.WAITING: "wait in the gateway's mini-buffers for the worker's slot",
    Station.MOVING: "wait at the gateway: their group is changing hands",
    Station.SENT: "are sent: on their way, in the worker's buffer, or being joined",
    Station.JOINED: "are joined; their results are not committed yet",
    Station.COMMITTED: "are committed",
    Station.LOST: "are lost: the state of their group could not be loaded",
}
OVER: Final = (Station.COMMITTED, Station.LOST)
LOOK_S: Final = 0.5


@complaining
def where(
    words: Annotated[list[str], typer.Argument(help="A query file or name, and a number.", metavar="[QUERY] RECORD")],
    gateway: Annotated[str | None, typer.Option("--gateway", help="HOST:PORT, if it runs elsewhere.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Until all of it is committed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON; with --follow a line for each change.")] = False,
    tls: Annotated[Path | None, typer.Option("--tls", help="Folder with ca.crt, tls.crt, tls.key.")] = None,
    wait: Annotated[float, typer.Option("--wait", help="Seconds to wait: for the gateway, and for the commit.")] = 30.0,
) -> None:  # fmt: skip
    """Ask, tell; again if it is followed."""
    query, record = _asked(words)
    _, address = place_of(query, gateway)
    until_s, told = time.monotonic() + wait, ""
    try:
        with Asker(address, tls) as asker:
            while True:
                looked = asker.look(wait, record)
                place = _place(looked)
                text = json.dumps(as_plain(place, looked)) if as_json else "\n".join(story(place, looked))
                if text != told:
                    typer.echo(text)
                told = text
                if not follow or is_over(place):
                    return
                if time.monotonic() > until_s:
                    typer.echo(f"record {record} is not committed after {wait:g} s", err=True)
                    raise typer.Exit(1)
                time.sleep(LOOK_S)
    except Unreachable as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None


def _asked(words: list[str]) -> tuple[str | None, int]:
    *before, last = words
    if len(before) > 1 or not last.isascii() or not last.isdigit():
        raise UserMustAct(f"found {' '.join(words)!r}, wanted a query and the number of a record; see --help")
    return (before[0] if before else None), int(last)


def _place(looked: Looked) -> RecordPlace:
    if looked.place is None:
        raise Bug("a gateway that was asked for a record did not say where it is")
    return looked.place


def is_over(place: RecordPlace) -> bool:
    """Whether nothing more happens to it."""
    return place.is_recorded and all(one.station in OVER for one in place.groups)


def story(place: RecordPlace, looked: Looked) -> list[str]:
    """In words."""
    head = f"record {number(place.record)}"
    if not place.is_recorded:
        return [f"{head} is not recorded yet; the next one is {number(looked.view.records)}"]
    if not place.is_kept:
        return [f"{head} is committed and checkpointed for every group; its rows are kept no more"]
    if not place.groups:
        return [f"{head} is recorded and has no rows for the workers: watermarks, sessions, late rows held back"]
    rows = sum(one.rows for one in place.groups)
    groups = counted(len(place.groups), "group")
    lines = [f"{head} is recorded: {counted(rows, 'row')} for {groups}"]
    for station in Station:
        here = [one for one in place.groups if one.station is station]
        if here:
            lines.append(f"  {counted(sum(one.rows for one in here), 'row')} {STORY[station]}{_whose(here)}")
    return lines


def _whose(places: Iterable[GroupPlace]) -> str:
    """By worker: groups, and how far they are."""
    found: dict[str, list[GroupPlace]] = {}
    for one in places:
        found.setdefault(one.worker or "nobody", []).append(one)
    parts = []
    for worker, own in sorted(found.items()):
        groups = ", ".join(str(one.group) for one in own[:8]) + (" ..." if len(own) > 8 else "")
        parts.append(f"{worker} ({counted(len(own), 'group')}: {groups}; sent up to {min(one.sent for one in own)}, "
                     f"committed up to {min(one.committed for one in own)})")  # fmt: skip
    return f": {'; '.join(parts)}"


def as_plain(place: RecordPlace, looked: Looked) -> dict[str, Any]:
    """As JSON holds it."""
    return {
        "record": place.record,
        "recorded": place.is_recorded,
        "kept": place.is_kept,
        "committed": place.is_recorded and all(one.station is Station.COMMITTED for one in place.groups),
        "next": looked.view.records,
        "groups": [
            {
                "group": one.group,
                "rows": one.rows,
                "station": one.station.value,
                "worker": one.worker,
                "sent": one.sent,
                "committed": one.committed,
            }
            for one in place.groups
        ],
    }
