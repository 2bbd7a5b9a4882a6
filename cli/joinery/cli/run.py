"""`joinery run FILE`: a query on this machine, from its sources to its sinks, with the workers that it needs."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from joinery.adapters.tuning import settle
from joinery.cli import summary
from joinery.cli.checking import recording_folder, verify_output
from joinery.cli.claims import claimed
from joinery.cli.complaining import complaining
from joinery.cli.dashboards import USUAL
from joinery.cli.leftovers import sweep
from joinery.cli.local import LocalRun
from joinery.cli.query_file import check_places, name_of, outputs, read_query, replaced, text_of
from joinery.cli.running import addresses, check_port
from joinery.cli.screen import Screen, working
from joinery.cli.spark_run import is_for_spark, run_on_spark
from joinery.model.errors import UserMustAct
from joinery.model.spec import JoinQuerySpec

__all__ = ["RUN_HELP", "read_query", "run"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RUN_HELP = """Run a query on this machine, with the workers that it needs.

It stops when every source has ended and everything is committed. A query
with a pushed stream runs until its producers say that they have ended;
Ctrl-C stops it earlier. Paths in the query are relative to its file.

\b
  joinery run query.yaml                live table, then a summary
  joinery run query.yaml --json         the summary as JSON, for machines
  joinery run query.yaml --quiet        nothing but errors and late rows
  joinery run query.yaml --verify       also: are the results exact?
  joinery run query.yaml --no-clobber   never replace an output
  joinery run query.yaml --state DIR    stop it, and go on later
  joinery run query.yaml --record DIR   for verify, explain, simulate
  joinery run query.yaml --engine spark by Spark Structured Streaming
  joinery run --sql "SELECT * FROM orders o JOIN fulfilments f
    ON o.order_id = f.order_id WITHIN 10 MINUTES" --time ts
                                        files of this folder, to stdout

While it runs, a page shows it live: http://127.0.0.1:7480/, or another
port if that one is taken (it says which). --dashboard off: no page.

A file that a sink names is written whole when the query ends, and then
replaces the one of an earlier run. A run that fails or is stopped leaves
the old file as it was, and nothing beside it.

Any process of it may die: another one takes its place, and nothing is
lost or doubled. With checkpoint.durability: memory the input is kept in
the gateway's memory alone (faster), and a crash of the gateway or of
the embedded Redis ends the run. With --state DIR a run that was stopped
goes on where it was when it is started again.

