"""What every process of the service is told at its start: flags, the same names for all roles."""

import argparse
import ctypes
import os
import signal
import socket
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from joinery.adapters.process import Process
from joinery.join.plan import JoinPlan
from joinery.model.errors import TryAgain, UserMustAct
from joinery.model.spec import JoinQuery, JoinQuerySpec

_PR_SET_PDEATHSIG: Final = 1
CANNOT_RUN: Final = 2
"""Exit code of a process that must not be started again: somebody must mend something first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The flags of one process."""

    query: Path
    """The query file; paths in it are relative to its folder."""
    name: str
    """Role and ordinal: gateway, collector, worker-0."""
    listen: str
    """Address to serve on; empty: this role serves nothing."""
    gateway: str
    collector: str
    redis: str
    keys: str
    """What the query's keys in Redis are called by; empty: by the query file."""
    with_parent: int
    """End when the process with this id, which started this one, ends, however it does; 0: nobody's."""
    record: Path | None = None
    """Folder in which the gateway records its input and the collector the results; None: they do not."""
    speed_file: Path | None = None
    """A worker's comparisons per second, in place of the query's, for tests; it may change while it runs."""
    reflection: bool = False
    """Whether the server tells its services to whoever asks."""

    @property
    def stored_as(self) -> str:
        """The name of the query in its stores."""
        return self.keys or self.query.stem

    @property
    def instance(self) -> str:
        """A name that no other process has: drawn at the start."""
        return f"{self.name}/{uuid.uuid4().hex[:12]}"

    def spec(self) -> JoinQuerySpec:
        """The query, checked."""
        return JoinQuery.parse_yaml(self.query.read_text()).spec


def read_flags(role: str, arguments: list[str] | None = None) -> Settings:
    """The flags of a role."""
    parser = argparse.ArgumentParser(prog=f"python -m joinery.{role}", description=f"Runs the {role} of one query.")
    parser.add_argument("--query", type=Path, required=True, help="the JoinQuery file")
    parser.add_argument("--name", default=role, help="name of this process, such as worker-0")
    parser.add_argument("--listen", default="", help="address to serve on, such as 127.0.0.1:7001")
    parser.add_argument("--gateway", default="", help="address of the gateway")
    parser.add_argument("--collector", default="", help="address of the collector")
    parser.add_argument("--redis", default="", help="URL of the Redis that holds checkpoints and commits")
    parser.add_argument("--keys", default="", help="name of the query's keys in Redis; left out: the query file's")
    parser.add_argument("--with-parent", type=int, default=0, help="end when the parent, which has this id, ends")
    parser.add_argument("--record", type=Path, help="folder to record the input in, for joinery verify")
    parser.add_argument("--speed-file", type=Path, help="file with this worker's comparisons per second, for tests")
    parser.add_argument("--reflection", action="store_true", help="serve gRPC reflection, for grpcurl and the like")
    settings = Settings(**vars(parser.parse_args(arguments)))
    if settings.with_parent:
        end_with_parent(settings.with_parent)
    return settings


def end_with_parent(parent: int) -> None:
    """Let the kernel send SIGTERM when the parent dies (Linux); it may have died before we could ask for that."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(1)


def plan_of(settings: Settings) -> tuple[JoinQuerySpec, JoinPlan]:
    """The query and its plan."""
    spec = settings.spec()
    return spec, JoinPlan.of(spec)


def stop_on_signals(process: Process) -> None:
    """SIGTERM and Ctrl-C end the process in order."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: process.shell.stop(f"{signal.Signals(got).name} came"))


def exit_code(name: str, main: Callable[[], Process], *, ends_when_told: bool = False) -> int:
    """Run a process to its end: 0; 1 with the reason if it failed; 2 with the complaint if the query cannot run.

    `ends_when_told`: it runs until it gets a signal; whatever else ends it (it was fenced) is a failure.
    """
    try:
        process = main()
    except UserMustAct as refused:
        sys.stderr.write(f"{name}: {refused}\n")
        return CANNOT_RUN
    except TryAgain as error:
        sys.stderr.write(f"{name}: {error}\n")
        return 1
    because = process.run()
    failed = process.shell.failed or (because if ends_when_told and not because.startswith("SIG") else None)
    if failed is not None:
        sys.stderr.write(f"{name}: {failed}\n")
    if process.shell.cannot_run:
        return CANNOT_RUN
    return 0 if failed is None else 1


def free_port() -> int:
    """A port on this machine that nobody uses just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
