"""Every command teaches with an example, tells its exit codes, and is in docs/cli.md with its options as they are."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from docs._site.cli_reference import PAGE, commands, options, reference
from joinery.cli.commands import SENTENCES
from joinery.cli.main import app

ROOT = Path(__file__).parents[3]
ALL = dict(commands(typer.main.get_command(app)))
RUN = CliRunner()


@pytest.mark.parametrize("name", ALL)
def test_help_teaches_with_an_example_and_tells_the_exit_codes(name: str) -> None:
    text = ALL[name].help or ""
    assert f"joinery {name}".strip() in text, text
    assert "Exit codes" in text


@pytest.mark.parametrize("name", ALL)
def test_help_fits_a_terminal_of_80_columns(name: str) -> None:
    first, *others = (ALL[name].help or "").split("\n\n")
    assert "\n" not in first
    assert [] == [line for block in others for line in re.sub(r"\[/?bold\]", "", block).splitlines() if len(line) > 78]
    assert [] == [block for block in others if block.startswith("  ")], "examples begin with a line of \\b"


@pytest.mark.parametrize("name", ALL)
def test_every_option_says_what_it_does(name: str) -> None:
    assert [] == [one.name for one in options(ALL[name]) if not one.help]


def test_the_page_of_the_documentation_is_made_from_the_commands() -> None:
    assert reference() == PAGE.read_text(), "run: python -m docs._site.cli_reference"


def test_the_page_names_every_command_and_option() -> None:
    text = PAGE.read_text()
    assert len(ALL) > 15
    for name, command in ALL.items():
        assert f"## joinery {name}\n" in text
        part = text.partition(f"## joinery {name}\n")[2].partition("\n## ")[0]
        assert [] == [one.opts[0] for one in options(command) if f"| `{one.opts[0]}`" not in part]
    assert len(options(ALL["run"])) > 10


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "complete -o default"), ("zsh", "#compdef"), ("fish", "complete")]
)
def test_a_shell_can_be_taught(shell: str, word: str) -> None:
    done = RUN.invoke(app, ["completion", shell])
    assert (0, True) == (done.exit_code, word in done.stdout)
    assert 2 == RUN.invoke(app, ["completion", "dos"]).exit_code


def test_a_shell_that_asks_is_told_what_could_come_next() -> None:
    asked = {"_JOINERY_COMPLETE": "complete_bash", "COMP_WORDS": "joinery ex", "COMP_CWORD": "1"}
    command = [sys.executable, "-c", "import sys; sys.argv = ['joinery']; from joinery.cli.main import app; app()"]
    done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, check=True, timeout=60)  # noqa: S603
    assert ["explain"] == done.stdout.split()


def test_figures_says_where_it_works_and_which_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("joinery.cli.figures.ROOT", tmp_path)
    done = RUN.invoke(app, ["figures"])
    assert (2, True) == (done.exit_code, "wanted a clone of the repository" in done.stderr)
    monkeypatch.chdir(ROOT)
    assert 2 == RUN.invoke(app, ["figures", "--only", "no such figure"]).exit_code


def test_version() -> None:
    assert RUN.invoke(app, ["version"]).stdout.startswith("joinery 0.")


def test_what_is_said_of_a_command_that_is_not_loaded_is_the_first_sentence_of_its_help() -> None:
    assert SENTENCES == {name: (ALL[name].help or "").split("\n\n")[0].strip() for name in SENTENCES}
    assert set(SENTENCES) == {name.split()[0] for name in ALL}


def begun(*words: str) -> subprocess.CompletedProcess[str]:
    """As the installed command begins; at the end it says which of the heavy packages were loaded."""
    text = (
        f"import atexit, sys; sys.argv = ['joinery', *{words!r}]; "
        "atexit.register(lambda: print([one for one in ('grpc', 'numba', 'pyarrow') if one in sys.modules])); "
        "from joinery.cli.entry import main; main()"
    )
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=60)  # noqa: S603


@pytest.mark.parametrize(
    ("word", "code", "said"),
    [("version", 0, "joinery 0."), ("--help", 0, "Where is record n?"), ("verson", 2, "did you mean 'version'?")],
)
def test_a_command_that_needs_little_loads_little(word: str, code: int, said: str) -> None:
    done = begun(word)
    assert (code, "[]") == (done.returncode, done.stdout.splitlines()[-1])
    assert said in done.stdout + done.stderr


def test_a_command_that_is_loaded_late_is_whole() -> None:
    done = begun("push", "--help")
    assert (0, True) == (done.returncode, "--producer" in done.stdout)
    assert "<bool>" not in done.stdout, "a flag takes no value"
