"""The images that the tests need, as archives in the cache, made without a registry.

`localhost/pause:1` and `localhost/base:1` stand on nothing (own/base.sh). `localhost/joinery:dev` and
`localhost/redis:dev` stand on the base; with a registry they would be `python:3.11-slim` and `redis:7`. Nothing is
fetched while the image of joinery is built: pip collects the locked wheels on the host. Its packages are an image of
their own, so a change of our source takes seconds. `localhost/joinery-spark:dev` is that of joinery with a JRE and
PySpark; it is large, so only who asks for it has it made.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.cache import HERE, ROOT, digest, home_folder, made

OWN: Final = HERE / "own"
CONTAINERFILE: Final = ROOT / "images" / "joinery" / "Containerfile"
JOINERY: Final = "localhost/joinery:dev"
REDIS: Final = "localhost/redis:dev"
SPARK_CONTAINERFILE: Final = ROOT / "images" / "spark" / "Containerfile"
SPARK: Final = "localhost/joinery-spark:dev"
_BASE: Final = "localhost/base:1"
_DEPS: Final = "localhost/joinery-deps:1"
_SPARK_DEPS: Final = "localhost/joinery-spark-deps:1"
_REQUIREMENTS: Final = ROOT / "requirements"
_SOURCE: Final = ("core", "protos", "adapters", "client", "gateway", "workers", "cli", "operator", "spark")


@dataclass(frozen=True, slots=True)
class Archives:
    """Where the images are, for `ctr images import`."""

    pause: Path
    joinery: Path
    redis: Path

    def all(self) -> tuple[Path, ...]:
        return (self.pause, self.redis, self.joinery)


def archives(pause: Path) -> Archives:
    """Those of the source as it is now; `pause` is the program of the image of that name."""
    base_key = digest([OWN / "base.sh", pause])
    base = made("base", base_key, lambda out: _run(OWN / "base.sh", pause, out))
    redis_file = OWN / "redis" / "Containerfile"
    redis = made("redis", digest([redis_file], base_key), lambda out: _redis(redis_file, out))
    wheels = made("wheels", digest([*_locks()], sys.version), _wheels)
    deps_key = _deps_key(base_key)
    made("deps", deps_key, lambda out: _deps(wheels, out))
    source = [ROOT / name for name in (*_SOURCE, "pyproject.toml", "images/joinery")]
    joinery = made("joinery", digest([*source, *_locks()], deps_key), lambda out: _joinery(wheels, out))
    return Archives(base / "pause.tar", joinery, redis)


def spark_archive(pause: Path) -> Path:
    """The image of Spark, of the source as it is now."""
    joinery = archives(pause).joinery
    lock = _REQUIREMENTS / "spark.lock"
    deps_key = digest([SPARK_CONTAINERFILE, lock], _deps_key(digest([OWN / "base.sh", pause])))
    wheels = made("pyspark-wheels", digest([lock], sys.version), lambda out: _spark_wheels(lock, out))
    made("pyspark-deps", deps_key, lambda out: _spark_deps(wheels, out))
    own = SPARK_CONTAINERFILE.parent
    return made("spark", digest([own], deps_key, joinery.name), _spark)


def _deps_key(base_key: str) -> str:
    return digest([CONTAINERFILE, *_locks()], base_key)


def _locks() -> tuple[Path, ...]:
    return _REQUIREMENTS / "image.lock", _REQUIREMENTS / "build.lock"


def _wheels(out: Path) -> None:
    """For the image's Python, whatever the one of the host is."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    fitting = ["--only-binary", ":all:", "--python-version", "3.11"]
    for lock in _locks():
        _run(*pip, *fitting, "--dest", out, "--requirement", lock)


def _redis(containerfile: Path, out: Path) -> None:
    _build(containerfile.parent, containerfile, REDIS, BASE=_BASE)
    _save(REDIS, out)


def _deps(wheels: Path, out: Path) -> None:
    """Only in the store: what the image of joinery stands on is in its archive, too."""
    _build(ROOT, CONTAINERFILE, _DEPS, "--target", "deps", *_offline(wheels), BASE=_BASE)
    out.touch()


def _joinery(wheels: Path, out: Path) -> None:
    _build(ROOT, CONTAINERFILE, JOINERY, *_offline(wheels), BASE=_BASE, DEPS=_DEPS)
    _save(JOINERY, out)


def _spark_wheels(lock: Path, out: Path) -> None:
    """PySpark comes as a source archive: its hash is checked here, and what is made of it has another one."""
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--require-hashes", "-w", out, "-r", lock)


def _spark_deps(wheels: Path, out: Path) -> None:
    arguments = {"JOINERY": JOINERY, "BASE": _DEPS}
    _build(ROOT, SPARK_CONTAINERFILE, _SPARK_DEPS, "--target", "deps", *_offline(wheels), **arguments)
    out.touch()


def _spark(out: Path) -> None:
    _build(ROOT, SPARK_CONTAINERFILE, SPARK, JOINERY=JOINERY, BASE=_DEPS, DEPS=_SPARK_DEPS)
    _save(SPARK, out)


def _offline(wheels: Path) -> list[str]:
    return [
        "--volume", f"{wheels}:/wheels:ro", "--build-arg", "PIP_NO_INDEX=1", "--build-arg", "PIP_FIND_LINKS=/wheels"
    ]  # fmt: skip


def _build(context: Path, containerfile: Path, tag: str, *more: str, **arguments: str) -> None:
    """One layer on what it stands on; the image that had the tag before goes."""
    told = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
    before = _run("buildah", "images", "--quiet", "--filter", f"reference={tag}").split()
    _run(
        "buildah", "bud", "--quiet", "--layers=false", "--isolation", "chroot", "--network", "host", "--tag", tag,
        "--file", containerfile, *more, *told, context,
    )  # fmt: skip
    after = _run("buildah", "images", "--quiet", "--filter", f"reference={tag}").split()
    for old in set(before) - set(after):
        subprocess.run(["buildah", "rmi", old], env=_environment(), capture_output=True, check=False)  # noqa: S603, S607


def _save(tag: str, out: Path) -> None:
    _run("buildah", "push", "--quiet", tag, f"docker-archive:{out}:{tag}")


def _run(*words: str | Path) -> str:
    """What it said; if it fails, all that it said is told."""
    done = subprocess.run(  # noqa: S603
        [*map(str, words)], env=_environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}\n{Path(words[0]).name} {words[1]} failed; the lines above say why")
    return done.stdout


def _environment() -> dict[str, str]:
    """A store of our own: the user's is left alone. It copies folders, overlays are not to be had everywhere."""
    home = home_folder()
    settings = home / "storage.conf"
    home.mkdir(parents=True, exist_ok=True)
    settings.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{home}/storage"\nrunroot = "{home}/storage-run"\n')
    return os.environ | {"CONTAINERS_STORAGE_CONF": str(settings), "STORAGE_DRIVER": "vfs"}
