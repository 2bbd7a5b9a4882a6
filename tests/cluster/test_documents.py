"""The kubectl commands of README and docs, as they stand there, one after the other, on the query of the README."""

import os
import re
import shlex
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError

import pytest
import yaml

from tests.cluster.user import User
from tests.documents.blocks import PAGES, page_commands
from tests.documents.session import free_port, query_of_the_readme
from tests.documents.ways import Way, held

SAYS = {
    "get joinq": "orders",
    "describe joinq": "Conditions",
    "scale joinq": "scaled",
    "logs deploy": "",
    "apply -f": "orders",
}
"""A word that the answer has."""


def the_commands() -> list[str]:
    """Each once: first the query is made, then it is looked at."""
    found = [
        one for page in PAGES for _, one in page_commands(page) if (way := held(page, one)) and way.way is Way.CLUSTER
    ]
    return sorted(dict.fromkeys(found), key=lambda one: "apply" not in one)


@pytest.fixture(name="folder")
def a_folder_with_the_query(user: User, tmp_path: Path) -> Iterator[Path]:
    query = yaml.safe_load(query_of_the_readme())
    del query["spec"]["sinks"]  # in a cluster a file needs a volume
    (tmp_path / "query.yaml").write_text(yaml.safe_dump(query))
    yield tmp_path
    user.clear()


def test_the_commands_of_the_documents(user: User, folder: Path) -> None:
    port, forwarding = free_port(), None
    try:
        for command in the_commands():
            if command.startswith("curl"):
                assert "joinery_gateway_tuples_received_total" in _read(command.replace("8080", str(port)).split()[-1])
                continue
            words = shlex.split(command.partition("|")[0])[1:]  # what reads it is the user's
            if "port-forward" in words:
                forwarding = _forward(user, [word.replace("8080", f"{port}:8080") for word in words])
                continue
            said = user.kubectl(*(str(folder / word) if word == "query.yaml" else word for word in words))
            wanted = [word for start, word in SAYS.items() if re.match(start, " ".join(words))]
            assert wanted, f"say in SAYS what {command} answers"
            assert wanted[0] in said, f"{command}: {said}"
            if "apply" in words:
                user.ready("orders")
        assert forwarding is not None, "nobody shows how to reach the dashboard"
    finally:
        if forwarding is not None:
            forwarding.kill()
            forwarding.wait()
    user.until("four workers", lambda: user.status("orders").get("desiredReplicas") == 4, 60)


def _forward(user: User, words: list[str]) -> "subprocess.Popen[bytes]":
    environment = os.environ | {"KUBECONFIG": str(user.cluster.kubeconfig)}
    return subprocess.Popen(  # noqa: S603
        [user.cluster.kubectl_program, "-n", user.namespace, *words], env=environment, stdout=subprocess.DEVNULL
    )


def _read(url: str) -> str:
    end = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - a port of this machine
                return str(answer.read().decode())
        except (URLError, ConnectionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.3)
