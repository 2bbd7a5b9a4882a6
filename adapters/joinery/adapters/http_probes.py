"""`--http`: plain HTTP for probes, on a port of its own: it answers also where every other port wants a certificate.

    /livez    200 while the machine's loop turns; 503 says since when it has been at one fact, or at its end
    /readyz   200 when the process can do its work; 503 says what is missing, a line for each

Rule 1: a page is a function of no arguments; whoever has more to show (`/metrics`) adds a page.
Rule 2: nothing here can hold up the service: a few connections at once; one too many, or a silent one, is hung up.
Rule 3: it is up before the process is, so that a probe during a long start is told what it does.
"""

import logging
import socket
import socketserver
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

from joinery.adapters.shell import Shell
from joinery.model.errors import UserMustAct

log = logging.getLogger(__name__)

STUCK_S: Final = 60.0
"""A loop that is at one fact for longer is stuck: the process is better started again."""
MOST_AT_ONCE: Final = 8
ANSWER_S: Final = 5.0
"""A connection that says nothing for so long is hung up."""
Missing = Callable[[], str | None]
"""What a process still lacks for its work; None: nothing."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a page says."""

    status: int
    text: str
    kind: str = "text/plain; charset=utf-8"


Page = Callable[[], Answer]


class Probes:
    """The pages of one process; served from the beginning to `close`."""

    def __init__(self, address: str, *, stuck_s: float = STUCK_S) -> None:
        self._shell: Shell | None = None
        self._missing: tuple[Missing, ...] = ()
        self._stuck_s = stuck_s
        self.pages: dict[str, Page] = {"/livez": self._livez, "/readyz": self._readyz}
        host, port = place_of(address)
        try:
            self._server = _Server((host, port), self.pages)
        except OSError as error:
            found = f"--http: found {address} that cannot be listened on ({error.strerror or error})"
            raise UserMustAct(f"{found}, wanted a free port of this machine; choose another") from error
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="http", daemon=True).start()

    def watch(self, shell: Shell, *missing: Missing) -> None:
        """From now on: the health of this loop, and what its process lacks."""
        self._missing, self._shell = missing, shell

    def close(self) -> None:
        """No more answers."""
        self._server.shutdown()
        self._server.server_close()

    def _livez(self) -> Answer:
        if self._shell is None:
            return Answer(200, "starting")
        busy_s = self._shell.busy_s
        if busy_s > self._stuck_s:
            doing = "its end" if self._shell.stopped_because is not None else "one fact"
            return Answer(503, f"the loop is at {doing} for {busy_s:.0f} s, wanted at most {self._stuck_s:g} s")
        return Answer(200, "ok")

    def _readyz(self) -> Answer:
        if self._shell is None:
            return Answer(503, "the process is starting")
        if self._shell.stopped_because is not None:
            return Answer(503, f"the process ends: {self._shell.stopped_because}")
        lacks = [text for text in (one() for one in self._missing) if text is not None]
        return Answer(503, "\n".join(lacks)) if lacks else Answer(200, "ok")


def open_probes(address: str) -> Probes | None:
    """As the flag says; empty: none."""
    return Probes(address) if address else None


def place_of(address: str) -> tuple[str, int]:
    """Host and port of HOST:PORT; an empty host is every one of this machine, [::1] is an IPv6 one."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not host.startswith("[")):
        raise UserMustAct(f"--http: found {address!r}, wanted HOST:PORT such as 0.0.0.0:8080; write it like that")
    return host.strip("[]"), int(port)


class _Server(socketserver.ThreadingTCPServer):
    """Rule 2."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self, place: tuple[str, int], pages: dict[str, Page]) -> None:
        self.pages = pages
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)
        if ":" in place[0]:
            self.address_family = socket.AF_INET6
        super().__init__(place, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """One that hangs up in the middle is no reason to fill the output."""
        del request
        log.debug("%s is gone", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """One question, one answer: HTTP/1.0, so the connection ends with it."""

    server: _Server
    server_version = "joinery"
    sys_version = ""
    timeout = ANSWER_S

    def do_GET(self) -> None:
        answer = self._answer()
        data = f"{answer.text}\n".encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_HEAD = do_GET  # noqa: N815

    def _answer(self) -> Answer:
        page = self.server.pages.get(self.path.partition("?")[0])
        if page is None:
            return Answer(404, f"found no such page, wanted one of {', '.join(self.server.pages)}")
        try:
            return page()
        except Exception:
            log.exception("%s failed", self.path)
            return Answer(500, "the page failed; the process's output says why")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - named by the library
        log.debug(format, *args)
