"""`joinery simulate`: Joinery under a virtual clock. Does a cluster keep up, and what do its rules do?

`machines` asks the machines themselves, with real rows; `load` counts instead of joining, for long runs and high rates
(docs/adr/0008).
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from joinery.cli.complaining import complaining
from joinery.cli.load_request import Asked, request
from joinery.cli.load_story import check_place, tell, tell_results, write_json, write_plot
from joinery.cli.machines_request import machines_request
from joinery.cli.recorded import RECORDED_HELP, recorded
from joinery.cli.screen import working
from joinery.simulate.costed import CostedWorld
from joinery.simulate.load import simulate

SIMULATE_HELP = """Run Joinery under a virtual clock, in seconds instead of minutes.

\b
  joinery simulate load --profile step:500,2000   what would the rules do?
  joinery simulate machines query.yaml            with real machines and rows
  joinery simulate recorded record/               decisions of a recorded run
  joinery simulate recorded record/ --sweep beta=0.2,0.8    and others instead

Exit codes: 0 done, 1 a recorded decision is not repeated, 2 something given
cannot be used.
"""
app = typer.Typer(
    name="simulate",
    help=SIMULATE_HELP,
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.callback(help=SIMULATE_HELP)
def simulations() -> None:
    """Run Joinery under a virtual clock, in seconds instead of minutes."""


LOAD_HELP = """Would this cluster keep up, and what would its rules do?

The real rules (load reports, suppliers and consumers, plans, β-rule) run on
modelled work; no tuple is made. With a query file its windows, epochs,
scaling and worker limits are taken; without one the paper's query: two
streams, 10 minutes of window, nested loops, 64-byte tuples, workers of 2003.

[bold]A step of the rate, guarded rule, with a picture[/bold]

\b
  joinery simulate load --profile step:500,2000 --until 900s --plot out.png

[bold]The bare rule of the papers on the same load[/bold]

\b
  joinery simulate load --profile step:500,2000 --rule paper --beta 0.5

[bold]A query file, a recorded trace, a worker that gets slow[/bold]

\b
  joinery simulate load query.yaml --trace rates.csv --slow 1@300s:0.25

[bold]Profiles[/bold] (rows/s of each stream): constant:1500 · step:500,2000
· step:500,2000,200s · ramp:500,2000,100s,400s · sine:1500,1000,600s (mean,
amplitude, period) · burst:500,2000,200s,60s (base, burst, start, length),
and ,400s to repeat it.

[bold]A trace[/bold] is a CSV with a header: time_s, then one column per
stream (or one for all) with rows/s from then on.

Exit codes: 0 it was simulated, 2 the query, the profile or a setting cannot
be used.
"""

app.command(help=RECORDED_HELP)(recorded)
SIZES, RULES, COSTS, OUTPUT = "What runs", "Rules", "Costs", "Output"


def _option(text: str, panel: str, *names: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, metavar=metavar, show_default=False)


@app.command(help=LOAD_HELP)
@complaining
def load(
    query: Annotated[Path | None, typer.Argument(help="A JoinQuery file; left out: the paper's query.")] = None,
    profile: Annotated[str | None, _option("Rate over time, see above.", SIZES, "--profile", metavar="TEXT")] = None,
    trace: Annotated[Path | None, _option("Recorded rates instead.", SIZES, "--trace", metavar="CSV")] = None,
    until: Annotated[str, _option("Length of the run (600s).", SIZES, "--until")] = "600s",
    workers: Annotated[int | None, _option("Workers at the start.", SIZES, "--workers")] = None,
    window: Annotated[str | None, _option("Window of every stream, such as 10m.", SIZES, "--window")] = None,
    method: Annotated[str | None, _option("hash or nested-loop.", SIZES, "--method")] = None,
    slow: Annotated[
        list[str] | None, _option("WORKER@TIME:SPEED, such as 1@300s:0.5; repeatable.", SIZES, "--slow")
    ] = None,
    seed: Annotated[int, _option("Of arrivals and of random choices (0).", SIZES, "--seed")] = 0,
    rule: Annotated[str | None, _option("guarded or paper.", RULES, "--rule")] = None,
    beta: Annotated[float | None, _option("Grow when suppliers > β x consumers.", RULES, "--beta")] = None,
    least: Annotated[int | None, _option("Workers at least.", RULES, "--min")] = None,
    most: Annotated[int | None, _option("Workers at most.", RULES, "--max")] = None,
    step: Annotated[int | None, _option("Workers added or removed at once (δ).", RULES, "--step")] = None,
    target: Annotated[float | None, _option("Busy share that a shrink must leave.", RULES, "--target")] = None,
    up: Annotated[str | None, _option("How long growing must be wanted.", RULES, "--scale-up")] = None,
    down: Annotated[str | None, _option("How long shrinking must be wanted.", RULES, "--scale-down")] = None,
    fixed: Annotated[bool, _option("Keep the degree; groups still move.", RULES, "--fixed")] = False,
    start_delay: Annotated[str | None, _option("Until a new worker is Ready (5s).", RULES, "--start-delay")] = None,
    comparison_ns: Annotated[float | None, _option("Nanoseconds per comparison.", COSTS, "--comparison-ns")] = None,
    row_ns: Annotated[float | None, _option("Nanoseconds per row of a hash join.", COSTS, "--row-ns")] = None,
    plot: Annotated[Path | None, _option("Rate, degree, roles and delay as PNG.", OUTPUT, "--plot")] = None,
    json: Annotated[Path | None, _option("The whole run as JSON.", OUTPUT, "--json")] = None,
    every: Annotated[bool, _option("Print every decision, not only those that change.", OUTPUT, "--all")] = False,
) -> None:
    """Would this cluster keep up, and what would its rules do?"""
    asked = Asked(
        query=query, profile=profile, trace=trace, until=until, workers=workers, window=window, method=method,
        slow=tuple(slow or ()), seed=seed, rule=rule, beta=beta, least=least, most=most, step=step, target=target,
        up=up, down=down, fixed=fixed, start_delay=start_delay, comparison_ns=comparison_ns, row_ns=row_ns,
    )  # fmt: skip
    check_place("--json", json)
    check_place("--plot", plot)
    wanted = request(asked)
    with working("simulating"):
        run = simulate(wanted.settings, wanted.costs, wanted.profiles)
    tell(run, wanted, every=every)
    if json is not None:
        write_json(json, run, wanted)
    if plot is not None:
        write_plot(plot, run, wanted)


MACHINES_HELP = """Run a query's machines in one process under a virtual clock, with the rows of its generators.

