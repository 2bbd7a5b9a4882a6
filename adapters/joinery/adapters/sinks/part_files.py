"""Parts on disk: a file per collector term, in a directory beside the file that they will become.

    results.parquet.RUN.parts/00000003-1234.arrow         written by term 3; 1234 bytes counted when it began

A receipt counts bytes over all terms: what counted when a term began, and the length of its own part. So of an earlier
term's part counts what lies between the two beginnings, and nothing else needs to be written down.

Rule 1: a term touches its own part only, and only behind what is staged: a stage that is repeated, or that broke off
        (a full disk, a crash), is cut off first. What a receipt names is never written again.
Rule 2: durable: a stage is on disk (fsync) before its receipt is given.
Rule 3: the directory is there from the first `begin` to the end, and goes in one step (it is renamed, then removed). So
        if it is missing although a receipt names bytes of it, the output was finished.
Rule 4: RUN is another name for every run that starts anew: terms start anew too, and what a run that broke off has
        left must not be taken for a later collector's.
"""

import errno
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from joinery.adapters.sinks.formats import Piece
from joinery.machine.ports import Stale
from joinery.model.errors import TryAgain, UserMustAct, require
from joinery.model.ids import Term

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NAME: Final = re.compile(r"(\d{8,})-(\d+)\.[a-z]+")


def parts_of(path: Path, run: str) -> tuple[Path, Path]:
    """The directory of an output's parts while a run writes it, and while it goes."""
    directory = path.with_name(f"{path.name}.{run}.parts")
    return directory, directory.with_name(f"{directory.name}.done")


class PartFiles:
    """The parts of one output; `begin` before anything else."""

    def __init__(self, path: Path, run: str, ending: str, *, durable: bool) -> None:
        self.path = path
        self.directory, self._going = parts_of(path, run)
        self._ending, self._durable = ending, durable
        self._own: Path | None = None
        self._term = Term(0)
        self._base = self._length = self._start = 0
        self._number = 0

    def begin(self, term: Term, base: int) -> bool:
        """A collector starts its part behind `base` bytes that count; False: the output is finished (rule 3)."""
        with writing(self.directory):
            shutil.rmtree(self._going, ignore_errors=True)
            if base > 0 and not self.directory.exists() and self.path.exists():
                return False
            self.directory.mkdir(parents=True, exist_ok=True)
            for known, path in self._parts():
                if known == term:
                    path.unlink()
            self._own = self.directory / f"{term:08d}-{base}.{self._ending}"
            self._own.touch()
            self._sync(self.directory)
        self._term, self._base = term, base
        self._length = self._start = self._number = 0
        self.pieces(base, before=term)
        return True

    def stage(self, number: int, beginning: bytes, data: Iterable[bytes | memoryview]) -> int:
        """Write what belongs to commit `number`; how many bytes count if it is made."""
        own = self._own_part()
        require(number >= self._number, f"{own}: commit {number} is staged after commit {self._number}")
        if number > self._number:
            self._number, self._start = number, self._length
        with writing(own), own.open("r+b", buffering=0) as file:
            file.truncate(self._start)
            file.seek(self._start)
            for piece in data:
                if file.tell() == 0:
                    _write(file.fileno(), beginning)
                _write(file.fileno(), piece)
            if self._durable:
                os.fsync(file.fileno())
            self._length = os.fstat(file.fileno()).st_size
        return self._base + self._length

    def pieces(self, valid: int, before: Term | None = None) -> list[Piece]:
        """What counts, of terms before one or of all, in the order in which it was committed."""
        parts = [(term, path) for term, path in self._parts() if before is None or term < before]
        bases = [_base_of(path) for _, path in parts]
        ends = [*bases, valid][1:]
        found = [Piece(path, end - base) for (_, path), base, end in zip(parts, bases, ends, strict=True) if end > base]
        missing = [piece for piece in found if piece.path.stat().st_size < piece.length]
        if missing or sum(piece.length for piece in found) != valid:
            raise UserMustAct(
                f"found less in {self.directory} than the {valid} bytes that were committed, wanted its files as they "
                "were written; put them back, or run the query anew"
            )
        return found

    def is_there(self) -> bool:
        """Whether the output is still in parts, for this collector to finish; `Stale` if it is a later one's."""
        parts = self._parts() if self.directory.exists() else []
        if parts and parts[-1][0] > self._term:
            raise Stale(parts[-1][0], self._term)
        return bool(parts)

    def replace(self, made: Path) -> None:
        """The output is complete: put it in its place, then remove the parts."""
        with made.open("rb") as file:
            os.fsync(file.fileno())
        made.replace(self.path)
        self._sync(self.path.parent)
        self.remove()

    def remove(self) -> None:
        """Remove the parts (rule 3)."""
        if self.directory.exists():
            self.directory.rename(self._going)
        shutil.rmtree(self._going, ignore_errors=True)

    def _parts(self) -> list[tuple[Term, Path]]:
        found = [(match, path) for path in self.directory.iterdir() if (match := _NAME.fullmatch(path.name))]
        return sorted((Term(int(match[1])), path) for match, path in found)

    def _own_part(self) -> Path:
        require(self._own is not None, f"{self.path}: used before recover told the term")
        return self._own or self.path

    def _sync(self, directory: Path) -> None:
        if self._durable:
            handle = os.open(directory, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _base_of(path: Path) -> int:
    match = _NAME.fullmatch(path.name)
    return int(match[2]) if match else 0


def _write(file: int, data: bytes | memoryview) -> None:
    rest = memoryview(data).cast("B")
    while len(rest):
        rest = rest[os.write(file, rest) :]


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Around work on files: a full disk may pass, everything else is the user's."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise TryAgain(
                f"{path}: found no room ({error}), wanted some; make room, it is tried again and nothing is lost"
            ) from error
        raise UserMustAct(f"{path}: found {error}, wanted a place to write; change it, or the sink's path") from error
