"""Clocks and samples: things that are compared are run in turns, so that a disturbance hits all of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Sample:
    """What several runs of one thing gave."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    def over(self, other: "Sample") -> "Sample":
        """Turn by turn, this over the other."""
        return Sample(tuple(mine / its for mine, its in zip(self.values, other.values, strict=True)))


def seconds(what: Callable[[], object]) -> float:
    """How long it takes."""
    start = perf_counter()
    what()
    return perf_counter() - start


def in_turns(runs: Mapping[str, Callable[[], float]], reps: int) -> dict[str, Sample]:
    """Each run `reps` times, one after another: a, b, a, b ..."""
    turns = [{name: run() for name, run in runs.items()} for _ in range(reps)]
    return {name: Sample(tuple(turn[name] for turn in turns)) for name in runs}
