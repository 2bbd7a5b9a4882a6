"""Which run writes which file: two at the same time would replace each other's output, and neither would know.

A run holds a lock for each of its outputs, in the user's runtime folder. The kernel lets go of it when the process
ends, however it ends, so a lock is never stale; what the file says is only for the message.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO

from joinery.cli.running import made_folder
from joinery.model.errors import UserMustAct


@contextmanager
def claimed(outputs: Sequence[Path], name: str) -> Iterator[None]:
    """Nobody else of this user writes these files meanwhile; refused if somebody does."""
    with ExitStack() as held:
        for path in outputs:
            _claim(path.resolve(), name, held)
        yield


def _claim(path: Path, name: str, held: ExitStack) -> None:
    """Until the stack is closed; where there is no place for locks nothing can be said."""
    with suppress(OSError):
        place = made_folder() / f"{sha256(os.fsencode(path)).hexdigest()[:24]}.lock"
        lock = _locked(place, path)
        held.callback(_let_go, place, lock)
        lock.truncate(0)
        lock.write(json.dumps({"name": name, "pid": os.getpid()}))
        lock.flush()


def _locked(place: Path, path: Path) -> IO[str]:
    """The lock; one that its holder took away between our opening and locking it is no lock."""
    while True:
        lock = place.open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            with lock:
                raise UserMustAct(
                    f"found {_holder(lock)}, which writes {path}, wanted one run at a time for each file; "
                    "wait for it or stop it, or name another file in this query"
                ) from taken
        if place.exists() and os.path.samestat(place.stat(), os.fstat(lock.fileno())):
            return lock
        lock.close()


def _let_go(place: Path, lock: IO[str]) -> None:
    place.unlink(missing_ok=True)
    lock.close()


def _holder(lock: IO[str]) -> str:
    lock.seek(0)
    try:
        said = json.loads(lock.read())
        return f"a run of {said['name']} (process {said['pid']})"
    except (ValueError, KeyError, TypeError):
        return "another run"
