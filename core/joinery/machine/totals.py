"""How much a query has committed since it began: written with every commit, so it is exact whoever dies."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

from joinery.join.results import Kind, ResultPart


@dataclass(frozen=True, slots=True)
class Totals:
    """Rows of all commits up to one."""

    results: int = 0
    late: tuple[int, ...] = ()
    """Late rows per stream; streams that are not named have none."""

    def after(self, parts: Iterable[ResultPart]) -> "Totals":
        """The totals after one more commit, of these parts."""
        results, late = self.results, list(self.late)
        for part in parts:
            if part.kind is Kind.RESULT:
                results += int(part.times.size)
            elif part.times.size:
                late += [0] * (part.stream + 1 - len(late))
                late[part.stream] += int(part.times.size)
        return Totals(results, tuple(late))

    def newest(self, other: "Totals | None") -> "Totals":
        """The later ones of two: totals never go back."""
        if other is None:
            return self
        late = tuple(max(pair) for pair in zip_longest(self.late, other.late, fillvalue=0))
        return Totals(max(self.results, other.results), late)

    def late_of(self, stream: int) -> int:
        """Late rows of a stream."""
        return self.late[stream] if stream < len(self.late) else 0
