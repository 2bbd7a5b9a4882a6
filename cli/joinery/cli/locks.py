"""Files that a process holds by a lock of the kernel, which lets go when the process ends, however it ends.

So whether the holder lives is known for certain: no process id is looked up, which another one might have by now.
"""

import fcntl
import os
from pathlib import Path
from typing import IO


def lock(place: Path) -> IO[str] | None:
    """The file, locked until `unlock`; None: somebody else holds it."""
    while True:
        file = place.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        if place.exists() and os.path.samestat(place.stat(), os.fstat(file.fileno())):
            return file
        file.close()  # its holder took it away between our opening and locking it


def write(file: IO[str], text: str) -> None:
    """Say this, and nothing else, in a file that is locked."""
    file.truncate(0)
    file.write(text)
    file.flush()


def unlock(place: Path, file: IO[str]) -> None:
    """Take it away, and let go of it."""
    place.unlink(missing_ok=True)
    file.close()
