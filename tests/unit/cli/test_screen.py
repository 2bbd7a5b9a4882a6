"""A sign of life beside long work, for those who read it from a pipe."""

import time

import pytest

from joinery.cli import screen
from joinery.cli.screen import working


@pytest.mark.parametrize(("in_pipes", "work_s", "lines"), [(True, 0.5, True), (False, 0.5, False), (True, 0.0, False)])
def test_long_work_is_told_now_and_then_in_a_pipe_if_that_is_asked_for(
    in_pipes: bool, work_s: float, lines: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(screen, "ALIVE_EVERY_S", 0.1)
    with working("comparing [all] of it", in_pipes=in_pipes):
        time.sleep(work_s)
    told = capfd.readouterr()
    assert ("", lines) == (told.out, bool(told.err))
    assert all(line.endswith("s  comparing [all] of it") for line in told.err.splitlines())
    time.sleep(0.3)
    assert "" == capfd.readouterr().err, "it goes on after the work"


def test_work_that_fails_is_told_no_more(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(screen, "ALIVE_EVERY_S", 0.1)
    with pytest.raises(ZeroDivisionError), working("failing", in_pipes=True):
        raise ZeroDivisionError
    time.sleep(0.3)
    assert "" == capfd.readouterr().err
