"""A query of this machine, by its file or name; one that does not run yet can be waited for."""

import threading
import time
from pathlib import Path

import pytest

from joinery.cli.running import REACH_S, Announcement, NotRunning, reached
from joinery.model.errors import UserMustAct


@pytest.fixture(autouse=True)
def query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "q.yaml").touch()
    return tmp_path / "q.yaml"


@pytest.mark.parametrize("by", ["file", "name"])
def test_a_query_that_is_about_to_run_is_waited_for_if_one_says_so(query: Path, by: str) -> None:
    announced = Announcement(query, "orders", "127.0.0.1:7400", "127.0.0.1:7401")
    later = threading.Timer(0.5, announced.begin)
    later.start()
    try:
        assert ("127.0.0.1:7400", 60) == reached(str(query) if by == "file" else "orders", 60)
    finally:
        later.join()
        announced.end()


def test_without_a_word_it_is_refused_at_once_and_with_one_after_so_long(query: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(NotRunning, match=r"found no running query 'orders' .*; start it with joinery run"):
        reached("orders", None)
    assert time.monotonic() - begun < 0.2
    with pytest.raises(UserMustAct):
        reached(str(query), 0.4)
    assert time.monotonic() - begun >= 0.4


def test_a_file_that_is_not_there_is_not_waited_for(query: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(NotRunning):
        reached(str(query.with_name("qeury.yaml")), 60)
    assert time.monotonic() - begun < 30


def test_an_address_is_an_address() -> None:
    assert ("10.0.0.1:7400", REACH_S) == reached("10.0.0.1:7400", None)
