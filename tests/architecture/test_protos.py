"""The protocol only grows, and the generated code is what the protos give."""

import re
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from protos import generate

PROTOS = sorted((generate.HERE / "joinery" / "v1").glob("*.proto"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[FileDescriptorSet, Path]:
    folder = tmp_path_factory.mktemp("protos")
    return generate.compile_into(folder), folder / "joinery" / "v1"


def test_nothing_that_others_rely_on_is_gone(made: tuple[FileDescriptorSet, Path]) -> None:
    known = generate.known_fields()
    assert len(known) > 150
    assert [] == generate.broken(known, generate.fields_of(made[0]))


def test_what_is_new_is_in_the_snapshot(made: tuple[FileDescriptorSet, Path]) -> None:
    assert generate.fields_of(made[0]) == generate.known_fields(), "run: python protos/generate.py"


def test_the_generated_code_is_what_the_protos_give(made: tuple[FileDescriptorSet, Path]) -> None:
    assert [] == generate.differences(made[1]), "run: python protos/generate.py"


CHANGES = {
    "removed": ("  optional int64 term = 1;\n", ""),
    "renumbered": ("optional int64 term = 1;", "optional int64 term = 91;"),
    "renamed": ("optional int64 term = 1;", "optional int64 epoch = 1;"),
    "retyped": ("optional int64 term = 1;", "optional sint64 term = 1;"),
    "made a list": ("optional int64 term = 1;", "repeated int64 term = 1;"),
    "without presence": ("optional int64 term = 1;", "int64 term = 1;"),
    "out of its oneof": ("oneof message {\n    Batch batch = 1;", "Batch batch = 1;\n  oneof message {"),
    "another method": ("rpc Serve(stream WorkerToGateway)", "rpc Serve(WorkerToGateway)"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_check_sees_a_breaking_change(change: str, tmp_path: Path) -> None:
    old, new = CHANGES[change]
    fields = fields_after("exchange.proto", old, new, tmp_path)
    assert [] != generate.broken(generate.known_fields(), fields)


def test_the_check_lets_the_protocol_grow(tmp_path: Path) -> None:
    old, new = "message Alive {}", "message Alive {\n  optional int64 uptime_ns = 1;\n}"
    fields = fields_after("exchange.proto", old, new, tmp_path)
    assert [] == generate.broken(generate.known_fields(), fields)
    assert 1 == len(set(fields) - set(generate.known_fields()))


def fields_after(name: str, old: str, new: str, folder: Path) -> list[str]:
    """The snapshot if one proto were changed in one place."""
    sources, out = folder / "joinery" / "v1", folder / "out"
    sources.mkdir(parents=True)
    out.mkdir()
    for path in PROTOS:
        text = path.read_text()
        assert path.name != name or old in text
        (sources / path.name).write_text(text.replace(old, new, 1) if path.name == name else text)
    return generate.fields_of(generate.compile_into(out, folder))


def test_generating_twice_changes_nothing_and_the_check_agrees(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "GENERATED", tmp_path / "gen")
    monkeypatch.setattr(generate, "FIELDS", tmp_path / "fields.txt")
    assert 1 == generate.main(["--check"])
    assert 0 == generate.main([])
    capsys.readouterr()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}
    assert (0, 0) == (generate.main([]), generate.main(["--check"]))
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}
    assert "" == capsys.readouterr().err


def test_a_protocol_that_lost_something_is_not_generated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "GENERATED", tmp_path / "gen")
    monkeypatch.setattr(generate, "FIELDS", tmp_path / "fields.txt")
    generate.FIELDS.write_text("joinery.v1.Alive 1 uptime_ns int64 present\n")
    assert 1 == generate.main([])
    assert "joinery.v1.Alive 1 uptime_ns" in capsys.readouterr().err
    assert not (tmp_path / "gen").exists()


def test_the_check_fails_with_a_diff(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in generate.GENERATED.glob("*.py*"):
        if path.is_file():
            (tmp_path / path.name).write_text(path.read_text().replace("Preload", "Proload"))
    monkeypatch.setattr(generate, "GENERATED", tmp_path)
    assert 1 == generate.main(["--check"])
    assert re.search(r"^\+.*Preload", capsys.readouterr().err, re.MULTILINE)


@pytest.mark.parametrize("path", PROTOS, ids=lambda path: path.name)
def test_every_enum_begins_with_unspecified_and_every_rpc_is_a_stream_of_streams(path: Path) -> None:
    text = path.read_text()
    for name, first in re.findall(r"enum (\w+) \{\s*(\w+) = 0;", text):
        prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()
        assert f"{prefix}_UNSPECIFIED" == first
    assert text.count("enum ") == len(re.findall(r"_UNSPECIFIED = 0;", text))
    assert text.count("  rpc ") == len(re.findall(r"rpc \w+\(stream \w+\) returns \(stream \w+\);", text))
