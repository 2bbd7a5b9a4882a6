"""The Redis of the chart: its place, who may reach it, and a server that is started with its settings."""

import base64
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest
from redis import Redis
from redis import exceptions as failures

from joinery.adapters.embedded_redis import find_server
from tests.unit.chart.rendering import CHART, DEFAULT, FULL, NAMESPACE, NAMESPACED, Object, of_kind, rendered, the

HOSTPATH = CHART / "ci" / "hostpath-values.yaml"


def pod_of(values: Path, *settings: str) -> Object:
    found: Object = the(rendered(values, *settings), "StatefulSet")["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize(
    ("values", "settings", "wanted"),
    [
        (DEFAULT, ["redis.persistence.enabled=false"], {"emptyDir": {}}),
        (DEFAULT, ["redis.persistence.existingClaim=mine"], {"persistentVolumeClaim": {"claimName": "mine"}}),
        (HOSTPATH, [], {"hostPath": {"path": "/var/lib/joinery-redis", "type": "DirectoryOrCreate"}}),
    ],
)
def test_its_file_is_where_the_values_say(values: Path, settings: list[str], wanted: Object) -> None:
    volumes = {one["name"]: one for one in pod_of(values, *settings)["volumes"]}
    assert {"name": "data", **wanted} == volumes["data"]
    assert "volumeClaimTemplates" not in the(rendered(values, *settings), "StatefulSet")["spec"]


def test_it_claims_a_volume_by_itself() -> None:
    spec = the(rendered(FULL), "StatefulSet")["spec"]
    (claim,) = spec["volumeClaimTemplates"]
    assert ("fast", "1Gi") == (claim["spec"]["storageClassName"], claim["spec"]["resources"]["requests"]["storage"])
    assert {"whenDeleted": "Retain", "whenScaled": "Retain"} == spec["persistentVolumeClaimRetentionPolicy"]
    assert "data" not in [one["name"] for one in spec["template"]["spec"]["volumes"]]


def test_without_a_class_the_claim_takes_the_clusters_own() -> None:
    (claim,) = the(rendered(), "StatefulSet")["spec"]["volumeClaimTemplates"]
    assert "storageClassName" not in claim["spec"]


def test_nothing_in_its_pod_changes_with_the_chart() -> None:
    template = the(rendered(), "StatefulSet")["spec"]["template"]
    assert not {"helm.sh/chart", "app.kubernetes.io/version"} & template["metadata"]["labels"].keys()


def test_with_a_redis_of_the_users_there_is_none_of_ours() -> None:
    objects = rendered(NAMESPACED)
    assert [] == of_kind(objects, "StatefulSet") + of_kind(objects, "Secret") + of_kind(objects, "ConfigMap")
    (url,) = of_kind(rendered(CHART / "ci" / "external-values.yaml"), "Secret")
    assert {"url"} == url["data"].keys()
    assert b"rediss://joinery:a-password-in-a-url@redis.example:6379/0" == base64.b64decode(url["data"]["url"])


def test_only_pods_of_joinery_reach_it() -> None:
    (entry,) = the(rendered(), "NetworkPolicy", "-redis")["spec"]["ingress"]
    pods = {"matchLabels": {"app.kubernetes.io/part-of": "joinery"}}
    assert [{"podSelector": pods, "namespaceSelector": {}}] == entry["from"]
    assert [{"port": "redis", "protocol": "TCP"}] == entry["ports"]


def test_with_namespaces_only_pods_of_those_reach_it() -> None:
    objects = rendered(DEFAULT, "watchNamespaces={a,b}")
    ((source,),) = (entry["from"] for entry in the(objects, "NetworkPolicy", "-redis")["spec"]["ingress"])
    (chosen,) = source["namespaceSelector"]["matchExpressions"]
    assert ["a", "b", NAMESPACE] == chosen["values"]


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def test_a_server_takes_the_settings_keeps_what_it_answered_and_passes_its_probes(tmp_path: Path) -> None:
    objects, port = rendered(FULL), free_port()
    auth, conf = tmp_path / "auth.conf", tmp_path / "redis.conf"
    auth.write_bytes(base64.b64decode(the(objects, "Secret", "-redis")["data"]["auth.conf"]))
    text = the(objects, "ConfigMap", "-redis")["data"]["redis.conf"]
    for written, here in (
        ("/etc/redis-auth/auth.conf", str(auth)), ("dir /data", f"dir {tmp_path}"), ("port 6379", f"port {port}"),
    ):  # fmt: skip
        assert written in text
        text = text.replace(written, here)
    conf.write_text(text)
    (container,) = the(objects, "StatefulSet")["spec"]["template"]["spec"]["containers"]
    assert ["sh", "/etc/redis/start.sh"] == container["command"]
    first = started(conf, port)
    try:
        client = Redis(port=port, password="a-password-of-the-ci")  # noqa: S106
        wanted = {
            "appendonly": "yes", "appendfsync": "always", "auto-aof-rewrite-percentage": "0",
            "maxmemory-policy": "noeviction", "maxmemory": str(2**30), "save": "",
        }  # fmt: skip
        assert wanted == {name: client.config_get(name)[name] for name in wanted}
        with pytest.raises(failures.AuthenticationError):
            Redis(port=port).ping()
        client.set("kept", "yes")
        for probe in ("readinessProbe", "livenessProbe"):
            assert probed(container[probe]["exec"]["command"], port, "a-password-of-the-ci"), probe
            assert not probed(container[probe]["exec"]["command"], port, "another"), probe
    finally:
        first.kill()
        first.wait()
    second = started(conf, port)
    try:
        assert b"yes" == Redis(port=port, password="a-password-of-the-ci").get("kept")  # noqa: S106
    finally:
        second.kill()
        second.wait()


def started(conf: Path, port: int) -> subprocess.Popen[bytes]:
    server = subprocess.Popen([find_server(), conf], stdout=subprocess.DEVNULL)  # noqa: S603
    deadline = time.monotonic() + 20
    while True:
        try:
            Redis(port=port, password="a-password-of-the-ci").ping()  # noqa: S106
        except failures.ConnectionError:
            assert server.poll() is None, "the server refused its settings"
            assert time.monotonic() < deadline, "the server did not come up"
            time.sleep(0.05)
        else:
            return server


def probed(command: list[str], port: int, password: str) -> bool:
    """As kubelet would, but for the port."""
    folder = find_server().parent
    told = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "REDISCLI_AUTH": password}
    here = [word.replace("redis-cli", f"redis-cli -p {port}") for word in command]
    done = subprocess.run(here, env=told, timeout=20, check=False, capture_output=True)  # noqa: S603
    return done.returncode == 0
