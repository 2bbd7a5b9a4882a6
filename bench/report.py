"""What was measured: metrics, the goals that they have, a table for people and a file for programs."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.measure import Sample


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure, with the smallest and greatest that single turns gave."""

    name: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None

    @staticmethod
    def rate(name: str, sample: Sample) -> "Metric":
        """Tuples per second: the median of the turns."""
        return Metric(name, sample.median, "tuples/s", sample.low, sample.high)

    @staticmethod
    def ratio(name: str, one: Sample, other: Sample) -> "Metric":
        """One median over another; smallest and greatest are of the same turn."""
        turn_by_turn = one.over(other)
        return Metric(name, one.median / other.median, "ratio", turn_by_turn.low, turn_by_turn.high)


@dataclass(frozen=True, slots=True)
class Goal:
    """What a metric should reach."""

    pattern: str
    sign: str
    bound: float

    def __str__(self) -> str:
        return f"{self.sign} {self.bound:g}"

    def is_met(self, value: float) -> bool:
        return value >= self.bound if self.sign == ">=" else value <= self.bound


GOALS: Final = (
    Goal(r"core\.hash\.\w+\.ratio_to_c", ">=", 0.9),
    Goal(r"core\.hash\.\w+\.rows\.ratio_to_c", ">=", 0.7),
    Goal(r"core\.hash\.window_growth(\.\w+)?", "<=", 1.3),
    Goal(r"core\.hash\.memory_factor", "<=", 1.6),
    Goal(r"core\.fine_tuning\.speedup", ">=", 5),
    Goal(r"service\.U1\.ratio_to_flink", ">=", 10),
    Goal(r"service\.U1\.ratio_to_datafusion", ">=", 1.5),
    Goal(r"service\.U1\.durable\.ratio_to_flink", ">=", 8),
    Goal(r"service\.U1\.cpu_us", "<=", 1),
    Goal(r"hybrid\.ratio_to_spark", ">=", 5),
    Goal(r"service\.L1\.p50_ms", "<=", 30),
    Goal(r"service\.L1\.p99_ms", "<=", 100),
    Goal(r"spark\.generate\.tuples_per_s", ">=", 1e6),
    Goal(r"spark\.load\.pace_error", "<=", 0.02),
    Goal(r"state\.pause_p99_ms", "<=", 100),
    Goal(r"state\.pause_growth", "<=", 1.3),
    Goal(r"state\.recovery_s", "<=", 5),
    Goal(r"state\.checkpoint_overhead", "<=", 0.15),
    Goal(r"state\.wal_overhead", "<=", 0.3),
)


def goal_of(name: str) -> Goal | None:
    """The goal of a metric, if it has one."""
    return next((goal for goal in GOALS if re.fullmatch(goal.pattern, name)), None)


def table(metrics: Sequence[Metric], *, judged: bool = True) -> str:
    """The metrics in aligned columns, with their goals; a run that is too small for a figure is not judged."""
    lines: list[tuple[str, ...]] = [("metric", "median", "smallest", "greatest", "unit", "goal", "")]
    for metric in metrics:
        goal = goal_of(metric.name) if judged else None
        verdict = "" if goal is None else "met" if goal.is_met(metric.value) else "NOT MET"
        figures = [_shown(figure) for figure in (metric.value, metric.low, metric.high)]
        lines.append((metric.name, *figures, metric.unit, "" if goal is None else str(goal), verdict))
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    return "\n".join("  ".join(_aligned(line, widths)).rstrip() for line in lines)


def _aligned(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    is_figure = (False, True, True, True, False, False, False)
    padded = zip(line, widths, is_figure, strict=True)
    return [cell.rjust(width) if figure else cell.ljust(width) for cell, width, figure in padded]


def _shown(figure: float | None) -> str:
    if figure is None:
        return ""
    return f"{figure:,.0f}" if figure >= 1000 else f"{figure:.2f}"


def write_json(path: Path, metrics: Sequence[Metric]) -> None:
    """Put the metrics into the file; what it holds under other names stays."""
    held = json.loads(path.read_text()) if path.exists() else []
    new = [{"name": one.name, "value": float(f"{one.value:.6g}"), "unit": one.unit} for one in metrics]
    merged = {entry["name"]: entry for entry in [*held, *new]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(list(merged.values()), indent=1) + "\n")
