"""What helm makes of the chart, for the tests."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts" / "joinery"
CI = sorted((CHART / "ci").glob("*-values.yaml"))
PRESETS = sorted((ROOT / "helm").glob("*.yaml"))
VALUES = [*CI, *PRESETS]
DEFAULT, FULL, NAMESPACED = (CHART / "ci" / f"{name}-values.yaml" for name in ("default", "full", "namespaced"))
RELEASE, NAMESPACE = "one", "of-joinery"

Object = dict[str, Any]


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One that the dev lock brings; whatever else is on the machine is not asked."""
    binary = Path(sys.executable).with_name("helm")
    assert shutil.which(binary), f"found no helm at {binary}, wanted the one of the package helm-binary; run make venv"
    command = [str(binary), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603


@cache
def text_of(*arguments: str) -> str:
    done = helm("template", RELEASE, str(CHART), "--namespace", NAMESPACE, *arguments)
    assert not done.returncode, done.stderr
    return done.stdout


def rendered(values: Path = DEFAULT, *settings: str) -> list[Object]:
    """The objects with these values; a setting is as after --set."""
    more = [word for one in settings for word in ("--set", one)]
    return [one for one in yaml.safe_load_all(text_of("--values", str(values), *more)) if one]


def refusal(*settings: str, values: Path = DEFAULT) -> str:
    """Why helm does not render this."""
    more = [word for one in settings for word in ("--set-json" if "=[" in one or "={" in one else "--set", one)]
    done = helm("template", RELEASE, str(CHART), "--values", str(values), *more)
    assert done.returncode, f"{settings} was accepted"
    return done.stderr


def of_kind(objects: list[Object], kind: str, ending: str = "") -> list[Object]:
    return [one for one in objects if one["kind"] == kind and one["metadata"]["name"].endswith(ending)]


def the(objects: list[Object], kind: str, ending: str = "") -> Object:
    (found,) = of_kind(objects, kind, ending)
    return found


def pods_of(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    """The spec of every pod that comes of an object, and whose it is."""
    for one in objects:
        name = f"{one['kind']} {one['metadata']['name']}"
        if one["kind"] == "Pod":
            yield name, one["spec"]
        elif "template" in one.get("spec", {}):
            yield name, one["spec"]["template"]["spec"]


def environment_of(pod: Object) -> dict[str, Any]:
    """Name to value, or to where the value is from."""
    (container,) = pod["containers"]
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container.get("env", ())}
