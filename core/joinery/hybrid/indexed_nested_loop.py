"""The indexed nested loop join of thesis 6.2: every row looks its key up in the stored relation at once.

It is the hybrid join with nothing kept and nothing waited for: no join memory, and one waiting row is enough for a
probe. With segments of a page (theta of 4 KB) a probe is the index's read of one page. Rows of one batch and one page
share a read; a batch of one row is the plain algorithm.
"""

from joinery.hybrid.config import HybridConfig, Kind


def indexed_nested_loop(kind: Kind = Kind.INNER) -> HybridConfig:
    """The settings that make an indexed nested loop of the hybrid join."""
    return HybridConfig(memory_bytes=0, invoke_rows=1, kind=kind)
