"""A command line that cannot be read: found, wanted, remedy, as everywhere, and code 2."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from joinery.cli.main import app

RUN = CliRunner()
PUSH = "joinery push [OPTIONS] {query} {stream} [file]"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("run --nope", "joinery run: found --nope, wanted one of its options; joinery run --help tells more"),
        ("run --verifi", "joinery run: found --verifi, wanted one of its options; did you mean --verify?"),
        ("push", f"joinery push: found no query, wanted {PUSH}; joinery push --help tells more"),
        ("push q", f"joinery push: found no stream, wanted {PUSH}; joinery push --help tells more"),
        ("push q s f g h", f"joinery push: found g h too many, wanted {PUSH}; joinery push --help tells more"),
        ("push --wait x q s", "joinery push --wait: found 'x', wanted a valid number; joinery push --help tells more"),
        (
            "push --wait",
            "joinery push: found --wait without a value, wanted --wait VALUE; joinery push --help tells more",
        ),
        ("push --end=3", "joinery push: found a value of --end, wanted --end alone; joinery push --help tells more"),
        (
            "completion csh",
            "joinery completion shell: found 'csh', wanted one of 'bash', 'zsh', 'fish'; "
            "joinery completion --help tells more",
        ),
        (
            "simulate nope",
            "joinery simulate: found the command 'nope', wanted one of recorded, load, machines; "
            "joinery simulate --help tells more",
        ),
    ],
)
def test_a_line_that_cannot_be_read_is_refused_in_our_words(line: str, told: str) -> None:
    result = RUN.invoke(app, line.split(), prog_name="joinery")
    assert (2, "", told) == (result.exit_code, result.stdout, result.stderr.strip())


def test_a_mistyped_command_is_guessed() -> None:
    result = RUN.invoke(app, ["verfy"], prog_name="joinery")
    assert 2 == result.exit_code
    assert result.stderr.startswith("joinery: found the command 'verfy', wanted one of run, verify, push, ")
    assert result.stderr.endswith("; did you mean 'verify'?\n")


@pytest.mark.parametrize(("line", "code", "said"), [([], 2, "Usage: joinery"), (["version"], 0, "joinery 0")])
def test_what_can_be_read_is_done_as_before(line: list[str], code: int, said: str) -> None:
    result = RUN.invoke(app, line, prog_name="joinery")
    assert (code, True) == (result.exit_code, said in result.output)


def test_the_command_itself_refuses_so_too() -> None:
    code = "import sys; sys.argv = ['joinery', 'top', '--nope']; from joinery.cli.entry import main; main()"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)  # noqa: S603
    assert (2, "") == (found.returncode, found.stdout)
    assert "top: found --nope, wanted one of its options; " in found.stderr
