"""Which cluster there is: the user's (KUBECONFIG), one of kind's, or one of two nodes built from source right here."""

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from tests.cluster import images, needs
from tests.cluster.cache import HERE, ROOT, alone, digest, home_folder, made, say

OWN: Final = HERE / "own"
NODES: Final = 2
KIND_NAME: Final = "joinery"
HELM: Final = ROOT / ".venv" / "bin" / "helm"
UNREACHABLE: Final = 3
"""How build.sh ends if there are no modules to build from."""
SECONDS: Final = 120.0
"""How long a command may take if nothing else is said."""


class CommandFailed(AssertionError):
    """kubectl or helm refused; the message is all that it said."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that is up, with our images."""

    kubeconfig: Path
    kubectl_program: str
    joinery_image: str
    redis_image: str
    audit_log: Path | None = None
    """Who asked the API server for what, one JSON object a line; None: not ours to read."""

    def kubectl(self, *words: str, stdin: str | None = None, timeout_s: float = SECONDS) -> str:
        """What `kubectl words...` says."""
        return self._run([self.kubectl_program, *words], stdin, timeout_s)

    def helm(self, *words: str, stdin: str | None = None, timeout_s: float = SECONDS) -> str:
        """What `helm words...` says."""
        program = str(HELM) if HELM.exists() else shutil.which("helm")
        if program is None:
            raise CommandFailed("found no helm, wanted 3.17: make venv, or install it")
        return self._run([program, *words], stdin, timeout_s)

    def _run(self, words: list[str], stdin: str | None, timeout_s: float) -> str:
        environment = os.environ | {"KUBECONFIG": str(self.kubeconfig)}
        done = subprocess.run(  # noqa: S603
            words, input=stdin, env=environment, text=True, capture_output=True, timeout=timeout_s, check=False
        )
        if done.returncode:
            raise CommandFailed(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
        return done.stdout


class Place(Protocol):
    """Where a cluster is, or can be."""

    def is_up(self) -> bool:
        """Whether there is one already."""

    def build(self) -> None:
        """Make what takes long, and start nothing."""

    def up(self) -> Cluster:
        """Have it, with the images of the source as it is now; as often as you like."""

    def spark_image(self) -> str:
        """The image of Spark, there where the cluster is up: its name. It is large, and few tests need it."""

    def confine(self, node: str, cpus: str) -> None:
        """Where nodes share a machine: let the pods that one has now use these CPUs only (`0,1`)."""

    def down(self) -> None:
        """End it, if it is ours, and leave nothing."""


def place(environment: Mapping[str, str] = os.environ) -> Place:
    """The first that will do."""
    own = Own()
    named = environment.get("KUBECONFIG")
    if named and Path(named) != own.kubeconfig:
        return Given(Path(named))
    if not named and shutil.which("kind") and _docker_answers():
        return Kind()
    return own


def _docker_answers() -> bool:
    docker = shutil.which("docker")
    return docker is not None and subprocess.run([docker, "info"], capture_output=True, check=False).returncode == 0  # noqa: S603


def _kubectl() -> str:
    found = shutil.which("kubectl")
    if found is None:
        raise needs.Missing("found no kubectl, wanted one that fits the cluster: install it")
    return found


class Given:
    """The user's cluster. It must be able to pull the images, whose names are in the environment."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def is_up(self) -> bool:
        return True

    def build(self) -> None:
        say(f"{self._kubeconfig} is yours: nothing to build")

    def up(self) -> Cluster:
        joinery = os.environ.get("JOINERY_IMAGE")
        if joinery is None:
            raise needs.Missing(
                "found KUBECONFIG but no JOINERY_IMAGE, wanted the name of an image that your cluster can pull: build "
                "it with docker build -f images/joinery/Containerfile, push it, and say JOINERY_IMAGE=registry/name:tag"
            )
        return Cluster(self._kubeconfig, _kubectl(), joinery, os.environ.get("JOINERY_REDIS_IMAGE", "redis:7"))

    def spark_image(self) -> str:
        named = os.environ.get("JOINERY_SPARK_IMAGE")
        if named is None:
            raise needs.Missing(
                "found KUBECONFIG but no JOINERY_SPARK_IMAGE, wanted the name of an image that your cluster can pull: "
                "build it with docker build -f images/spark/Containerfile, push it, and name it there"
            )
        return named

    def confine(self, node: str, cpus: str) -> None:
        """A node of yours is a machine of its own."""

    def down(self) -> None:
        say(f"{self._kubeconfig} is yours: left as it is")


class Kind:
    """Kubernetes in docker."""

    kubeconfig = home_folder() / "kind.kubeconfig"

    def is_up(self) -> bool:
        return KIND_NAME in _told("kind", "get", "clusters").split()

    def build(self) -> None:
        _told("docker", "build", "--file", str(images.CONTAINERFILE), "--tag", images.JOINERY, str(ROOT))

    def up(self) -> Cluster:
        home_folder().mkdir(parents=True, exist_ok=True)
        if not self.is_up():
            workers = "\n".join(["- role: worker"] * NODES)
            config = f"kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes:\n- role: control-plane\n{workers}\n"
            _told("kind", "create", "cluster", "--name", KIND_NAME, "--wait", "120s", "--config", "-", stdin=config)
        self.kubeconfig.write_text(_told("kind", "get", "kubeconfig", "--name", KIND_NAME))
        self.build()
        _told("kind", "load", "docker-image", "--name", KIND_NAME, images.JOINERY)
        return Cluster(self.kubeconfig, _kubectl(), images.JOINERY, "redis:7")

    def spark_image(self) -> str:
        built = ("--build-arg", f"JOINERY={images.JOINERY}", "--tag", images.SPARK, str(ROOT))
        _told("docker", "build", "--file", str(images.SPARK_CONTAINERFILE), *built)
        _told("kind", "load", "docker-image", "--name", KIND_NAME, images.SPARK)
        return images.SPARK

    def confine(self, node: str, cpus: str) -> None:
        _told("docker", "update", "--cpuset-cpus", cpus, node)

    def down(self) -> None:
        _told("kind", "delete", "cluster", "--name", KIND_NAME)
        self.kubeconfig.unlink(missing_ok=True)


class Own:
    """Plain processes on this machine, built from Go modules: for machines without a registry, as root."""

    def __init__(self) -> None:
        self._state = home_folder() / "state"
        self.kubeconfig = self._state / "admin.kubeconfig"

    def is_up(self) -> bool:
        """Whether its API server is well; one that is there but slow is waited for, one that crashed is not up."""
        program = self._state / "kubectl"
        asked = [str(program), "--kubeconfig", str(self.kubeconfig), "get", "--raw", "/readyz", "--request-timeout=5s"]
        until_s = time.monotonic() + SECONDS
        while self.kubeconfig.exists() and program.exists() and _lives(self._state / "pid" / "apiserver"):
            if subprocess.run(asked, capture_output=True, check=False).returncode == 0:  # noqa: S603
                return True
            if time.monotonic() > until_s:
                return False
            time.sleep(0.5)
        return False

    def build(self) -> None:
        with alone():
            self._build()

    def _build(self) -> tuple[Path, images.Archives]:
        needs.ensure()
        binaries = _binaries()
        return binaries, images.archives(binaries / "pause")

    def up(self) -> Cluster:
        with alone():
            return self._up()

    def _up(self) -> Cluster:
        binaries, archives = self._build()
        if not self.is_up():
            self._end()  # what a crash left
            self._start(binaries, archives)
        elif _loaded(self._state) != _names(archives):
            for node in range(1, NODES + 1):
                _told(str(OWN / "load.sh"), str(self._state), str(node), *map(str, archives.all()))
        (self._state / "loaded").write_text(_names(archives))
        audit = self._state / "audit.log"
        return Cluster(self.kubeconfig, str(self._state / "kubectl"), images.JOINERY, images.REDIS, audit)

    def spark_image(self) -> str:
        with alone():
            archive = images.spark_archive(_binaries() / "pause")
            if (noted := self._state / "loaded-spark").exists() and noted.read_text() == archive.name:
                return images.SPARK
            for node in range(1, NODES + 1):
                _told(str(OWN / "load.sh"), str(self._state), str(node), str(archive))
            noted.write_text(archive.name)
            return images.SPARK

    def confine(self, node: str, cpus: str) -> None:
        done = subprocess.run([str(OWN / "cpus.sh"), str(self._state), node.removeprefix("node"), cpus], check=False)  # noqa: S603
        if done.returncode:
            raise needs.Missing(f"the pods of {node} cannot have CPUs of their own here; the lines above say why")

    def _start(self, binaries: Path, archives: images.Archives) -> None:
        began_s = time.monotonic()
        say(f"starting a cluster of {NODES} nodes")
        self._state.mkdir(parents=True)
        (self._state / "kubectl").hardlink_to(binaries / "kubectl")  # another build takes the folder away, not the file
        try:
            _told(str(OWN / "up.sh"), str(binaries), str(self._state), str(NODES), *map(str, archives.all()))
        except BaseException:
            self._end()
            raise
        say(f"started in {time.monotonic() - began_s:.0f} s")

    def down(self) -> None:
        with alone():
            self._end()

    def _end(self) -> None:
        _told(str(OWN / "down.sh"), str(self._state))


def _lives(recorded: Path) -> bool:
    """Whether the process that was started (own/common.sh) is there; another one with its number was born later."""
    try:
        pid, birth = recorded.read_text().split()
        state, *_, born = Path("/proc", pid, "stat").read_text().rpartition(") ")[2].split()[:20]
    except (OSError, ValueError):
        return False
    return state != "Z" and born == birth


def _binaries() -> Path:
    return made("bin", digest([OWN / "build.sh", OWN / "pause.c", OWN / "kubernetes", OWN / "dns"]), _built)


def _built(out: Path) -> None:
    say("building Kubernetes from source: about ten minutes the first time")
    done = subprocess.run([str(OWN / "build.sh"), str(out)], check=False)  # noqa: S603
    if done.returncode == UNREACHABLE:
        raise needs.Missing("the modules of Kubernetes cannot be downloaded; the lines above say why. Mend GOPROXY")
    if done.returncode:
        raise SystemExit("build.sh failed; the lines above say why")


def _names(archives: images.Archives) -> str:
    return " ".join(path.name if path.name != "pause.tar" else path.parent.name for path in archives.all())


def _loaded(state: Path) -> str:
    noted = state / "loaded"
    return noted.read_text() if noted.exists() else ""


def _told(*words: str, stdin: str | None = None) -> str:
    """What a command said; what it complains about goes to the user."""
    done = subprocess.run(words, input=stdin, text=True, stdout=subprocess.PIPE, check=False)  # noqa: S603
    if done.returncode:
        raise SystemExit(f"{Path(words[0]).name} failed; the lines above say why\n{done.stdout}")
    return done.stdout
