"""The C program of `bench/peers`: compiled once, then a process of its own that joins whenever it is asked to."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from bench.answer import Answer, BenchError
from bench.inputs import Files

SOURCE: Final = Path(__file__).with_name("peers") / "shj.c"
FLAGS: Final = ("-O3", "-march=native", "-pthread")


@dataclass(frozen=True, slots=True)
class CRun:
    """One run of the C program."""

    answer: Answer
    tuples_per_s: float


@dataclass(frozen=True, slots=True)
class Asked:
    """The program with a workload in its memory, waiting."""

    stdin: IO[str]
    stdout: IO[str]

    def run(self) -> CRun:
        """Join from empty windows."""
        self.stdin.write("\n")
        self.stdin.flush()
        line = self.stdout.readline()
        if not line:
            raise BenchError("the C program ended before it answered; is there enough memory?")
        said = json.loads(line)
        return CRun(Answer(said["pairs"], said["checksum"]), said["tuples"] / said["seconds"])


@dataclass(frozen=True, slots=True)
class CProgram:
    """The compiled program."""

    path: Path

    @staticmethod
    def compiled(folder: Path) -> "CProgram":
        """Compiled into a folder; again only if the source is newer, but gcc is wanted in any case."""
        gcc = shutil.which("gcc")
        if gcc is None:
            raise BenchError("gcc is missing: install it (Debian: apt-get install gcc)")
        path = folder / "shj"
        if path.exists() and path.stat().st_mtime >= SOURCE.stat().st_mtime:
            return CProgram(path)
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([gcc, *FLAGS, SOURCE, "-o", path], capture_output=True, text=True, check=False)
        if done.returncode:
            raise BenchError(f"gcc could not compile {SOURCE.name}:\n{done.stderr}")
        return CProgram(path)

    @contextmanager
    def loaded(self, files: Files, *, full: bool) -> Iterator[Asked]:
        """Started on a workload, with one thread and prefetching: its fastest mode on one core."""
        settings = (files.window_us, 1, 1, int(full), max(files.pairs, 1))
        command = [str(self.path), str(files.folder), *map(str, settings)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            if process.stdin is None or process.stdout is None:
                raise BenchError("the C program has no pipes")
            yield Asked(process.stdin, process.stdout)
