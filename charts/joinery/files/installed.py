"""What `helm test` runs in a pod: the operator says that it is well, and the API server serves JoinQuery."""

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PATIENCE_S = 60.0


def ask_operator(url: str) -> str:
    """The operator's own word."""
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - the chart names the operator's Service
        return f"the operator is well: {answer.status}"


def ask_api_server(url: str, account: Path) -> str:
    """The resources of our group, as any account may read them."""
    token = (account / "token").read_text()
    trust = ssl.create_default_context(cafile=str(account / "ca.crt")) if url.startswith("https") else None
    asked = urllib.request.Request(  # noqa: S310 - the address is the pod's own
        f"{url}/apis/joinery.dev/v1alpha1", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(asked, timeout=5, context=trust) as answer:  # noqa: S310
        names = [one["name"] for one in json.load(answer)["resources"]]
    if "joinqueries" not in names:
        raise OSError(f"found {names} in joinery.dev/v1alpha1, wanted joinqueries; install with crds.install=true")
    return f"the API server serves {', '.join(names)}"


def patiently(check: Callable[[], str], patience_s: float) -> str:
    """What a check says, once it passes; its last complaint if it does not in time."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return check()
        except (OSError, urllib.error.URLError):
            if time.monotonic() > deadline:
                raise
        time.sleep(1)


def main(operator: str, server: str, account: Path = ACCOUNT, patience_s: float = PATIENCE_S) -> None:
    """Both checks, said aloud."""
    sys.stdout.write(patiently(lambda: ask_operator(operator), patience_s) + "\n")
    sys.stdout.write(patiently(lambda: ask_api_server(server, account), patience_s) + "\n")


if __name__ == "__main__":
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    host = f"[{host}]" if ":" in host else host
    main(sys.argv[1], f"https://{host}:{port}")
