"""What takes long to make is kept outside the repository, in `$XDG_CACHE_HOME/joinery/cluster` (default: `~/.cache`).

A thing lies under a name that ends with a digest of all that it is made of; another digest means that it is made anew,
and the old one goes.
"""

import fcntl
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
HERE: Final = Path(__file__).resolve().parent
_LEFT_OUT: Final = ("__pycache__", ".egg-info")


def home_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the cache is."""
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "joinery" / "cluster"


def digest(paths: Iterable[Path], *more: str) -> str:
    """Of the files at or below these paths (names and contents), and of what else it depends on."""
    found = sha256("\n".join(more).encode())
    for file in sorted(one for path in paths for one in _files(path)):
        content = sha256(file.read_bytes()).hexdigest()
        name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name  # wherever the checkout lies
        found.update(f"\n{name} {content}".encode())
    return found.hexdigest()[:16]


def _files(path: Path) -> list[Path]:
    below = path.rglob("*") if path.is_dir() else [path]
    return [one for one in below if one.is_file() and not any(word in str(one) for word in _LEFT_OUT)]


def made(name: str, key: str, make: Callable[[Path], None]) -> Path:
    """The folder or file `name-key`; if it is not there, `make` makes it, and it is there only when that was done."""
    home = home_folder()
    found = home / f"{name}-{key}"
    if found.exists():
        return found
    home.mkdir(parents=True, exist_ok=True)
    begun = home / f"{name}.begun"
    remove(begun)
    say(f"making {name}")
    began_s = time.monotonic()
    make(begun)
    begun.rename(found)
    for other in home.glob(f"{name}-*"):
        if other != found:
            remove(other)
    say(f"made {name} in {time.monotonic() - began_s:.0f} s")
    return found


@contextmanager
def alone() -> Iterator[None]:
    """Nobody else builds, starts or ends meanwhile; who comes second waits."""
    home_folder().mkdir(parents=True, exist_ok=True)
    with (home_folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remove(path: Path) -> None:
    """Whatever it is."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def say(line: str) -> None:
    """To the person who waits."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201
