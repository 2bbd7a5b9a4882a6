"""A JoinQuery in a cluster with worse luck: pods killed under load and while groups move, a worker without CPU."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.user import User, join_query

HELD: dict[str, Any] = {"mode": "Manual"}
BURN = "import os\nfor _ in range(60): os.fork() or exec('while True: pass')"


@pytest.fixture(autouse=True)
def cleared(user: User) -> Iterator[None]:
    """No test sees what another one left."""
    yield
    user.clear()


def kill(user: User, query: str, role: str) -> None:
    """A pod of this role: the first worker, which takes groups over when others leave."""
    found = user.all("pods", f"joinery.dev/joinquery={query},joinery.dev/role={role}")
    pod = "joinery-redis-0" if role == "redis" else found[0]["metadata"]["name"]
    user.kubectl("delete", "pod", pod, "--force", "--grace-period=0")


@pytest.mark.parametrize(("first", "second"), [("worker", "gateway"), ("collector", "redis")])
def test_pods_killed_under_load_and_while_groups_move_cost_nothing(user: User, first: str, second: str) -> None:
    """Thirty groups are on their way when four workers become two, and thirty when these become one."""
    user.apply(join_query("moving", replicas=4, scaling=HELD))
    user.until("four workers", lambda: user.status("moving").get("readyReplicas") == 4, 90)
    user.until("each has groups", lambda: sorted(user.groups("moving").values()) == [15] * 4, 30)
    user.traffic("moving", "500x60")
    user.until("rows flow", lambda: user.status("moving").get("results", 0) > 0, 60)
    kill(user, "moving", first)
    for replicas, role in ((2, first), (1, second)):
        user.until("all are there", lambda: user.condition("moving", "Ready") == "True", 90)
        seen = user.status("moving").get("migrationsTotal", 0)
        user.kubectl("scale", "joinq/moving", f"--replicas={replicas}")
        user.until("groups move", lambda seen=seen: user.status("moving").get("migrationsTotal", 0) != seen, 90)  # type: ignore[misc]
        kill(user, "moving", role)
    kill(user, "moving", second)
    user.exact()


def test_a_worker_slowed_by_load_beside_it_loses_groups(user: User) -> None:
    """Its container may use half a core, which sixty endless loops beside the worker use up."""
    slowed = {"resources": {"limits": {"cpu": "500m"}}, "buffer": "256Ki"}
    user.apply(join_query(
        "slowed", replicas=2, scaling=HELD, join={"on": ["k"], "method": "nested-loop"}, worker=slowed,
        epochs={"reorganization": "1s"},
    ))  # fmt: skip
    user.ready("slowed", 90)
    user.until("each has groups", lambda: list(user.groups("slowed").values()) == [30, 30], 30)
    user.traffic("slowed", "4000x70", keys=200000)
    user.until("rows flow", lambda: user.status("slowed").get("results", 0) > 0, 60)
    user.kubectl(
        "exec", "slowed-worker-0", "--", "sh", "-c", 'python -c "$0" >/dev/null 2>&1 </dev/null & sleep 1', BURN
    )
    user.until("it loses groups", lambda: user.groups("slowed").get("worker-0", 30) < 20, 90)
    user.exact()
