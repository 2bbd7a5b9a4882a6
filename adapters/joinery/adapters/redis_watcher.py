"""Stands between an embedded Redis and its owner, as a process of its own (`embedded_redis`, rule 2).

Run by its path, without our packages, so that it is there at once and small:
`python -I -S redis_watcher.py OWNER SCRATCH COMMAND...`. It inherits the lock of the server's directory, and holds it
until the server is gone.
"""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
from typing import Final

_LOOK_S: Final = 0.2
_STOP_S: Final = 10.0
_PR_SET_PDEATHSIG: Final = 1


def watch(owner: int, scratch: str, command: list[str]) -> int:
    """Run the server until it ends, the input ends or the owner is gone; its exit code."""
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_end_with_the_watcher)  # noqa: S603, PLW1509
    while server.poll() is None and os.getppid() == owner:
        if select.select([0], [], [], _LOOK_S)[0] and not os.read(0, 1):
            break
    server.terminate()
    try:
        server.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        server.kill()
    if os.getppid() != owner:
        shutil.rmtree(scratch, ignore_errors=True)
    return server.wait() & 255


def _end_with_the_watcher() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(watch(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
