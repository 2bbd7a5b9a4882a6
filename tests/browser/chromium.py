"""A headless Chromium of this machine, driven over its own protocol (CDP): enough for a page of ours, and no more."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome-headless-shell")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--remote-debugging-port=0", "--remote-allow-origins=*",
)  # fmt: skip


def find() -> str | None:
    """The program; JOINERY_CHROMIUM names another one."""
    names = (os.environ.get("JOINERY_CHROMIUM", ""), *NAMES)
    return next((found for name in names if name and (found := shutil.which(name))), None)


class Browser:
    """One browser with one page; use it with `with`. `complaints` is all that the page's console had to complain of."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._folder = tempfile.TemporaryDirectory(prefix="joinery-chromium-", ignore_cleanup_errors=True)
        self._number = 0
        self._session: str | None = None
        self._socket: websocket.WebSocket | None = None
        self.complaints: list[str] = []

    def __enter__(self) -> "Browser":
        words = [self._program, *FLAGS, f"--user-data-dir={self._folder.name}", "about:blank"]
        silent = subprocess.DEVNULL
        self._process = subprocess.Popen(words, stdin=silent, stdout=silent, stderr=silent)  # noqa: S603
        try:
            self._connect()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def _connect(self) -> None:
        said = Path(self._folder.name) / "DevToolsActivePort"
        until = time.monotonic() + 30
        while not said.exists() or len(said.read_text().split()) < 2:
            assert time.monotonic() < until, "Chromium did not start"
            time.sleep(0.05)
        port, path = said.read_text().split()
        self._socket = websocket.create_connection(f"ws://127.0.0.1:{port}{path}", timeout=30)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command, and its answer; what the page complains of meanwhile is kept."""
        assert self._socket is not None
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        self._socket.send(json.dumps(command | ({"sessionId": self._session} if self._session else {})))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return dict(answer["result"])
            self._heard(answer)

    def _heard(self, event: dict[str, Any]) -> None:
        given = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(str(given["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if given["type"] in ("error", "warning", "assert"):
                self.complaints.append(str(given["args"]))
            case "Log.entryAdded" if given["entry"]["level"] in ("error", "warning"):
                self.complaints.append(str(given["entry"]))
            case "Network.responseReceived" if given["response"]["status"] >= 400:
                self.complaints.append(f"{given['response']['url']} answered {given['response']['status']}")

    # --- what a person does

    def open(self, url: str) -> None:
        """Load a page."""
        self.call("Page.navigate", url=url)
        self._until_loaded()

    def reload(self) -> None:
        """Load it again."""
        self.see("window.isOld = true")
        self.call("Page.reload")
        self._until_loaded()

    def _until_loaded(self) -> None:
        end = time.monotonic() + 30
        is_there = "document.readyState === 'complete' && location.protocol === 'http:' && !window.isOld"
        while not self.see(is_there):
            assert time.monotonic() < end, "the page did not load"
            time.sleep(0.05)

    def see(self, expression: str) -> Any:
        """What an expression of JavaScript is in the page."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got["exceptionDetails"]
        return got["result"].get("value")

    def until(self, expression: str, meanwhile: Callable[[], object] = lambda: None, seconds: float = 60.0) -> Any:
        """Wait until an expression is true; it."""
        end = time.monotonic() + seconds
        while not (found := self.see(expression)):
            page = self.see("document.body.innerText")
            assert time.monotonic() < end, f"{expression} did not come; the page: {page[:3000]}"
            meanwhile()
            time.sleep(0.1)
        return found

    def press(self, key: str) -> None:
        """One key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def looks(self, *, width: int, height: int, dark: bool = False, phone: bool = False) -> None:
        """The size of the screen, and whether the person likes it dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=phone,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}  # a picture catches no half of a pulse
        self.call("Emulation.setEmulatedMedia", features=[scheme, still])

    def picture(self, path: Path, most: int = 10_000, from_y: float = 0.0) -> None:
        """The page, as PNG: the whole, or so many points of its height, from a place on."""
        time.sleep(0.4)  # charts are drawn anew when their size changes
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        height = min(most, size["height"] - from_y)
        clip = {"x": 0, "y": from_y, "width": size["width"], "height": height, "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))
