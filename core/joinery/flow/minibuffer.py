"""Station 2 of 8, mini-buffer: when waiting rows are due, and how `auto` chooses the distribution epoch.

The gateway keeps a mini-buffer per stream and partition (seed 000, IV.B). With a fixed epoch t_d rows wait for the
worker's slot. With `auto` a slot is due as soon as it is worth sending:

Rule 1: due when `full_bytes` wait (1-4 MB: then the cost of a message is small beside its rows), or the oldest row
        has waited t_d.
Rule 2: t_d is 5-200 ms. A slot that took longer than its length is an overrun: counted, and t_d doubles. After
        `CALM_EPOCHS` in a row that used at most half of their slots t_d falls by a quarter. What filled half fills
        two thirds at most after that, so a steady load never makes it swing.

Here is only the rule; the gateway owns the buffers and the timer.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from joinery.model.errors import require
from joinery.model.time import NS_PER_UNIT

MIN_FULL_BYTES: Final = 1 << 20
MAX_FULL_BYTES: Final = 4 << 20
MIN_EPOCH_NS: Final = 5 * NS_PER_UNIT["ms"]
MAX_EPOCH_NS: Final = 200 * NS_PER_UNIT["ms"]
CALM_EPOCHS: Final = 64


class Due(StrEnum):
    """Whether waiting rows are to be sent now, and why."""

    FULL = "full"
    OLD = "old"
    NOT_YET = "not yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class DueRule:
    """Rule 1."""

    max_age_ns: int
    """t_d: no row waits longer, unless its worker has no credit."""
    full_bytes: int = MIN_FULL_BYTES

    def __post_init__(self) -> None:
        require(self.max_age_ns > 0, f"max_age_ns={self.max_age_ns}, want a positive age")
        require(
            MIN_FULL_BYTES <= self.full_bytes <= MAX_FULL_BYTES,
            f"full_bytes={self.full_bytes}, want {MIN_FULL_BYTES}..{MAX_FULL_BYTES}",
        )

    def due(self, *, waiting_bytes: int, oldest_ns: int | None, now_ns: int) -> Due:
        """Whether to send now; `oldest_ns` is when the oldest waiting row came, None if none waits."""
        if oldest_ns is None:
            return Due.NOT_YET
        if waiting_bytes >= self.full_bytes:
            return Due.FULL
        return Due.OLD if now_ns - oldest_ns >= self.max_age_ns else Due.NOT_YET


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoEpoch:
    """Rule 2: the present t_d of `auto`, and what it remembers to choose the next."""

    length_ns: int = MIN_EPOCH_NS
    overruns: int = 0
    """Slots that took longer than their length, since the start."""
    calm: int = 0
    """Epochs in a row that used at most half of every slot."""

    def __post_init__(self) -> None:
        require(
            MIN_EPOCH_NS <= self.length_ns <= MAX_EPOCH_NS,
            f"length_ns={self.length_ns}, want {MIN_EPOCH_NS}..{MAX_EPOCH_NS}",
        )

    def after(self, *, slot_ns: int, used_ns: int) -> "AutoEpoch":
        """The next t_d after an epoch whose slots were `slot_ns` long and whose slowest took `used_ns`."""
        if used_ns > slot_ns:
            return AutoEpoch(length_ns=min(2 * self.length_ns, MAX_EPOCH_NS), overruns=self.overruns + 1)
        if 2 * used_ns > slot_ns:
            return replace(self, calm=0)
        if self.calm + 1 < CALM_EPOCHS:
            return replace(self, calm=self.calm + 1)
        return replace(self, length_ns=max(self.length_ns * 3 // 4, MIN_EPOCH_NS), calm=0)
