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
    lacking = sorted({package for program, package in PACKAGES.items() if not _is_there(program)})
    if lacking and shutil.which("apt-get"):
        say(f"installing {' '.join(lacking)}")
        _apt("update", "-qq")
        _apt("install", "-y", "-qq", "--no-install-recommends", *lacking, *_libc(lacking))
        lacking = sorted({package for program, package in PACKAGES.items() if not _is_there(program)})
    if lacking:
        raise Missing(f"these programs are missing; install them (Debian's names): {' '.join(lacking)}")
    if shutil.which("go") is None:
        raise Missing(GO)


def _libc(packages: Iterable[str]) -> list[str]:
    return ["libc6-dev"] if "gcc" in packages else []


def _is_there(program: str) -> bool:
    return Path(program).exists() if program.startswith("/") else shutil.which(program) is not None


def _apt(*words: str) -> None:
    """Somebody else may be installing something: that is waited for."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    waiting = ["-o", f"DPkg::Lock::Timeout={LOCK_S}"]
    subprocess.run(["apt-get", *waiting, *words], check=True, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603, S607