Exit codes: 0 all results are committed, 1 something failed or was
stopped, 2 the query file cannot run.
"""


@complaining
def run(
    query: Annotated[Path | None, typer.Argument(help="A JoinQuery file.", show_default=False)] = None,
    port: Annotated[int, typer.Option("--port", help="Port to push to and read from; 0: any free one.")] = 0,
    verify: Annotated[bool, typer.Option("--verify", help="Hold the output to the truth at the end.")] = False,
    record: Annotated[
        Path | None, typer.Option("--record", help="Keep input, load reports and decisions in this folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but errors and late rows.")] = False,
    no_clobber: Annotated[bool, typer.Option("--no-clobber", help="Do not replace files of an earlier run.")] = False,
    state: Annotated[Path | None, typer.Option("--state", help="Keep what is needed to go on in this folder.")] = None,
    dashboard: Annotated[
        str, typer.Option("--dashboard", help="HOST:PORT of the page to watch it on, or off.")
    ] = USUAL,
    sql: Annotated[str | None, typer.Option("--sql", help="A SELECT instead of a file; see docs/sql.md.")] = None,
    source: Annotated[list[str] | None, typer.Option("--source", help="With --sql: orders=PATH.")] = None,
    time: Annotated[list[str] | None, typer.Option("--time", help="With --sql: COLUMN, or orders=COLUMN.")] = None,
    unit: Annotated[str | None, typer.Option("--unit", help="With --sql: of integer times; us if left out.")] = None,
    lateness: Annotated[
        list[str] | None, typer.Option("--lateness", help="With --sql: 5s, or orders=5s: so far out of order.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="With --sql: a file for the results.")] = None,
    engine: Annotated[str | None, typer.Option("--engine", help="service, or spark; see docs/spark.md.")] = None,
) -> None:
    """Read, check, run, tell."""
    for number in _SIGNALS:
        signal.signal(number, signal.default_int_handler)  # all as Ctrl-C: temporary folders go
    how = _How(port, verify, record, as_json, quiet, no_clobber, state, dashboard, engine)
    if (query is None) == (sql is None):
        found = "neither a file nor --sql" if query is None else "a file and --sql"
        raise UserMustAct(f"found {found}, wanted one of them; see joinery run --help")
    given = {"--source": source, "--time": time, "--unit": unit, "--lateness": lateness, "--out": out}
    if query is not None:
        if unused := [name for name, value in given.items() if value]:
            raise UserMustAct(f"found {', '.join(unused)} with a file, wanted them with --sql; the file says it")
        _run(query, how)
        return
    from joinery.cli.sql_query import Said, query_file_of  # noqa: PLC0415 - the grammar takes half a second to load

    with query_file_of(Said(sql or "", source or (), time or (), unit, lateness or (), out)) as made:
        _run(made, how)


@dataclass(frozen=True, slots=True)
class _How:
    """The flags."""

    port: int
    verify: bool
    record: Path | None
    as_json: bool
    quiet: bool
    no_clobber: bool
    state: Path | None
    dashboard: str
    engine: str | None


def _run(query: Path, how: _How) -> None:
    text = text_of(query)  # once: whoever edits the file from now on edits the next run
    spec = read_query(query, text)
    check_port(how.port)
    check_places(spec, query.parent)
    sweep()
    with claimed(outputs(spec, query.parent), name_of(text)):
        _run_alone(query, text, spec, how)


def _run_alone(query: Path, text: str, spec: JoinQuerySpec, how: _How) -> None:
    port, verify, record, as_json, quiet, no_clobber, state, dashboard, engine = astuple(how)
    there = replaced(spec, query.parent)
    if there and no_clobber:
        names = ", ".join(there)
        raise UserMustAct(f"--no-clobber: found {names}, wanted no such file; move it away, or leave out the flag")
    screen = Screen(quiet=quiet)
    for one in there:
        screen.say(f"{one} is there, and will be replaced when the query ends")
    service_only = {"--port": port, "--verify": verify, "--record": record, "--state": state}
    if is_for_spark(spec, engine, service_only):
        run_on_spark(query, spec, as_json=as_json, quiet=quiet)
        return
    with recording_folder(record, verify=verify) as folder:
        running = LocalRun(
            query.resolve(), spec, text=text, name=name_of(text), port=port, record=folder, state=_state(state, spec),
            dashboard=dashboard,
        )  # fmt: skip
        told = _run_to_the_end(running, query.parent, screen)
        _tell(told, screen, as_json=as_json)
        if told["state"] != "done":
            raise typer.Exit(1)
        if verify and compared(query, spec, folder, quiet=quiet) != 0:
            raise typer.Exit(1)


def compared(query: Path, spec: JoinQuerySpec, folder: Path | None, *, quiet: bool = False) -> int:
    """Hold the output to the truth, with a sign of life; the exit code."""
    lines: list[str] = []
    try:
        with nullcontext() if quiet else working("comparing the output with the truth", in_pipes=True):
            return verify_output(query, spec, folder, lines.append)
    finally:
        for line in lines:
            typer.echo(line)


def _state(state: Path | None, spec: JoinQuerySpec) -> Path | None:
    """Where the state is kept; refused if nothing of the log would be in it."""
    if state is not None and spec.checkpoint.durability == "memory":
        message = "--state: found checkpoint.durability memory, wanted wal; only a log on disk can be gone on with"
        raise UserMustAct(message)
    return None if state is None else state.resolve()


def _run_to_the_end(running: LocalRun, folder: Path, screen: Screen) -> dict[str, Any]:
    """Until it has ended, failed, or somebody stops it; what it came to."""
    ended, failed = False, None
    settle()
    with _stopped_by_signals(running), running, screen:
        screen.say(addresses(running.spec, running.query, running.gateway, running.dashboard))
        ended = running.wait(lambda one: screen.show(one.progress))
        failed = running.failed
    screen.show(running.progress)
    decision = running.operator.last_decision
    return summary.as_json(
        running.progress, folder, decision, seconds=screen.seconds, ended=ended, failed=failed
    )  # fmt: skip


@contextmanager
def _stopped_by_signals(running: LocalRun) -> Iterator[None]:
    """Ctrl-C and the like end the run in order: whatever is being done is done, then all is taken back."""
    before = {number: signal.signal(number, lambda *_: running.stop()) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():  # whoever was told once ends soon: it need not be told again
            signal.signal(number, signal.SIG_IGN if running.is_stopping else handler)


def _tell(told: dict[str, Any], screen: Screen, *, as_json: bool) -> None:
    head, *rest = summary.as_lines(told)
    if told["state"] == "done":
        screen.say(head)
    else:
        screen.complain(head)
    for line in rest:
        screen.say(line)
    if (warning := summary.late_warning(told)) is not None:
        screen.complain(warning)
    if as_json:
        typer.echo(json.dumps(told, allow_nan=False))
