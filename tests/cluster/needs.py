"""The programs that a cluster of our own needs: Debian's packages are installed if we may, all else is told."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.cluster.cache import say

PACKAGES: Final = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "sysctl": "procps",
    "openssl": "openssl",
    "curl": "curl",
    "buildah": "buildah",
    "debootstrap": "debootstrap",
    "cc": "gcc",
}
"""A program, and the package of Debian that has it."""
LOCK_S: Final = 120
KERNEL: Final = {
    "make a network bridge": "ip link add joinery-try type bridge; ip link delete joinery-try",
    "change the rules of iptables": "iptables -w 10 -t nat -N JOINERY-TRY; iptables -w 10 -t nat -X JOINERY-TRY",
    "make namespaces and mounts": "unshare --mount --net --pid --fork mount -t tmpfs none /mnt",
    "make control groups": "for one in /sys/fs/cgroup /sys/fs/cgroup/memory; do if [ -e $one/cgroup.procs ]; then "
    "mkdir $one/joinery-try; rmdir $one/joinery-try; exit 0; fi; done; echo no cgroups >&2; exit 1",
}
"""What a node does as root, and how it is tried."""
GO: Final = "found no Go, wanted 1.24 or newer to build Kubernetes: install it, and put `go` on the PATH"


class Missing(Exception):
    """This machine cannot have the cluster."""


def ensure() -> None:
    """Have all of them, or say what is missing."""
    if os.geteuid() != 0:
        raise Missing(
            "found no cluster (KUBECONFIG is not set, kind or docker is not there) and no root, wanted one of them: "
            "name a cluster in KUBECONFIG, install kind and docker, or run this as root"
        )
    if shutil.which("go") is None:
        raise Missing(GO)
    lacking = _lacking()
    if lacking and shutil.which("apt-get"):
        say(f"installing {' '.join(lacking)}")
        _apt("update", "-qq")
        _apt("install", "-y", "-qq", "--no-install-recommends", *lacking, *_libc(lacking))
        lacking = _lacking()
    if lacking:
        raise Missing(f"these programs are missing; install them (Debian's names): {' '.join(lacking)}")
    _try_kernel()


def _lacking() -> list[str]:
    return sorted({package for program, package in PACKAGES.items() if not _is_there(program)})


def _try_kernel() -> None:
    """Do each thing once that a node must do, and undo it."""
    for what, command in KERNEL.items():
        done = subprocess.run(["/bin/sh", "-ec", command], capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise Missing(
                f"found that root cannot {what} here ({done.stderr.strip()}), wanted a machine that "
                "runs containers: name a cluster in KUBECONFIG, or use a machine (or a privileged container) that may"
            )


def _libc(packages: Iterable[str]) -> list[str]:
    return ["libc6-dev"] if "gcc" in packages else []


def _is_there(program: str) -> bool:
    return Path(program).exists() if program.startswith("/") else shutil.which(program) is not None


def _apt(*words: str) -> None:
    """Somebody else may be installing something: that is waited for. What fails is missing afterwards."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    waiting = ["-o", f"DPkg::Lock::Timeout={LOCK_S}"]
    subprocess.run(["apt-get", *waiting, *words], check=False, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603, S607
