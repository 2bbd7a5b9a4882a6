"""What killed runs have left is removed, and nothing else."""

import json
from pathlib import Path

import pytest

from joinery.cli.leftovers import keep, let_go, scratch, sweep
from joinery.cli.running import folder, made_folder

PARTS = "out.csv.0123456789ab.parts"


@pytest.fixture(autouse=True)
def _a_runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))


def left(*paths: Path) -> Path:
    """A list as a killed process leaves it."""
    listed = made_folder() / "one.left"
    listed.write_text(json.dumps([str(path) for path in paths]))
    return listed


def test_what_a_dead_process_has_listed_is_removed_with_the_list(tmp_path: Path) -> None:
    made = [tmp_path / "joinery-run-abc", tmp_path / PARTS, made_folder() / "orders-77.json"]
    for path in made[:2]:
        path.mkdir()
    (made[1] / "00000001-0.csv").write_text("1,2")
    made[2].write_text("{}")
    left(*made, tmp_path / "joinery-sql-gone")
    assert made == sweep()
    assert ([], []) == ([path for path in made if path.exists()], list(folder().iterdir()))


def test_what_a_living_process_has_listed_stays(tmp_path: Path) -> None:
    (tmp_path / PARTS).mkdir()
    keep(tmp_path / PARTS)
    assert [] == sweep()
    let_go(tmp_path / PARTS)
    assert ([], True) == (list(folder().iterdir()), (tmp_path / PARTS).exists())


def test_what_has_no_name_of_ours_stays(tmp_path: Path) -> None:
    made = [tmp_path / "thesis", tmp_path / "out.csv", tmp_path / "orders-77.json"]
    for path in made:
        path.touch()
    left(*made)
    assert ([], made) == (sweep(), [path for path in made if path.exists()])


def test_a_folder_into_which_others_may_write_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / PARTS).mkdir()
    left(tmp_path / PARTS)
    folder().chmod(0o777)
    assert ([], True) == (sweep(), (tmp_path / PARTS).exists())


def test_a_list_that_cannot_be_read_and_a_lock_that_nobody_holds_go() -> None:
    left().write_text("no json")
    (folder() / "0123.lock").touch()
    assert ([], []) == (sweep(), list(folder().iterdir()))


def test_a_scratch_folder_is_listed_while_it_is_there() -> None:
    with scratch("sql") as made:
        (listed,) = folder().glob("*.left")
        assert [str(made)] == json.loads(listed.read_text())
    assert [] == list(folder().iterdir())
