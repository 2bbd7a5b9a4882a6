"""When the schedule's faults strike: crash points are counted, moments are planned.

A crash point counts the effects of a role and ordinal over the whole run, whoever the instance is: `count` = 3 may hit
the second instance. Timers are no effects, and are counted only by a point that names them.
"""

from collections import Counter

from joinery.machine.effects import Effect
from joinery.machine.orders import Order, Send
from joinery.simulate.schedule import Crash, Pause, Role, Schedule, StoreDown


class CrashPoints:
    """Counts effects and tells which fault strikes before one."""

    def __init__(self, schedule: Schedule) -> None:
        self.effects: Counter[tuple[Role, Effect]] = Counter()
        self._seen: Counter[tuple[Role, int, Effect | str | None]] = Counter()
        self._waiting: dict[tuple[Role, int, Effect | str | None, int], list[Crash | Pause]] = {}
        for fault in schedule.faults:
            if isinstance(fault, Crash | Pause):
                at = fault.at
                self._waiting.setdefault((at.role, at.ordinal, at.message or at.effect, at.count), []).append(fault)
        self._watched = {key[:2] for key in self._waiting}

    def before(self, role: Role, ordinal: int, order: Order) -> Crash | Pause | None:
        """The fault that strikes just before this effect, which is counted."""
        effect = order.effect
        self.effects[role, effect] += 1
        if (role, ordinal) not in self._watched:
            return None
        found: list[Crash | Pause] = []
        kinds: tuple[Effect | str | None, ...] = (effect, None) if effect is not Effect.TIMER else (effect,)
        if isinstance(order, Send):
            kinds = (*kinds, type(order.message).__name__)
        for kind in kinds:
            self._seen[role, ordinal, kind] += 1
            found += self._waiting.pop((role, ordinal, kind, self._seen[role, ordinal, kind]), ())
        crashes = [fault for fault in found if isinstance(fault, Crash)]
        return (crashes or found)[0] if found else None


class Outages:
    """When the stores are down."""

    def __init__(self, schedule: Schedule) -> None:
        downs = [fault for fault in schedule.faults if isinstance(fault, StoreDown)]
        self._spans = sorted((fault.at_ns, fault.at_ns + fault.for_ns) for fault in downs)

    def until(self, now: int) -> int | None:
        """When the stores will be up again; None: they are up."""
        ends = [end for start, end in self._spans if start <= now < end]
        return max(ends, default=None)

    def began_between(self, after: int, upto: int) -> bool:
        """Whether the stores went down in that time."""
        return any(after < start <= upto for start, _ in self._spans)
