"""What a process of the service sets before it works: memory that is freed is used again.

Rows come and go in pieces of about 1 MB. By default every such piece is given back to the system when it is freed and
taken again page by page, which was a quarter of a worker's time (docs/performance.md). So freed memory is kept.
"""

import ctypes
import gc
import sys
from typing import Final

import pyarrow as pa

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
"""Names of glibc's mallopt; with few arenas what one thread frees is used by the next."""
_LARGEST: Final = 1 << 30
_ARENAS: Final = 2
_OFTEN: Final = 50_000
_SWITCH_S: Final = 0.0005
"""A thread that wants to go on after a compiled call waits so long for one that runs Python, not the usual 5 ms."""


def keep_memory() -> None:
    """Freed memory stays with the process (with glibc; elsewhere all is left as it is)."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    mallopt(_MMAP_THRESHOLD, _LARGEST)
    mallopt(_TRIM_THRESHOLD, 2 * _LARGEST - 1)
    mallopt(_ARENA_MAX, _ARENAS)
    pa.set_memory_pool(pa.system_memory_pool())


def settle() -> None:
    """Everything is imported: the collector of garbage need not look at it again, nor so often; threads take turns."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OFTEN, 20, 50)
    sys.setswitchinterval(_SWITCH_S)
