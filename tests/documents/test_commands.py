"""Every command of README and docs is run: here, by make or helm without effect, or by a test that ways.py names."""

import ast
import re
import shlex
import subprocess
import sys
from collections import Counter
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from pyarrow import parquet
from typer.main import get_command

from joinery.cli.main import app
from joinery.model.spec import JoinQuerySpec
from tests.documents.blocks import PAGES, ROOT, SHELL, blocks, commands, inline_commands, page_commands
from tests.documents.session import Session, query_of_the_readme
from tests.documents.ways import HELD, PYTHON, Held, Way, held

HELM = Path(sys.prefix) / "bin" / "helm"
RESOURCES = sorted((ROOT / "charts/joinery/files").glob("*.yaml"))
OURS = re.compile(r"^(\$ |\.venv/bin/)?(make|kubectl|helm) |^(\$ |\.venv/bin/)joinery ", re.MULTILINE)
HELP = re.compile(r"^joinery ([a-z]+)", re.MULTILINE)
"""As the help of a command has it: text that is read, not typed."""
INDENTED = re.compile(r"(?<=\n\n) {4}(joinery|make|kubectl|helm|python) ")
CHECKED = re.compile(r"^(?:checked|missing) .*$", re.MULTILINE)
"""What a page shows of a run that is the same in every run."""
STARTED = re.compile(
    r"(?:^|[ =])\.venv/bin/(?:python -m (?!pip|venv)(\S+)|(joinery|ruff|mkdocs|pip-compile))", re.MULTILINE
)
"""What a recipe of make starts: a module of Python, or a program."""


def of_way(way: Way) -> list[str]:
    """Every such command once."""
    found = (command for page in PAGES for _, command in page_commands(page) if _is(page, command, way))
    return list(dict.fromkeys(found))


def _is(page: str, command: str, way: Way) -> bool:
    found = held(page, command)
    return found is not None and found.way is way


def _has_a_page(one: Held) -> bool:
    return any(re.search(one.pages, page) for page in PAGES)


# --- nothing is left out


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_held_to_what_it_says(page: str) -> None:
    for block in blocks(page):
        match block.language:
            case language if language in SHELL:
                assert commands(block), f"{block}: a block for a shell without a command"
                nobodys = [one for one in commands(block) if held(page, one) is None]
                assert [] == nobodys, f"{block}: say in tests/documents/ways.py how these are tried"
            case "python":
                assert page in PYTHON, f"{block}: say in tests/documents/ways.py which test runs it"
                ast.parse(block.text)
            case "yaml":
                _is_a_query(block.text)
            case "mermaid" | "text":
                assert not OURS.search(block.text), f"{block}: commands belong into a block of kind console"
                unknown = set(HELP.findall(block.text)) - set(get_command(app).commands)  # type: ignore[attr-defined]
                assert set() == unknown, f"{block}: no such command"
            case other:
                raise AssertionError(f"{block}: found a block of kind {other!r}, wanted one that a test understands")
    assert not INDENTED.search((ROOT / page).read_text()), f"{page}: found a command by indentation, wanted a fence"


def _is_a_query(text: str) -> None:
    """A whole JoinQuery, or a part of a spec that fits into the README's."""
    given, whole = yaml.safe_load(text), yaml.safe_load(query_of_the_readme())["spec"]
    if given.get("kind", "JoinQuery") != "JoinQuery":
        assert [one for one in RESOURCES if f"kind: {given['kind']}" in one.read_text()], f"no resource {given['kind']}"
        return
    spec = given.get("spec", given)
    if "sql" in spec:  # it stands for these
        whole.pop("join")
    JoinQuerySpec.parse(spec if given.get("kind") == "JoinQuery" else whole | _for_the_readme(spec))


def _for_the_readme(spec: dict[str, object]) -> dict[str, object]:
    """What a page shows of another query keeps the names of that one."""
    return {} if "impressions" in str(spec) else spec


def test_a_test_that_is_said_to_run_something_is_there() -> None:
    named = [name for one in HELD if _has_a_page(one) for name in one.tests]
    named += [name for names in PYTHON.values() for name in names]
    assert named
    for name in named:
        path, _, function = name.partition("::")
        assert (ROOT / path).is_file(), name
        assert not function or f"def {function}(" in (ROOT / path).read_text(), name


