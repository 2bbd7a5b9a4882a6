"""The bare and the guarded β-rule on the same load, side by side: ours, in no paper."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from bench.figures.style import COLOURS, drawing, labelled
from joinery.elastic.beta import BetaRule
from joinery.elastic.classify import Thresholds
from joinery.generate.profiles import Step
from joinery.simulate.costs import CostModel
from joinery.simulate.load import simulate
from joinery.simulate.load_result import LoadRun
from joinery.simulate.load_settings import SECOND, LoadSettings, Method, Rule

BEFORE_HZ: Final = 1000.0
AFTER_HZ: Final = 3000.0
STEP_NS: Final = 200 * SECOND
ROW_NS: Final = 400_000
"""What a row costs in all: a worker bears 2500 rows/s, as a throttled one would."""
COSTS: Final = CostModel(
    comparison_ns=0.0, insert_ns=ROW_NS / 2, probe_ns=ROW_NS / 2, message_ns=200_000, link_bytes_per_s=1e8
)


@cache
def run_of(rule: Rule) -> LoadRun:
    """Ten minutes with a three-fold step of the rate."""
    settings = LoadSettings(
        windows_ns=(60 * SECOND, 60 * SECOND),
        method=Method.HASH,
        epoch_ns=SECOND // 5,
        reorganization_ns=2 * SECOND,
        degree=1,
        adaptive=True,
        rule=rule,
        scaling=BetaRule(max_degree=8),
        thresholds=Thresholds() if rule is Rule.GUARDED else Thresholds.paper(),
        until_ns=600 * SECOND,
    )
    return simulate(settings, COSTS, Step(before_hz=BEFORE_HZ, after_hz=AFTER_HZ, at_ns=STEP_NS))


def beta_rule(path: Path) -> list[Mapping[str, object]]:
    """Degree and delay over time under both rules."""
    runs = {rule: run_of(rule) for rule in (Rule.PAPER, Rule.GUARDED)}
    turns = {rule: run.turns() for rule, run in runs.items()}
    work = 2 * AFTER_HZ * ROW_NS / 1e9
    caption = (
        "Simulated (S), scaled: W = 60 s, hash join, a worker bears 2500 rows/s, t_d = 0.2 s, t_r = 2 s; "
        f"{BEFORE_HZ:.0f} rows/s per stream, from 200 s on {AFTER_HZ:.0f} ({work:.1f} workers' work). "
        f"Changes of direction: {turns[Rule.PAPER]} with the bare rule, {turns[Rule.GUARDED]} with the guarded one. "
        "In no paper: they do not show the degree over time."
    )
    title = "The β-rule: bare and guarded on the same load"
    with drawing(path, title, caption, panels=2) as (left, right):
        for place, (rule, run) in enumerate(runs.items()):
            times = [at_ns / 1e9 for at_ns, _ in run.degrees()]
            left.step(
                times, [degree for _, degree in run.degrees()], where="post", color=COLOURS[1 - place], label=rule
            )
            delays = [(at_ns / 1e9, delay.mean) for at_ns, delay in run.delay_over_time(10 * SECOND)]
            right.plot(*zip(*delays, strict=True), color=COLOURS[1 - place], label=rule)
        left.axhline(work / 0.8, color="#999999", linewidth=0.8, linestyle=":", label="work / 0.8 after the step")
        left.set_ylim(0, 8.5)
        right.set_yscale("log")
        labelled(left, "time (s)", "degree (workers asked for)")
        labelled(right, "time (s)", "mean delay per 10 s (s)")
    return [
        {
            "rule": rule.value,
            "time_s": sample.at_ns / 1e9,
            "degree": sample.degree,
            "n_sup": sample.n_sup,
            "n_con": sample.n_con,
            "busy_sum": round(sum(worker.busy for worker in sample.workers), 4),
            "waiting_bytes": int(sample.waiting_bytes),
        }
        for rule, run in runs.items()
        for sample in run.samples
    ]
