"""One run at a time writes a file."""

from pathlib import Path

import pytest

from joinery.cli.claims import claimed
from joinery.cli.running import Running, folder, running_of
from joinery.model.errors import UserMustAct


@pytest.fixture(autouse=True)
def _a_runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_a_file_that_another_run_writes_is_refused_by_the_name_of_that_run(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    refused = pytest.raises(UserMustAct, match=r"a run of orders \(process \d+\), which writes")
    with claimed([out], "orders"), refused, claimed([tmp_path / "other.csv", out], "again"):
        pass
    with claimed([out], "orders"), claimed([tmp_path / "other.csv"], "again"):
        pass  # the file that the refused one had claimed is free


def test_a_run_leaves_no_lock_behind_and_one_that_was_left_is_none(tmp_path: Path) -> None:
    with claimed([tmp_path / "out.csv"], "orders"):
        (lock,) = folder().iterdir()
        left = lock.read_bytes()
    assert [] == list(folder().iterdir())
    lock.write_bytes(left)  # as of a run that was killed
    with claimed([tmp_path / "out.csv"], "orders"):
        pass


def test_without_a_place_for_locks_a_run_may_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "file"))
    with claimed([tmp_path / "out.csv"], "orders"):
        pass


def test_two_runs_of_one_name_are_told_apart_by_their_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [Running("orders", f"{place}.yaml", f"127.0.0.1:{place}", "", 1) for place in (1, 2)]
    monkeypatch.setattr("joinery.cli.running.all_running", lambda: both)
    with pytest.raises(UserMustAct, match=r"found 2 running queries 'orders' .*:2.*; name it by its HOST:PORT"):
        running_of("orders")
