"""`joinery doctor`: it says what is there, and fails if `joinery run` could not work."""

import shutil
from collections import namedtuple
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from typer.testing import CliRunner

from joinery.adapters import extras
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
    assert [] == [
        one.name for one in found.values() if one.verdict is doctor.Verdict.MISSING and ": " not in one.remedy
    ]


def _nothing_is_installed(name: str) -> str:
    raise PackageNotFoundError(name)


def test_what_is_not_installed_comes_by_make_in_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "version", _nothing_is_installed)
    found = {one.name: one for one in doctor.findings(quick=True)}
    assert "make venv in this checkout, elsewhere pip install 'joinery[spark]'" in found["pyspark"].remedy
    assert "make venv in this checkout, elsewhere pip install 'joinery[service]'" in found["grpcio"].remedy


def test_what_is_not_installed_comes_by_pip_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(extras, "_CHECKOUT", tmp_path)
    assert "pip install 'joinery[plots]'" == extras.how_to_get("plots")