def test_the_test_of_the_examples_has_every_example_that_has_a_page() -> None:
    tested = (ROOT / "tests/integration/test_examples.py").read_text()
    pages = [page for page in PAGES if any("joinery run examples/" in one for _, one in page_commands(page))]
    assert [] == [page for page in pages if page.startswith("examples/") and page.split("/")[1] not in tested]


def test_every_way_is_used_and_what_fits_nothing_is_found() -> None:
    used = {found for page in PAGES for _, command in page_commands(page) if (found := held(page, command))}
    assert [] == [one.pattern for one in HELD if one not in used and _has_a_page(one)], (
        "nobody says these any more: take them out"
    )
    assert None is held("docs/new.md", "rm -rf /")
    assert {page for page in PAGES if any(block.language == "python" for block in blocks(page))} == set(PYTHON)


# --- without effect


@pytest.mark.parametrize("command", of_way(Way.MAKE))
def test_what_make_would_start_is_there(command: str) -> None:
    words = ["make", "-n", *shlex.split(command)[1:]]
    told = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    assert 0 == told.returncode, told.stderr
    started = STARTED.findall(told.stdout)
    assert started or "rm -rf" in told.stdout, told.stdout
    for module, program in dict.fromkeys(started):
        done = _asked_for_help(module, program)
        assert 0 == done.returncode, done.stderr


@cache
def _asked_for_help(module: str, program: str) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-m", module] if module else [str(Path(sys.prefix) / "bin" / program)]
    return subprocess.run([*words, "--help"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603


@pytest.mark.parametrize("command", of_way(Way.HELM))
def test_the_chart_is_rendered_with_the_flags(command: str) -> None:
    left_out = {"--create-namespace", "--wait", "--reuse-values"}
    words = [word for word in shlex.split(command.replace("\\\n", " "))[2:] if word not in left_out]
    done = subprocess.run(  # noqa: S603
        [str(HELM), "template", *words], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert 0 == done.returncode, done.stderr
    assert "kind: Deployment" in done.stdout


@pytest.mark.parametrize("page", [page for page in PAGES if inline_commands(page)])
def test_a_command_that_a_sentence_names_is_there(page: str) -> None:
    known = get_command(app).commands  # type: ignore[attr-defined]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for command in inline_commands(page):
        program, name, *rest = command.removeprefix(".venv/bin/").split()
        if program == "make":
            assert name in targets, f"{page}: {command}"
        elif program == "python":
            assert find_spec(rest[0]) is not None, f"{page}: {command}"
        elif name.islower():  # not COMMAND
            assert name in known, f"{page}: {command}"
            flags = {flag for one in known[name].params for flag in one.opts}
            asked = {word for word in rest if re.fullmatch(r"--[a-z-]+", word)} - {"--help"}
            assert not flags or name == "simulate" or asked <= flags, f"{page}: {command}"


# --- with effect


@pytest.mark.timeout(280)
@pytest.mark.parametrize(
    "page", [one for one in PAGES if any(_is(one, text, Way.RUN) for _, text in page_commands(one))]
)
def test_the_commands_of_a_page_run_one_after_the_other(page: str, tmp_path: Path) -> None:
    said: dict[str, str] = {}
    with Session(tmp_path) as person:
        for _, command in page_commands(page):
            if "--state" in command:  # another run of the query
                _is_joined(person)
            if _is(page, command, Way.RUN):
                said[command] = person.perform(command)
    told = "".join(block.text for block in blocks(page) if block.language == "text")
    for command, text in said.items():
        assert [] == [line for line in CHECKED.findall(told) if line not in text], "the page shows another outcome"
        assert "verify" not in command or "missing 0, extra 0, duplicate 0" in text
        assert "curl" not in command or "joinery_gateway_tuples_received_total" in text
        assert "--sql" not in command or text.count("Ann") == 1


def _is_joined(person: Session) -> None:
    """What was pushed and has come out, in the file and to whoever followed."""
    heard = [one.said for one in person.stays if "tail" in one.command]
    person.all_ended()
    table = parquet.read_table(person.folder / "results.parquet")
    pairs = zip(*(table.column(name).to_pylist() for name in ("orders_order_id", "fulfilments_clerk")), strict=True)
    assert Counter({(1, None): 1, (2, "Ann"): 1, (3, "Bo"): 1}) == Counter(pairs)
    assert [3] == [one.read_text().count('"orders_order_id"') for one in heard]