Gateway, workers, collector and operator are the real ones, and every row is
really joined; only time is modelled: what a row, a comparison and a message
cost. Printed are the decisions with their numbers, delays, moves and
results. About a million rows take some minutes; [bold]joinery simulate
load[/bold] counts instead, and takes seconds.

[bold]A query as it is, with a picture[/bold]

\b
  joinery simulate machines query.yaml --until 60s --plot out.png

[bold]Other rates, a worker that gets slow[/bold]

\b
  joinery simulate machines query.yaml --profile step:200,800 --slow 0@40s:0.5

Profiles and traces are those of [bold]joinery simulate load --help[/bold].

Exit codes: 0 it was simulated, 2 the query, the profile or a setting cannot
be used.
"""


@app.command(help=MACHINES_HELP)
@complaining
def machines(
    query: Annotated[Path, typer.Argument(help="A JoinQuery file.", show_default=False)],
    profile: Annotated[str | None, _option("Rate over time instead.", SIZES, "--profile", metavar="TEXT")] = None,
    trace: Annotated[Path | None, _option("Recorded rates instead.", SIZES, "--trace", metavar="CSV")] = None,
    until: Annotated[str, _option("When the streams end (60s).", SIZES, "--until")] = "60s",
    workers: Annotated[int | None, _option("Workers at the start.", SIZES, "--workers")] = None,
    slow: Annotated[
        list[str] | None, _option("WORKER@TIME:SPEED, such as 1@300s:0.5; repeatable.", SIZES, "--slow")
    ] = None,
    start_delay: Annotated[str | None, _option("Until a new worker is Ready (5s).", RULES, "--start-delay")] = None,
    comparison_ns: Annotated[float | None, _option("Nanoseconds per comparison.", COSTS, "--comparison-ns")] = None,
    row_ns: Annotated[float | None, _option("Nanoseconds per row of a hash join.", COSTS, "--row-ns")] = None,
    plot: Annotated[Path | None, _option("Rate, degree, roles and delay as PNG.", OUTPUT, "--plot")] = None,
    json: Annotated[Path | None, _option("The whole run as JSON.", OUTPUT, "--json")] = None,
    every: Annotated[bool, _option("Print every decision, not only those that change.", OUTPUT, "--all")] = False,
) -> None:
    """Run a query's machines under a virtual clock."""
    asked = Asked(
        query=query, profile=profile, trace=trace, until=until, workers=workers, window=None, method=None,
        slow=tuple(slow or ()), seed=0, rule=None, beta=None, least=None, most=None, step=None, target=None, up=None,
        down=None, fixed=False, start_delay=start_delay, comparison_ns=comparison_ns, row_ns=row_ns,
    )  # fmt: skip
    check_place("--json", json)
    check_place("--plot", plot)
    wanted = machines_request(asked)
    world = CostedWorld(
        wanted.schedule, wanted.told.costs, speeds=wanted.told.settings.speeds, ready_ns=wanted.ready_ns
    )
    with working("running the machines"):
        outcome = world.run()
    run = world.story(wanted.told.settings.until_ns)
    tell(run, wanted.told, every=every)
    tell_results(outcome)
    if json is not None:
        write_json(json, run, wanted.told)
    if plot is not None:
        write_plot(plot, run, wanted.told)
