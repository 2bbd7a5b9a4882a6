"""What a user does with kubectl and helm, in words of the tests."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from joinery.adapters.plain_values import decode
from joinery.elastic.beta import Decision
from tests.cluster.cache import home_folder
from tests.cluster.clusters import Cluster, CommandFailed

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
CHART: Final = ROOT / "charts/joinery"
LOOK_S: Final = 0.5

COLUMNS: Final = {"schema": {"k": "int64", "n": "int64", "ts": "int64"}, "time": {"column": "ts", "unit": "us"}}


def folder(name: str) -> Path:
    """An empty folder that pods may write to, where the nodes share this machine's disk."""
    made = home_folder() / "volumes" / name
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    made.chmod(0o777)
    for above in (made.parent, home_folder()):
        above.chmod(above.stat().st_mode | 0o555)
    return made


def join_query(name: str, **fields: Any) -> dict[str, Any]:
    """A query for `traffic.py`: rows are pushed into a and b."""
    spec = {
        "streams": [{"name": one, "window": "5s", **COLUMNS} for one in ("a", "b")],
        "join": {"on": ["k"]},
        **fields,
    }
    return {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": name}, "spec": spec}


class User:
    """One namespace of a cluster."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace

    def kubectl(self, *words: str, stdin: str | None = None, timeout_s: float = 60) -> str:
        return self.cluster.kubectl("-n", self.namespace, *words, stdin=stdin, timeout_s=timeout_s)

    def apply(self, manifest: dict[str, Any] | str) -> str:
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)  # to kubectl a YAML key n is false
        return self.kubectl("apply", "-f", "-", stdin=text)

    def apply_dry(self, manifest: dict[str, Any]) -> str:
        """What the API server would say."""
        return self.kubectl("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(manifest))

    def read(self, kind: str, name: str) -> Any:
        return json.loads(self.kubectl("get", kind, name, "-o", "json"))

    def all(self, kind: str, labels: str = "") -> list[Any]:
        return list(json.loads(self.kubectl("get", kind, "-l", labels, "-o", "json"))["items"])

    def nodes(self) -> list[str]:
        """Names of those that anything may run on."""
        found = json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]
        return [one["metadata"]["name"] for one in found if not one["spec"].get("taints")]

    def status(self, query: str) -> Any:
        return self.read("joinq", query).get("status", {})

    def condition(self, query: str, kind: str) -> str:
        found = {one["type"]: one["status"] for one in self.status(query).get("conditions", ())}
        return str(found.get(kind, "Unknown"))

    def until(self, what: str, holds: Callable[[], Any], limit_s: float = 60) -> Any:
        """Wait until something holds; what it then is."""
        end, last = time.monotonic() + limit_s, None
        while time.monotonic() < end:
            if last := holds():
                return last
            time.sleep(LOOK_S)
        raise AssertionError(f"not within {limit_s:g} s: {what}\n{self.picture()}")

    def ready(self, query: str, limit_s: float = 60) -> None:
        self.until(f"{query} is ready", lambda: self.condition(query, "Ready") == "True", limit_s)

    def finished(self, query: str, limit_s: float = 120) -> Any:
        return self.until(f"{query} has ended", lambda: self.status(query).get("phase") == "Finished", limit_s)

    def events(self, query: str, reason: str = "") -> list[str]:
        fields = f"involvedObject.name={query}" + (f",reason={reason}" if reason else "")
        found = json.loads(self.kubectl("get", "events", "--field-selector", fields, "-o", "json"))["items"]
        return [one["message"] for one in found]

    def picture(self) -> str:
        """What somebody who looks for the reason wants to see."""
        asked = (("get", "joinq,pods", "-o", "wide"), ("get", "events"), ("get", "joinq", "-o", "yaml"))
        parts = [self.kubectl(*arguments)[-6000:] for arguments in asked]
        for pod in self.all("pods"):
            name = pod["metadata"]["name"]
            parts.append(f"--- {name}\n{self.logs(name)}")
        return "\n".join(parts)

    def logs(self, pod: str) -> str:
        """The last lines; a pod that has not started has none."""
        try:
            return self.kubectl("logs", "--tail=30", pod)
        except CommandFailed as error:
            return str(error)

    def decisions(self, query: str) -> list[Decision]:
        """What the operator decided, with its inputs, as its log has it."""
        lines = self.kubectl("logs", "deploy/joinery-operator", "--tail=-1").splitlines()
        told = [json.loads(line) for line in lines if '"event": "Decided"' in line]
        return [decode(one["decision"], []) for one in told if one["gateway"].startswith(f"{query}-gateway")]

    def groups(self, query: str) -> dict[str, int]:
        """How many groups each worker has."""
        return {one["name"]: one["groups"] for one in self.status(query).get("workers", ())}

    def clear(self) -> None:
        """Every query and its traffic go."""
        self.kubectl("delete", "pod", "-l", "app=traffic", "--force", "--grace-period=0", "--ignore-not-found")
        self.kubectl("delete", "joinq", "--all", "--wait=true", timeout_s=180)

    # --- rows

    def traffic(
        self, query: str, phases: str, *, name: str = "traffic", token: str | None = None, tls: str | None = None,
        node: str | None = None, keys: int = 5000,
    ) -> str:  # fmt: skip
        """Start a pod that pushes rows and reads results; `tls`: a Secret with certificates. Its name."""
        script = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "traffic"}}
        self.apply({**script, "data": {"traffic.py": (HERE / "traffic.py").read_text()}})
        gateway = f"{query}-gateway.{self.namespace}.svc:7400"
        container: dict[str, Any] = {
            "name": "traffic", "image": self.cluster.joinery_image, "imagePullPolicy": "IfNotPresent",
            "command": ["python", "/traffic/traffic.py", gateway, "--phases", phases, "--keys", str(keys)],
            "env": [{"name": "JOINERY_TOKEN", "value": token or ""}],
            "volumeMounts": [{"name": "script", "mountPath": "/traffic"}],
        }  # fmt: skip
        volumes = [{"name": "script", "configMap": {"name": "traffic"}}]
        if tls is not None:
            container["command"] += ["--tls", "/tls"]
            container["volumeMounts"].append({"name": "tls", "mountPath": "/tls"})
            volumes.append({"name": "tls", "secret": {"secretName": tls}})
        self.apply({
            "kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "labels": {"app": "traffic"}},
            "spec": {
                "restartPolicy": "Never", "containers": [container], "terminationGracePeriodSeconds": 1,
                "volumes": volumes, **({"nodeName": node} if node is not None else {}),
            },
        })  # fmt: skip
        return name

    def verdict(self, name: str = "traffic", limit_s: float = 300) -> Any:
        """What the pod found when it was through."""
        self.until(
            f"{name} is through", lambda: self.read("pod", name)["status"]["phase"] in ("Succeeded", "Failed"), limit_s
        )
        lines = self.kubectl("logs", name).strip().splitlines()
        try:
            return json.loads(lines[-1])
        except (ValueError, IndexError):
            raise AssertionError(f"{name} gave no verdict:\n" + "\n".join(lines[-40:]) + self.picture()) from None

    def exact(self, name: str = "traffic", limit_s: float = 300) -> Any:
        """Every result was there exactly once."""
        found = self.verdict(name, limit_s)
        assert {"missing": 0, "extra": 0, "duplicate": 0} == {
            key: found[key] for key in ("missing", "extra", "duplicate")
        }
        assert found["wanted"] > 0
        return found
