"""The section `table` of a stream: a stored relation that the other stream is joined with (docs/hybrid.md).

Names and defaults are those of the thesis (chapter 6, table 6.2), as `joinery.hybrid.config` has them.
"""

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from joinery.model.complaints import BadValue
from joinery.model.quantities import Bytes, Nanoseconds, format_size
from joinery.model.spec_fields import Count, FullText, Natural, PositiveDuration, Rows, Section, Share, Size
from joinery.model.spec_pods import VolumeSpec
from joinery.model.types import ColumnType, parse_type

VERSION: Final = "version"
"""The column that a table's rows carry besides their own: the version of the table."""
VERSION_TYPE: Final[ColumnType] = parse_type("int64")
BLOCK_BYTES: Final = 4096
"""A block of the wait buffer."""
_MEBI: Final = 2**20
_SECOND: Final = 1_000_000_000


class TableSpec(Section):
    """A stored table, how it is cut into segments, and how much of it is kept in memory."""

    path: FullText = Field(examples=["information"])
    """File or folder of the table, relative to the query file, or to its volume; or a URL that Spark knows."""
    volume: VolumeSpec | None = None
    """In a cluster: the volume that holds the table."""
    format: FullText = "parquet"
    """What Spark calls the format of the table."""
    refresh: PositiveDuration = Nanoseconds(10 * _SECOND)
    """How often the table is looked at; if it changed it becomes a new version."""
    cut: Literal["auto", "range", "hash"] = "auto"
    """How segments are cut; auto: by ranges if the key is one integer, else by its hash."""
    theta: Size = Bytes(_MEBI)
    """A segment has theta to 2 theta bytes."""
    memory: Size = Bytes(34 * _MEBI)
    """Segments that a worker keeps in memory."""
    wait_buffer: Size = Field(Bytes(4 * _MEBI), alias="waitBuffer")
    """Rows that wait for segments, in a worker."""
    max_wait: PositiveDuration = Field(Nanoseconds(_SECOND), alias="maxWait")
    """A segment for which a row has waited so long is read."""
    invoke_rows: Rows = Field(3000, alias="invokeRows")
    """With the input empty, a segment for which so many rows wait is read (N_invoke)."""
    free_share: Share = Field(0.4, alias="freeShare")
    """A full wait buffer is emptied until more than this share of it is free (r_wb)."""
    decay: Annotated[float, Field(strict=True, gt=0, le=1, allow_inf_nan=False)] = 0.3
    """What is left of a segment's arrival frequency after an epoch (alpha)."""
    epoch_rows: Rows = Field(10_000, alias="epochRows")
    """Rows of such an epoch (tau)."""
    rho: Annotated[float, Field(strict=True, ge=0, le=1000, allow_inf_nan=False)] = 0.25
    """By how much a segment must be asked for more than the one whose place in memory it takes."""
    high_mark: Count = Field(100, alias="highMark")
    """Blocks of waiting input from which on rows are joined in blocks (H_mark)."""
    low_mark: Natural = Field(2, alias="lowMark")
    """Blocks of waiting input below which rows are joined one by one again (L_mark)."""

    @model_validator(mode="after")
    def _bounds(self) -> "TableSpec":
        if self.wait_buffer < BLOCK_BYTES:
            found, wanted = f"waitBuffer {format_size(self.wait_buffer)}", f"at least one block, {BLOCK_BYTES} bytes"
            raise BadValue(found, wanted, "leave it out for 4Mi")
        if self.low_mark > self.high_mark:
            found, wanted = f"lowMark {self.low_mark}", f"at most highMark, {self.high_mark}"
            raise BadValue(found, wanted, "leave both out for 2 and 100")
        return self
