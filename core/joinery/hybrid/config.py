"""The settings of the hybrid join, with the thesis' defaults (table 6.2 and the text around it)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from joinery.hybrid.policy import Rules
from joinery.model.errors import BadSpec, Complaint

MIB: Final = 1 << 20


class Kind(StrEnum):
    """Which stream rows give a result."""

    INNER = "inner"
    LEFT = "left"
    """Also one without a partner: once, with nulls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridConfig:
    """How much memory, when to read, what to keep."""

    memory_bytes: int = 34 * MIB
    """Segments kept in memory: the 40 MB of the thesis without the wait buffer and a read buffer of 2 theta."""
    wait_bytes: int = 4 * MIB
    """The shared pool of waiting rows."""
    block_bytes: int = 4096
    invoke_rows: int = 3000
    """N_invoke: with the input empty, a segment for which so many rows wait is read."""
    free_share: float = 0.4
    """r_wb: a full pool is emptied until more than this share of it is free."""
    alpha: float = 0.3
    """What is left of an arrival frequency after an epoch."""
    epoch_rows: int = 10_000
    """tau, in rows (ours: the thesis gives no value)."""
    rho: float = 0.25
    """By how much a segment must be asked for more than the one that it replaces, per byte."""
    high_mark_blocks: int = 100
    low_mark_blocks: int = 2
    max_wait_ns: int | None = None
    """Ours: a segment for which a row has waited longer is read; None: never for that reason."""
    by_delay: bool = False
    """Ours: a full pool is emptied by rows times wait, not by rows alone; a batch's results wait for its last row."""
    kind: Kind = Kind.INNER

    def __post_init__(self) -> None:
        checks = (
            (self.memory_bytes >= 0, "memory_bytes", "at least 0"),
            (self.block_bytes >= 1, "block_bytes", "at least 1"),
            (self.wait_bytes >= self.block_bytes, "wait_bytes", "at least one block"),
            (self.invoke_rows >= 1, "invoke_rows", "at least 1"),
            (0 <= self.free_share < 1, "free_share", "0 <= r_wb < 1"),
            (0 < self.alpha <= 1, "alpha", "0 < alpha <= 1"),
            (self.epoch_rows >= 1, "epoch_rows", "at least 1"),
            (self.rho >= 0, "rho", "at least 0"),
            (0 <= self.low_mark_blocks <= self.high_mark_blocks, "low_mark_blocks", "0..high_mark_blocks"),
            (self.max_wait_ns is None or self.max_wait_ns >= 0, "max_wait_ns", "at least 0, or none"),
        )
        wrong = [
            Complaint(f"table.{name}", str(getattr(self, name)), wanted, "choose a value in these bounds")
            for holds, name, wanted in checks
            if not holds
        ]
        if wrong:
            raise BadSpec(wrong)

    def rules(self) -> Rules:
        """What the decisions need, in blocks and bytes."""
        blocks = self.wait_bytes // self.block_bytes
        return Rules(
            block_bytes=self.block_bytes,
            pool_blocks=blocks,
            free_blocks=self.free_share * blocks,
            invoke_rows=self.invoke_rows,
            alpha=self.alpha,
            epoch_rows=self.epoch_rows,
            rho=self.rho,
            high_bytes=self.high_mark_blocks * self.block_bytes,
            low_bytes=self.low_mark_blocks * self.block_bytes,
        )
