"""What `helm test` runs in its pod, against servers that play the operator and the API server."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.unit.chart.rendering import CHART, rendered, the

Serve = Callable[[dict[str, tuple[int, str]]], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Pages by path to a server's url."""
    servers = list[ThreadingHTTPServer]()

    def start(pages: dict[str, tuple[int, str]]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, text = pages.get(self.path, (404, ""))
                if self.path.startswith("/apis") and self.headers["Authorization"] != "Bearer the-token":
                    status, text = 401, ""
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("the-token")
    return tmp_path


def script() -> SimpleNamespace:
    """As the pod gets it: `python -c`."""
    command = the(rendered(), "Pod")["spec"]["containers"][0]["command"]
    assert ["python", "-c"] == command[:2]
    assert "http://one-joinery-operator.of-joinery.svc:8080/healthz" == command[3]
    held: dict[str, Any] = {"__name__": "script"}
    exec(compile(command[2], "installed.py", "exec"), held)  # noqa: S102 - it is the chart's own
    return SimpleNamespace(**held)


def served(*names: str) -> dict[str, tuple[int, str]]:
    return {"/apis/joinery.dev/v1alpha1": (200, json.dumps({"resources": [{"name": name} for name in names]}))}


def test_the_pod_gets_the_file_word_for_word() -> None:
    command = the(rendered(), "Pod")["spec"]["containers"][0]["command"]
    assert (CHART / "files" / "installed.py").read_text().strip() == command[2].strip()


def test_it_passes_when_the_operator_is_well_and_the_resource_is_served(
    serve: Serve, account: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    operator, server = serve({"/healthz": (200, "ok")}), serve(served("joinqueries", "joinqueries/status"))
    script().main(f"{operator}/healthz", server, account, 0)
    assert ["the operator is well: 200", "the API server serves joinqueries, joinqueries/status"] == (
        capsys.readouterr().out.splitlines()
    )


def test_it_fails_when_the_operator_is_stuck(serve: Serve, account: Path) -> None:
    operator, server = serve({"/healthz": (503, "stuck")}), serve(served("joinqueries"))
    with pytest.raises(HTTPError, match="503"):
        script().main(f"{operator}/healthz", server, account, 0)


@pytest.mark.parametrize(("pages", "complaint"), [(served("others"), "wanted joinqueries"), ({}, "404")])
def test_it_fails_when_the_resource_is_not_served(
    serve: Serve, account: Path, pages: dict[str, tuple[int, str]], complaint: str
) -> None:
    operator, server = serve({"/healthz": (200, "ok")}), serve(pages)
    with pytest.raises(OSError, match=complaint):
        script().main(f"{operator}/healthz", server, account, 0)
