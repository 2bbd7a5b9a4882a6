"""The shape of the repository: what the design asks for, what breaks others, and how large things may grow."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "core" / "joinery"
SKIPPED = {"build", "dist", "node_modules", "__pycache__"}

MODULES = sorted(CORE.rglob("*.py"))
FORBIDDEN_IMPORTS = {
    "asyncio", "io", "os", "pathlib", "pickle", "random", "socket", "subprocess", "threading", "time",
}  # fmt: skip
SEEDED = {"BitGenerator", "Generator", "PCG64", "Philox", "SeedSequence", "default_rng"}
STATIONS_TODAY = {1, 2, 3, 4, 5, 6, 7}
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def python_files() -> Iterator[Path]:
    for top in ROOT.iterdir():
        if top.name.startswith(".") or top.name in SKIPPED:
            continue
        yield from [top] if top.suffix == ".py" else top.rglob("*.py")


def test_there_is_something_to_look_at() -> None:
    assert len(MODULES) > 50


@pytest.mark.parametrize(
    "entry", ["pyproject.toml", "operator", "workers", "protos", "helm", "charts", "tests", "README.md"]
)
def test_a_required_entry_exists_and_a_clone_would_have_it(entry: str) -> None:
    path = ROOT / entry
    assert path.exists()
    assert path.is_file() or any(one.is_file() for one in path.rglob("*")), f"{entry}/ is empty: git does not keep it"


def test_no_init_hides_the_other_portions_of_the_namespace() -> None:
    portions = [folder for folder in ROOT.glob("*/joinery") if folder.is_dir()] + [ROOT / "protos/gen/joinery"]
    assert CORE in portions
    assert [] == [name_of(folder) for folder in portions if (folder / "__init__.py").exists()]


def test_the_folder_operator_is_no_package() -> None:
    assert [] == list((ROOT / "operator").glob("*.py"))


def test_operator_is_the_standard_library_here() -> None:
    import operator

    assert 2 == operator.add(1, 1)
    assert str(ROOT) not in str(operator.__file__)


def test_operator_is_the_standard_library_in_a_process_started_at_the_root() -> None:
    code = "import sys; sys.path.insert(0, '.'); import operator; print(operator.add(1, 1))"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    assert "2\n" == answer.stdout


def test_tests_live_only_in_tests() -> None:
    strays = [
        name_of(path)
        for path in python_files()
        if re.fullmatch(r"test_.*\.py|.*_test\.py|conftest\.py", path.name) and ROOT / "tests" not in path.parents
    ]
    assert [] == strays


def test_every_station_of_a_tuple_that_exists_today_has_a_module() -> None:
    found = [
        (int(match[1]), int(match[2]), name_of(path))
        for path in python_files()
        if (match := re.match(r"Station (\d+) of (\d+)\b", ast.get_docstring(tree_of(path)) or ""))
    ]
    assert [] == [one for one in found if not 1 <= one[0] <= 8 or one[1] != 8]
    assert STATIONS_TODAY <= {number for number, _, _ in found}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_of_the_core_says_what_it_is_for_and_is_short(path: Path) -> None:
    tree = tree_of(path)
    assert ast.get_docstring(tree), "no docstring"
    assert len(path.read_text().splitlines()) <= MAX_MODULE_LINES
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    lengths = {node.name: (node.end_lineno or 0) - node.lineno + 1 for node in functions}
    assert {} == {name: lines for name, lines in lengths.items() if lines > MAX_FUNCTION_LINES}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_of_the_core_is_pure(path: Path) -> None:
    assert [] == [found for node in ast.walk(tree_of(path)) for found in impurities(node)]


def impurities(node: ast.AST) -> Iterator[str]:
    """What in this node reaches outside: imports, calls of eval and exec, numpy's global random numbers."""
    if isinstance(node, ast.Import):
        yield from [one.name for one in node.names if one.name.split(".")[0] in FORBIDDEN_IMPORTS]
    elif isinstance(node, ast.ImportFrom) and node.level == 0:
        yield from [node.module or ""] if (node.module or "").split(".")[0] in FORBIDDEN_IMPORTS else []
    elif isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        if called in ("eval", "exec", "compile", "__import__", "open", "print", "input"):
            yield called
        if (match := re.fullmatch(r"(?:np|numpy)\.random\.(\w+)", called)) and (
            match[1] not in SEEDED or not node.args + node.keywords
        ):
            yield called


@pytest.mark.parametrize(
    "text",
    ["import time", "from os import path", "import random as r", "eval('1')", "np.random.rand(3)",
     "np.random.default_rng()", "def f():\n    import io"],
)  # fmt: skip
def test_the_check_of_purity_sees(text: str) -> None:
    assert [] != [found for node in ast.walk(ast.parse(text)) for found in impurities(node)]
