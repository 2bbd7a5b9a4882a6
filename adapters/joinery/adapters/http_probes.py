"""`--http`: plain HTTP for probes, on a port of its own: it answers also where every other port wants a certificate.

    /livez    200 while the machine's loop turns; 503 says since when it has been at one fact, or at its end
    /readyz   200 when the process can do its work; 503 says what is missing, a line for each

Rule 1: a page is a function of no arguments; whoever has more to show (`/metrics`, the dashboard) adds a page.
Rule 2: nothing here can hold up the service: a few connections at once; one too many, or a silent one, is hung up.
        Pages that go on (`Endless`) are counted apart, so that probes are answered however many people look.
Rule 3: it is up before the process is, so that a probe during a long start is told what it does.
Rule 4: it only tells. No other page may read it (no CORS), nor be put around it; on loopback it answers to loopback's
        own names only, or a page of somebody else could read it under a name that leads here.
"""

import logging
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

from joinery.adapters.shell import Shell
from joinery.model.errors import UserMustAct

log = logging.getLogger(__name__)

STUCK_S: Final = 60.0
"""A loop that is at one fact for longer is stuck: the process is better started again."""
MOST_AT_ONCE: Final = 8
MOST_ENDLESS: Final = 16
"""Pages that go on, at once."""
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
GUARDS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every answer (rule 4)."""
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


@dataclass(frozen=True, slots=True)
class Endless:
    """A page that goes on: parts, until there are no more, or the reader has gone."""

    parts: Iterator[bytes]
    kind: str


Page = Callable[[], Answer | Endless]


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
        self._server.closing.set()
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
        self.closing = threading.Event()
        self.names = (*LOOPBACK, place[0]) if place[0] in LOOPBACK else None
        """What it may be called by; None: anything."""
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)
        self._endless: set[int] = set()
        """Threads of pages that go on: they have given their place back."""
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
            if threading.get_ident() in self._endless:
                self._endless.discard(threading.get_ident())
            else:
                self._places.release()

    def goes_on(self) -> bool:
        """The page of this thread does not end; False: there are too many such."""
        if len(self._endless) >= MOST_ENDLESS:
            return False
        self._endless.add(threading.get_ident())
        self._places.release()
        return True

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
        if isinstance(answer, Endless):
            if self.command == "HEAD" or self.server.goes_on():
                self._go_on(answer)
                return
            answer = Answer(503, f"found {MOST_ENDLESS} pages open, wanted fewer; close one, and ask again")
        data = f"{answer.text}\n".encode()
        self._begin(answer.status, answer.kind, {"Content-Length": str(len(data))})
        if self.command != "HEAD":
            self.wfile.write(data)

    def _begin(self, status: int, kind: str, more: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **more, **GUARDS}.items():
            self.send_header(name, value)
        self.end_headers()

    def _go_on(self, page: Endless) -> None:
        """Part by part; a reader that takes nothing for `ANSWER_S` is hung up."""
        self._begin(200, page.kind, {})
        if self.command == "HEAD":
            return
        for part in page.parts:
            if self.server.closing.is_set():
                return
            self.wfile.write(part)

    do_HEAD = do_GET  # noqa: N815

    def _is_called_right(self) -> bool:
        host = self.headers.get("Host")
        name = "" if host is None else host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        return self.server.names is None or host is None or name.strip("[]").lower() in self.server.names

    def _answer(self) -> Answer | Endless:
        if not self._is_called_right():
            return Answer(421, "found a Host that is not this machine's loopback, wanted 127.0.0.1 or localhost")
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
