"""The cache of the peers: `$JOINERY_PEERS`, by default `~/.cache/joinery/peers`.

    data/<workload>/   the input, in every form       <engine>/env/    a virtual environment per engine
    log/<step>.log     what a step or a run said      <engine>/made    of what it was made; written last

A step is done again only if what it is made of has changed, or if it did not come to its end. Packages come through
pip, with the user's own settings; Flink's Java libraries are among them, so nothing else is fetched.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from bench.answer import BenchError
from bench.inputs import Say
from bench.peers.engines import Engine, tail

JDK: Final = 17
"""The oldest that Flink and Spark run on."""
SETUP_GB: Final = 6.0
"""Environments and inputs, before they are made."""
SCRATCH_GB: Final = 4.0
"""What a run needs besides, at most: Spark's checkpoints."""
CONNECTOR: Final = Path(__file__).with_name("RawTables.java")
_FACTORIES: Final = ("joinery.peers.RawTables$SourceFactory", "joinery.peers.RawTables$SinkFactory")
_SERVICE: Final = "META-INF/services/org.apache.flink.table.factories.Factory"


def home_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the cache is."""
    named = environment.get("JOINERY_PEERS")
    return Path(named).absolute() if named else Path.home() / ".cache" / "joinery" / "peers"


def missing(folder: Path, engines: Iterable[Engine]) -> list[str]:
    """What this machine lacks for these engines, each with its remedy."""
    found = []
    if shutil.which("gcc") is None:
        found.append("gcc is missing: install it (Debian: apt-get install gcc)")
    if java := [engine.name for engine in engines if engine.needs_jdk]:
        has = jdk_version()
        remedy = "install one (Debian: apt-get install openjdk-17-jdk-headless) and put its javac on the PATH"
        if has is None or has < JDK:
            so = "no JDK" if has is None else f"JDK {has}"
            found.append(f"{' and '.join(java)}: found {so}, wanted JDK {JDK} or newer: {remedy}")
    free, wanted = _free_gb(folder), SCRATCH_GB if (folder / "data").exists() else SCRATCH_GB + SETUP_GB
    if free < wanted:
        elsewhere = "make room, or name another folder in JOINERY_PEERS"
        found.append(f"{folder}: found {free:.1f} GB free, wanted {wanted:.0f} GB: {elsewhere}")
    return found


def jdk_version() -> int | None:
    """The main version of the JDK on the PATH, if there is one."""
    if shutil.which("javac") is None or shutil.which("java") is None:
        return None
    said = subprocess.run(["javac", "-version"], capture_output=True, text=True, check=False)
    return parsed_version(said.stdout + said.stderr)


def parsed_version(said: str) -> int | None:
    """`javac 17.0.15` is 17; before 9 they said `javac 1.8.0`."""
    number = re.search(r"javac (?:1\.)?(\d+)", said)
    return int(number[1]) if number else None


def _free_gb(folder: Path) -> float:
    there = next(one for one in (folder, *folder.parents) if one.exists())
    return shutil.disk_usage(there).free / 1e9


@dataclass(frozen=True, slots=True)
class Home:
    """The cache, and whom to tell what is put into it."""

    folder: Path
    say: Say

    def python(self, engine: Engine) -> Path:
        """The Python of the engine's environment, which is made now unless it is there."""
        place = self.folder / engine.name
        python = place / "env" / "bin" / "python"

        def make() -> None:
            self.step(f"{engine.name}-environment", [sys.executable, "-m", "venv", str(place / "env")])
            install = [str(python), "-m", "pip", "install", "--disable-pip-version-check", *engine.packages]
            self.step(f"{engine.name}-packages", install)

        self._once(place, " ".join((sys.version.split()[0], *engine.packages)), make)
        return python

    def connector(self, engine: Engine) -> Path:
        """The jar of our own tables for Flink, compiled against the libraries of its environment."""
        python, place = self.python(engine), self.folder / f"{engine.name}-connector"
        jar = place / "tables.jar"

        def make() -> None:
            classes = place / "classes"
            service = classes / _SERVICE
            service.parent.mkdir(parents=True)
            service.write_text("".join(f"{name}\n" for name in _FACTORIES))
            libraries = next((python.parents[1] / "lib").glob("python*/site-packages/pyflink/lib"), None)
            if libraries is None:
                raise BenchError(
                    f"{python.parents[1]} has no pyflink/lib: remove {self.folder / engine.name}, run again"
                )
            compiler = ["javac", "-d", str(classes), "-cp", f"{libraries}/*", str(CONNECTOR)]
            self.step("flink-connector", compiler)
            self.step("flink-connector-jar", ["jar", "cf", str(jar), "-C", str(classes), "."])

        self._once(place, " ".join((sha256(CONNECTOR.read_bytes()).hexdigest(), *engine.packages)), make)
        return jar

    def step(self, name: str, command: Sequence[str]) -> None:
        """Run a program of the set-up; what it says goes into its log, the end of which is told if it fails."""
        log = self.log(name)
        self.say(f"setting up: {name}")
        with log.open("wb") as out:
            done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise BenchError(f"set-up step {name} failed ({log}):\n{tail(log)}")

    def log(self, name: str) -> Path:
        (self.folder / "log").mkdir(parents=True, exist_ok=True)
        return self.folder / "log" / f"{name}.log"

    @staticmethod
    def _once(place: Path, made_of: str, make: Callable[[], None]) -> None:
        note = place / "made"
        if note.exists() and note.read_text() == made_of:
            return
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        make()
        note.write_text(made_of)
