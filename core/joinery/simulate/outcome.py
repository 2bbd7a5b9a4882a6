"""What became of a run."""

from collections import Counter
from dataclasses import dataclass

from joinery.join.results import ResultPart
from joinery.machine.effects import Effect
from joinery.simulate.history import History
from joinery.simulate.schedule import Role
from joinery.simulate.story import Story


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A run that ended, got stuck or failed."""

    history: History
    sinks: dict[str, list[ResultPart]]
    """What counts in each sink by the last commit."""
    story: Story
    effects: Counter[tuple[Role, Effect]]
    """How many effects of each kind the processes of each role had."""
    counts: Counter[str]
    """Crashes that struck, moves, records, commits ..."""
    virtual_ns: int
    failed: str | None = None
    """The machine or the invariant that broke, and the last events; None: none did."""
    stuck: str | None = None
    """Who was still there at the deadline; None: the run ended."""

    @property
    def ended(self) -> bool:
        """Whether the query drained and everybody stopped."""
        return self.failed is None and self.stuck is None
