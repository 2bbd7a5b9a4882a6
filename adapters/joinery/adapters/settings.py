"""What every process of the service is told at its start: flags, the same names for all roles."""

import argparse
import ctypes
import os
import signal
import socket
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from joinery.adapters.embedded_redis import connect
from joinery.adapters.logs import begin, complain
from joinery.adapters.process import Process
from joinery.adapters.redis_spec import starting_spec
from joinery.adapters.security import TOKEN, Security
from joinery.join.plan import JoinPlan
from joinery.model.errors import TryAgain, UserMustAct
from joinery.model.spec import JoinQuery, JoinQuerySpec

_PR_SET_PDEATHSIG: Final = 1
REDIS_URL: Final = "JOINERY_REDIS_URL"
"""Variable of the environment: an argument of a process can be read by everybody on its machine."""
CANNOT_RUN: Final = 2
"""Exit code of a process that must not be started again: somebody must mend something first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The flags of one process."""

    query: Path
    """The query file; paths in it are relative to its folder."""
    as_read: Path | None = None
    """Its text as whoever starts the query has read it, so that all its processes have the same; None: as it is."""
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
    last_words: Path | None = None
    """Where the gateway writes what a query came to when it has ended; None: nowhere."""
    reflection: bool = False
    """Whether the server tells its services to whoever asks."""
    tls: Path | None = None
    """Folder with ca.crt, tls.crt and tls.key; None: plain text."""
    token: str = field(default="", repr=False)
    """What producers and subscribers must show; empty: nothing."""
    lookup: str = ""
    """Address of the lookup application, of a query with a stored table."""
    http: str = ""
    """Address of the pages for probes (`http_probes`); empty: there are none."""

    @property
    def stored_as(self) -> str:
        """The name of the query in its stores."""
        return self.keys or self.query.stem

    @property
    def instance(self) -> str:
        """A name that no other process has: drawn at the start."""
        return f"{self.name}/{uuid.uuid4().hex[:12]}"

    @property
    def joinquery(self) -> str:
        """The query's own name; a file that is being written does not keep a process from its work."""
        try:
            return JoinQuery.parse_yaml(self._text()).metadata.name
        except (UserMustAct, OSError, UnicodeDecodeError):
            return self.stored_as

    def security(self) -> Security:
        """What this process shows and asks for; its files are read now."""
        return Security.read(self.tls, self.token)

    def spec(self) -> JoinQuerySpec:
        """The query, checked."""
        return JoinQuery.parse_yaml(self._text()).spec

    def _text(self) -> str:
        return (self.as_read or self.query).read_text()


def read_flags(role: str, arguments: list[str] | None = None, environment: Mapping[str, str] = os.environ) -> Settings:
    """The flags of a role; what they leave open, and all that is secret, is in the environment."""
    parser = argparse.ArgumentParser(prog=f"python -m joinery.{role}", description=f"Runs the {role} of one query.")
    parser.add_argument("--query", type=Path, required=True, help="the JoinQuery file")
    parser.add_argument("--as-read", type=Path, help="its text as somebody has read it; left out: as it is")
    parser.add_argument("--name", default=role, help="name of this process, such as worker-0")
    parser.add_argument("--listen", default="", help="address to serve on, such as 127.0.0.1:7001")
    parser.add_argument("--gateway", default="", help="address of the gateway")
    parser.add_argument("--collector", default="", help="address of the collector")
    parser.add_argument("--lookup", default="", help="address of the lookup application of a stored table")
    redis = "URL of the Redis for log, checkpoints and commits; left out: JOINERY_REDIS_URL (the place for a password)"
    parser.add_argument("--redis", default="", help=redis)
    parser.add_argument("--keys", default="", help="name of the query's keys in Redis; left out: the query file's")
    parser.add_argument("--with-parent", type=int, default=0, help="end when the parent, which has this id, ends")
    parser.add_argument("--record", type=Path, help="folder to record the input in, for joinery verify")
    parser.add_argument("--speed-file", type=Path, help="file with this worker's comparisons per second, for tests")
    parser.add_argument("--reflection", action="store_true", help="serve gRPC reflection, for grpcurl and the like")
    tls = "folder with ca.crt, tls.crt, tls.key: TLS, with a certificate of that CA on both sides; left out: plain text"
    parser.add_argument("--tls", type=Path, help=tls)
    http = "HOST:PORT of plain HTTP: /livez, /readyz, /metrics, and the dashboard of a gateway at /; left out: none"
    parser.add_argument("--http", default="", help=http)
    words = "file for what a query came to, as JSON, when it has ended (a pod's termination message); left out: none"
    parser.add_argument("--last-words", type=Path, help=words)
    parser.epilog = f"{TOKEN} in the environment: the token that producers and subscribers must show; left out: none."
    flags = vars(parser.parse_args(arguments))
    flags["redis"] = flags["redis"] or environment.get(REDIS_URL, "")
    settings = Settings(**flags, token=environment.get(TOKEN, ""))
    if settings.with_parent:  # before anything that may wait, such as reading a file
        end_with_parent(settings.with_parent)
    worker = settings.name if role == "worker" else ""
    begin(role, query=settings.joinquery, worker=worker, environment=environment)
    return settings


def end_with_parent(parent: int) -> None:
    """Let the kernel send SIGTERM when the parent dies (Linux); it may have died before we could ask for that."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(1)


def plan_of(settings: Settings) -> tuple[JoinQuerySpec, JoinPlan]:
    """The query that a process is built from, and its plan: once there is a log, the one that it began with."""
    spec = settings.spec() if not settings.redis else _begun_with(settings)
    return spec, JoinPlan.of(spec)


def _begun_with(settings: Settings) -> JoinQuerySpec:
    client = connect(settings.redis)
    try:
        return starting_spec(client, settings.stored_as, settings.spec)
    finally:
        client.close()


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
        complain(name, str(refused))
        return CANNOT_RUN
    except TryAgain as error:
        complain(name, str(error))
        return 1
    because = process.run()
    failed = process.shell.failed or (because if ends_when_told and not because.startswith("SIG") else None)
    if failed is not None:
        complain(name, failed)
    if process.shell.cannot_run:
        return CANNOT_RUN
    return 0 if failed is None else 1


def free_port() -> int:
    """A port on this machine that nobody uses just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
