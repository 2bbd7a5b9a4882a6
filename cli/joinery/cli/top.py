"""`joinery top`: a running query in the terminal, live: for who has a shell and no browser."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from joinery.adapters.dashboard import Film, Sight
from joinery.cli.asking import Asker, place_of
from joinery.cli.complaining import complaining
from joinery.cli.progress import Progress
from joinery.cli.words import counted, duration, number, size
from joinery.client import Unreachable
from joinery.machine.messages import Looked, last_act
from joinery.model.errors import UserMustAct
from joinery.model.time import TIME_MAX, TIME_MIN

TOP_HELP = """Watch a running query: rate, delay, workers with their roles, moves, watermarks, the last decision.

\b
  joinery top query.yaml                    live, until Ctrl-C or the end
  joinery top --gateway 127.0.0.1:7400      a query that runs elsewhere
  joinery top query.yaml --once             one picture, for a pipe
  joinery top query.yaml --once --json      the same as JSON
  joinery top query.yaml --json | jq .degree    a line each second

In a cluster: kubectl port-forward svc/orders-gateway 7400, then
joinery top --gateway 127.0.0.1:7400 (with --tls where the query asks
for certificates). It only looks; nothing is changed by it.

Exit codes: 0 it was shown, or the query has ended, 1 the query cannot
be reached, 2 the words of the command do not fit.
"""
SHOWN: Final = 5
"""Events, and moves."""


@complaining
def top(
    query: Annotated[str | None, typer.Argument(help="Query file, or name of the query.", show_default=False)] = None,
    gateway: Annotated[str | None, typer.Option("--gateway", help="HOST:PORT, if it runs elsewhere.")] = None,
    once: Annotated[bool, typer.Option("--once", help="One picture, then end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for each look.")] = False,
    every: Annotated[float, typer.Option("--every", help="Seconds between two looks.")] = 1.0,
    tls: Annotated[Path | None, typer.Option("--tls", help="Folder with ca.crt, tls.crt, tls.key.")] = None,
    wait: Annotated[float, typer.Option("--wait", help="Seconds to wait for the gateway.")] = 10.0,
) -> None:
    """Look, show, again."""
    if every <= 0:
        raise UserMustAct(f"--every: found {every:g}, wanted more than 0; leave it out for 1")
    name, address = place_of(query, gateway)
    console = Console(soft_wrap=True, highlight=False)
    is_live = console.is_terminal and not once and not as_json
    show = Show(name, console, as_json=as_json, is_whole=once)
    try:
        with Asker(address, tls) as asker:
            if not is_live:
                _look_on(asker, show, wait, every, once=once)
            else:
                with Live(console=console, refresh_per_second=4, screen=True) as live:
                    show.live = live
                    _look_on(asker, show, wait, every, once=False)
    except KeyboardInterrupt:
        return
    except Unreachable as error:
        if show.seen and gateway is None and _has_ended(query or ""):
            typer.echo(f"{name} has ended", err=True)
            return
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None


def _has_ended(query: str) -> bool:
    """Whether it ran on this machine, and does no more."""
    try:
        place_of(query, None)
    except UserMustAct:
        return True
    return False


def _look_on(asker: Asker, show: "Show", wait_s: float, every_s: float, *, once: bool) -> None:
    first = asker.look(wait_s)
    if once:  # a rate and a delay are of the time between two looks
        time.sleep(min(every_s, 1.0))
        show.before(first)
        show.show(asker.look(wait_s))
        return
    show.show(first)
    while True:
        time.sleep(every_s)
        show.show(asker.look(wait_s))


class Show:
    """How it is shown."""

    def __init__(self, name: str, console: Console, *, as_json: bool, is_whole: bool) -> None:
        self._name, self._console, self._as_json, self._is_whole = name, console, as_json, is_whole
        self._film = Film(name, "top")
        self._progress: Progress | None = None
        self.live: Live | None = None
        self.seen = 0

    def before(self, looked: Looked) -> None:
        """A look that is not shown."""
        self.seen += 1
        self._film.add(sight_of(looked))
        self._saw(looked)

    def show(self, looked: Looked) -> None:
        """One look."""
        self.seen += 1
        frame = self._film.add(sight_of(looked))
        progress = self._saw(looked)
        if self._as_json:
            typer.echo(json.dumps(frame, allow_nan=False))
        elif self.live is not None:
            self.live.update(picture(progress, looked))
        elif self._is_whole:
            self._console.print(picture(progress, looked))
        else:
            self._console.print(f"{_clock(looked.view.at_ns)}  {progress.headline()}", markup=False)

    def _saw(self, looked: Looked) -> Progress:
        if self._progress is None:
            self._progress = Progress(self._name, looked.spec)
        self._progress.saw(looked.view)
        return self._progress


def sight_of(looked: Looked) -> Sight:
    """A look as the dashboard shows it."""
    return Sight(
        view=looked.view,
        spec=looked.spec,
        now_ns=looked.view.at_ns,
        decision=looked.decisions[-1] if looked.decisions else None,
        change=last_act(looked.decisions),
    )


def picture(progress: Progress, looked: Looked) -> Group:
    """All of it."""
    view = looked.view
    lines = [*_streams(looked), *_totals(looked), *_decision(looked)]
    lines += [f"{_clock(one.at_ns)}  {one.text}" for one in view.events[-SHOWN:]]
    return Group(progress.table(), *(Text(line) for line in lines))


def _streams(looked: Looked) -> list[str]:
    found = []
    for stream, one in zip(looked.spec.streams, looked.view.streams, strict=True):
        late = f", {counted(one.late, 'late row')}" if one.late else ""
        found.append(
            f"stream {stream.name}: {counted(one.rows, 'row')}, {number(round(one.rows_per_s))}/s{late}, "
            f"{_watermark(one.watermark_ns, looked.view.at_ns)}"
        )
    return found


def _watermark(mark_ns: int, now_ns: int) -> str:
    if mark_ns >= TIME_MAX:
        return "ended"
    if mark_ns <= TIME_MIN:
        return "no watermark yet"
    behind_s = (now_ns - mark_ns) / 1e9
    at = f"watermark {datetime.fromtimestamp(mark_ns / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"{at}, {duration(behind_s)} behind the clock" if 0 <= behind_s < 86_400 else at


def _totals(looked: Looked) -> list[str]:
    view = looked.view
    waits = view.records - view.uncommitted
    checkpoint = ""
    if view.checkpointed_ns:
        checkpoint = f", last checkpoint {duration(max(0, view.at_ns - view.checkpointed_ns) / 1e9)} ago"
    return [
        f"records: {number(view.records)}, not committed {number(waits)}, unsent {size(view.unsent_bytes)}, "
        f"kept for replay {size(view.replay_bytes)}{checkpoint}"
    ]


def _decision(looked: Looked) -> list[str]:
    scaling, view = looked.spec.scaling, looked.view
    rule = (
        f"degree {view.degree} ({scaling.min} to {scaling.max}), "
        f"{counted(view.n_sup, 'supplier')}, {counted(view.n_con, 'consumer')}, "
        f"β {scaling.beta:g}, rule {scaling.rule}"
    )
    if scaling.mode != "Auto":
        return [f"{rule}; mode Manual: a person decides"]
    if not looked.decisions:
        return [f"{rule}; no decision was told to this gateway yet"]
    last = looked.decisions[-1]
    return [rule, f"{_clock(last.at_ns)}  {last.words()}"]


def _clock(at_ns: int) -> str:
    return f"{datetime.fromtimestamp(at_ns / 1e9):%H:%M:%S}"
