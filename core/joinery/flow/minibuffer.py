"""Station 2 of 8, mini-buffer: when waiting rows are due, and how `auto` chooses the distribution epoch.

The gateway keeps a mini-buffer per stream and partition (seed 000, IV.B). With a fixed epoch t_d rows wait for the
worker's slot. With `auto` a slot is due as soon as it is worth sending:

Rule 1: due when `full_bytes` wait (1-4 MB: then the cost of a message is small beside its rows), or the oldest row
        has waited t_d.
Rule 2: t_d is 5-200 ms. An epoch was too short if a slot took longer than its length (an overrun, which is counted),
        or if a worker still had small messages of two turns before it when its next turn came: then messages cost
        more than their rows. One such epoch happens on any machine; once more than `MUCH` of the last `SPAN` were, t_d
        grows by a half. After `CALM_EPOCHS` in a row that used at most half of their slots it falls by a quarter. What
        filled half fills two thirds at most after that, and a length that was too short is not tried again before
        `FORGET_EPOCHS`, so a steady load does not make it swing.

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
FORGET_EPOCHS: Final = 1024
SPAN: Final = 16
MUCH: Final = 1 / 4


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
    trouble: float = 0.0
    """The share of epochs that were too short; older ones count less."""
    too_short_ns: int = 0
    """A length that was."""

    def __post_init__(self) -> None:
        require(
            MIN_EPOCH_NS <= self.length_ns <= MAX_EPOCH_NS,
            f"length_ns={self.length_ns}, want {MIN_EPOCH_NS}..{MAX_EPOCH_NS}",
        )

    def after(self, *, slot_ns: int, used_ns: int, piles_up: bool = False) -> "AutoEpoch":
        """The next t_d after an epoch whose slots were `slot_ns` long, whose slowest took `used_ns`."""
        overran = used_ns > slot_ns
        trouble = self.trouble + ((overran or piles_up) - self.trouble) / SPAN
        now = replace(self, overruns=self.overruns + overran, trouble=trouble)
        if trouble > MUCH:
            longer = min(self.length_ns * 3 // 2, MAX_EPOCH_NS)
            return replace(now, length_ns=longer, calm=0, trouble=0.0, too_short_ns=self.length_ns)
        if piles_up or 2 * used_ns > slot_ns:
            return replace(now, calm=0)
        return now._calmer()

    def _calmer(self) -> "AutoEpoch":
        calm, shorter = self.calm + 1, max(self.length_ns * 3 // 4, MIN_EPOCH_NS)
        if calm >= FORGET_EPOCHS:
            return replace(self, length_ns=shorter, calm=0, too_short_ns=0)
        if calm >= CALM_EPOCHS and shorter > self.too_short_ns:
            return replace(self, length_ns=shorter, calm=0)
        return replace(self, calm=calm)
