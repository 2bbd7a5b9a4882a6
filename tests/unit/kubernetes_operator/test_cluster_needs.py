"""A machine that cannot have a cluster is told what is missing, by a code of its own; CI then leaves its tests out."""

from pathlib import Path

import pytest

from tests.cluster import __main__ as command
from tests.cluster import clusters, needs


@pytest.fixture(autouse=True)
def a_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Root, with every program; nothing is installed or built on it."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(clusters, "_docker_answers", lambda: False)
    monkeypatch.setattr(needs.os, "geteuid", lambda: 0)
    monkeypatch.setattr(needs.shutil, "which", lambda program: None if program == "apt-get" else f"/bin/{program}")
    monkeypatch.setattr(needs, "_is_there", lambda _: True)
    monkeypatch.setattr(needs, "KERNEL", {"do nothing": "true"})


def told(capsys: pytest.CaptureFixture[str]) -> str:
    assert command.CANNOT == command.main(["build"])
    return capsys.readouterr().err


def test_a_machine_with_everything_can_have_one() -> None:
    needs.ensure()


def test_who_is_not_root_is_told_what_else_would_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(needs.os, "geteuid", lambda: 1000)
    assert "no root, wanted one of them: name a cluster in KUBECONFIG" in told(capsys)


def test_programs_that_cannot_be_installed_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(needs, "_is_there", lambda program: program != "runc")
    assert "install them (Debian's names): runc" in told(capsys)


def test_a_root_without_the_rights_of_a_node_is_told_which(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(needs, "KERNEL", {"make a network bridge": "echo not permitted >&2; exit 1"})
    assert "root cannot make a network bridge here (not permitted)" in told(capsys)


def test_modules_that_cannot_be_downloaded_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "build.sh").write_text(f"#!/bin/sh\nexit {clusters.UNREACHABLE}\n")
    (tmp_path / "build.sh").chmod(0o755)
    monkeypatch.setattr(clusters, "OWN", tmp_path)
    assert "cannot be downloaded" in told(capsys)
