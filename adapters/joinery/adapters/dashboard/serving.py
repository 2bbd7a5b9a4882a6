"""The page's files, and `/events`: frames as server-sent events, once a second, the past first.

Rule 1: a frame is made once a second whether or not somebody looks, so that a page that is loaded again has the past.
Rule 2: it is turned into text once, however many look, and not at all if nobody does.
Rule 3: who cannot be looked at for a while (a gateway that is being started again) leaves the last frame standing; the
        page says how old it is.
"""

import json
import threading
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any, Final

from joinery.adapters.dashboard.frames import Film, Sight
from joinery.adapters.http_probes import Answer, Endless, Page, Probes
from joinery.model.errors import TryAgain

EVERY_S: Final = 1.0
LAST_WORD_S: Final = 0.3
"""How long readers have for the last frame."""
STATIC: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/dashboard.css": ("dashboard.css", "text/css; charset=utf-8"),
    "/dashboard.js": ("dashboard.js", "text/javascript; charset=utf-8"),
    "/charts.js": ("charts.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}


class Dashboard:
    """Between its making and `close`; its pages are those of `probes`."""

    def __init__(self, probes: Probes, film: Film, look: Callable[[], Sight]) -> None:
        self._film, self._look = film, look
        self._changed = threading.Condition()
        self._frame: dict[str, Any] | None = None
        self._number = 0
        self._text: tuple[int, bytes] = (0, b"")
        self._readers = 0
        self._is_over = False
        for page, (name, kind) in STATIC.items():
            probes.pages[page] = _static(name, kind)
        probes.pages["/events"] = lambda: Endless(self._events(), "text/event-stream")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._sample_all, name="dashboard", daemon=True)
        self._thread.start()

    def close(self, look: Callable[[], Sight] | None = None) -> None:
        """One more frame, by `look` if the usual way to look has ended; then no more."""
        self._stopping.set()
        self._thread.join(5)
        self._look = look or self._look
        self._sample()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._readers == 0, LAST_WORD_S)

    def _sample_all(self) -> None:
        while not self._stopping.is_set():
            self._sample()
            self._stopping.wait(EVERY_S)

    def _sample(self) -> None:
        try:
            sight = self._look()
        except TryAgain:
            return  # rule 3
        with self._changed:
            self._frame = self._film.add(sight)
            self._number += 1
            self._changed.notify_all()

    def _events(self) -> Iterator[bytes]:
        with self._changed:
            self._readers += 1
            seen, first = self._number, {"past": self._film.past(), "frame": self._frame}
        try:
            yield b"retry: 1500\n" + _event("past", first)
            while (text := self._after(seen)) is not None:
                seen, data = text
                yield data
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    def _after(self, seen: int) -> tuple[int, bytes] | None:
        """The next frame; a sign of life if there is none for long; None: there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._number > seen or self._is_over, 5 * EVERY_S)
            if self._number > seen:
                return self._number, self._as_text()
            return None if self._is_over else (seen, b": no news\n\n")

    def _as_text(self) -> bytes:
        if self._text[0] != self._number:
            self._text = (self._number, _event("frame", self._frame))
        return self._text[1]


def _event(name: str, value: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps(value, allow_nan=False, separators=(',', ':'))}\n\n".encode()


def _static(name: str, kind: str) -> Page:
    text = (files("joinery.adapters.dashboard") / "static" / name).read_text(encoding="utf-8")
    return lambda: Answer(200, text, kind)
