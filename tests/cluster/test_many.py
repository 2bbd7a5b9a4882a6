"""A hundred JoinQueries at once: the operator stays small, idle when nothing happens, and quick when something does."""

import json
import time

from tests.cluster.user import User, join_query

MANY = 100
SAMPLE_S = 10.0
_FIGURES = """
import glob
for path in glob.glob("/proc/[0-9]*/stat"):
    folder = path[:-5]
    if open(folder + "/cmdline").read().split(chr(0))[1:3] == ["-m", "joinery.operator"]:
        kib = next(line.split()[1] for line in open(folder + "/status") if line.startswith("VmRSS"))
        used = open(path).read().rsplit(")", 1)[1].split()
        print(kib, (int(used[11]) + int(used[12])) / 100)
"""


def test_a_hundred_queries_cost_the_operator_little(user: User) -> None:
    many = User(user.cluster, "many")
    user.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "many"}})
    try:
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "no-pods"},
            "spec": {"hard": {"pods": "0"}},
        }
        many.apply(quota)
        objects = [join_query(f"q{number:03}") for number in range(MANY)]
        many.apply({"apiVersion": "v1", "kind": "List", "items": objects})
        many.until("all are seen", lambda: _observed(many) == MANY, 180)
        time.sleep(SAMPLE_S)
        (_, cpu_before), began = _figures(user), time.monotonic()
        time.sleep(SAMPLE_S)
        rss_mib, cpu_after = _figures(user)
        busy = (cpu_after - cpu_before) / (time.monotonic() - began)
        began = time.monotonic()
        many.kubectl("patch", "joinq", "q042", "--type=merge", "-p", json.dumps({"spec": {"worker": {"speed": 1000}}}))
        many.until("the change is applied", lambda: "speed: 1000" in _held(many, "q042"), 30)
        took_s = time.monotonic() - began
        assert rss_mib < 300, f"{rss_mib:.0f} MiB"
        assert busy < 0.5, f"{busy:.2f} of a core"
        assert took_s < 5, f"{took_s:.1f} s"
    finally:
        many.kubectl("delete", "joinq", "--all", "--wait=true", timeout_s=240)
        user.cluster.kubectl("delete", "namespace", "many", timeout_s=120)


def _observed(many: User) -> int:
    found = json.loads(many.kubectl("get", "joinq", "-o", "json"))["items"]
    return sum(one.get("status", {}).get("observedGeneration") == 1 for one in found)


def _held(many: User, query: str) -> str:
    return str(many.read("configmap", f"{query}-query")["data"]["query.yaml"])


def _figures(user: User) -> tuple[float, float]:
    """Resident MiB and CPU seconds of the operator's process."""
    kib, seconds = user.kubectl("exec", "deploy/joinery-operator", "--", "python", "-c", _FIGURES).split()
    return float(kib) / 1024, float(seconds)
