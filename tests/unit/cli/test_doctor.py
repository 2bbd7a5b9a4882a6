"""`joinery doctor`: it says what is there, and fails if `joinery run` could not work."""

import shutil
from collections import namedtuple

import pytest
from typer.testing import CliRunner

from joinery.cli import doctor
from joinery.cli.main import app

Usage = namedtuple("Usage", "total used free")


def test_a_machine_that_can_run_a_query_is_told_so() -> None:
    told = CliRunner().invoke(app, ["doctor"])
    assert 0 == told.exit_code, told.output
    assert "embedded Redis   6." in told.output or "embedded Redis   7." in told.output


def test_a_full_disk_is_a_reason_not_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100, 100, 0))
    told = CliRunner().invoke(app, ["doctor", "--quick"])
    assert 1 == told.exit_code
    assert "BROKEN   disk" in told.output
    assert "TMPDIR" in told.output


def test_a_program_that_is_not_there_is_said_with_its_purpose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    found = {one.name: one for one in doctor.findings(quick=True)}
    assert doctor.Verdict.MISSING is found["java"].verdict
    assert "JDK 17" in found["java"].remedy
