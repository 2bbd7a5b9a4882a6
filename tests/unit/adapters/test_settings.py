"""Flags and environment of a process: what is secret comes from the environment alone, and is not shown."""

from pathlib import Path

import pytest

from joinery.adapters.security import PLAIN
from joinery.adapters.settings import read_flags

WORDS = ["--query", "q.yaml"]


def test_without_flags_and_environment_there_is_nothing_to_show_or_to_serve() -> None:
    found = read_flags("gateway", WORDS, {})
    assert ("", None, "", "", PLAIN) == (found.http, found.tls, found.token, found.redis, found.security())


def test_the_token_comes_from_the_environment_and_is_not_shown() -> None:
    found = read_flags("gateway", [*WORDS, "--tls", "/etc/tls", "--http", ":8080"], {"JOINERY_TOKEN": "s3cret"})
    assert (Path("/etc/tls"), "s3cret", ":8080") == (found.tls, found.token, found.http)
    assert "s3cret" not in repr(found)
    assert "s3cret" == read_flags("gateway", WORDS, {"JOINERY_TOKEN": "s3cret\n"}).security().token


@pytest.mark.parametrize("role", ["gateway", "collector", "worker"])
def test_the_help_of_every_role_names_flags_and_environment(role: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_flags(role, ["--help"])
    said = capsys.readouterr().out
    words = ("--http", "/livez", "/readyz", "--tls", "JOINERY_TOKEN", "JOINERY_REDIS_URL")
    assert [] == [word for word in words if word not in said]
