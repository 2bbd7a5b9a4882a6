"""What a run has outside itself, written down for whoever comes after it was killed: scratch folders, parts of outputs.

Rule 1: a process keeps a list of it in the user's runtime folder, and holds a lock on the list (`locks`). A list that
        nobody holds is of a process that is dead: `sweep` removes what it names, and the list.
Rule 2: nobody but this user may write into that folder (`made_folder`), and nothing is removed that does not have a
        name as we give it.
Rule 3: what a stopped run needs to go on (`--state`) is not in the list.
"""

import json
import os
import re
import shutil
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final

from joinery.cli import locks
from joinery.cli.running import made_folder

_NAMES: Final = re.compile(r"joinery-(run|redis|segments|sql|record)-\w+|.+\.[0-9a-f]{12}\.parts(\.done)?")
_ANNOUNCEMENT: Final = re.compile(r".+-\d+\.json")


class _List:
    """That of one process; there while it names something."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._changing = threading.Lock()
        self._paths: dict[str, None] = {}
        self._held: tuple[Path, IO[str]] | None = None

    def change(self, more: tuple[Path, ...] = (), fewer: tuple[Path, ...] = ()) -> None:
        with self._changing, suppress(OSError):  # without a runtime folder nothing can be written down
            for path in more:
                self._paths[str(path.absolute())] = None
            for path in fewer:
                self._paths.pop(str(path.absolute()), None)
            self._write()

    def _write(self) -> None:
        if self._held is None and self._paths:
            place = made_folder() / f"{uuid.uuid4().hex}.left"
            if (file := locks.lock(place)) is not None:
                self._held = place, file
        if self._held is not None and self._paths:
            locks.write(self._held[1], json.dumps(list(self._paths)))
        elif self._held is not None:
            locks.unlock(*self._held)
            self._held = None


_lists: list[_List] = []


def _ours() -> _List:
    if not _lists or _lists[0].owner != os.getpid():
        _lists[:] = [_List()]
    return _lists[0]


def keep(*paths: Path) -> None:
    """These are ours until `let_go`, whether they are there yet or not."""
    _ours().change(more=paths)


def let_go(*paths: Path) -> None:
    """They are gone, or are somebody's."""
    _ours().change(fewer=paths)


@contextmanager
def scratch(kind: str) -> Iterator[Path]:
    """A temporary folder, which is removed even if we are not there to do it."""
    with TemporaryDirectory(prefix=f"joinery-{kind}-") as made:
        keep(Path(made))
        try:
            yield Path(made)
        finally:
            let_go(Path(made))


def sweep() -> list[Path]:
    """Remove what dead runs have left (rule 1); what it was."""
    found: list[Path] = []
    with suppress(OSError):
        folder = made_folder()
        for place in [*folder.glob("*.left"), *folder.glob("*.lock")]:
            if (file := locks.lock(place)) is None:
                continue
            found += _remove(place) if place.suffix == ".left" else []
            locks.unlock(place, file)
    return found


def _remove(place: Path) -> list[Path]:
    try:
        named = [Path(text) for text in json.loads(place.read_text() or "[]")]
    except (ValueError, TypeError):
        return []
    there = [path for path in named if _is_ours(path, place.parent) and path.exists()]
    for path in there:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return there


def _is_ours(path: Path, folder: Path) -> bool:
    """Rule 2."""
    pattern = _ANNOUNCEMENT if path.parent == folder else _NAMES
    return pattern.fullmatch(path.name) is not None
