"""Make the code of the protocols anew, and see that they only grew.

`python protos/generate.py` writes protos/gen/joinery/v1 and adds what is new to protos/fields.txt. It refuses when
something that was there is gone or changed: who speaks the older version would be misunderstood. Nothing is written
then. `--check` writes nothing and fails with a diff if what is checked in is not what the protos give now.
"""

import argparse
import difflib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc_tools
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

HERE = Path(__file__).parent
GENERATED = HERE / "gen" / "joinery" / "v1"
FIELDS = HERE / "fields.txt"
INIT = '"""Generated from protos/joinery/v1 by protos/generate.py: change the protos, not this."""\n'
_Field = FieldDescriptorProto


class Failed(Exception):
    """What stands in the way, for the one who runs this."""


def compile_into(folder: Path, protos: Path = HERE) -> FileDescriptorSet:
    """Run protoc; the generated code is then in folder/joinery/v1."""
    sources = sorted(str(path.relative_to(protos)) for path in protos.glob("joinery/v1/*.proto"))
    described = folder / "described"
    arguments = [
        "protoc", f"-I{protos}", f"-I{Path(grpc_tools.__file__).parent / '_proto'}", f"--python_out={folder}",
        f"--pyi_out={folder}", f"--grpc_python_out={folder}", f"--descriptor_set_out={described}", *sources,
    ]  # fmt: skip
    if protoc.main(arguments) != 0:
        raise Failed("protoc refused the protos; see above")
    found = FileDescriptorSet.FromString(described.read_bytes())
    described.unlink()
    (folder / "joinery" / "v1" / "__init__.py").write_text(INIT)
    return found


def fields_of(described: FileDescriptorSet) -> list[str]:
    """All that others rely on, a line for each: fields, values of enums, methods."""
    lines: list[str] = []
    for file in described.file:
        for message in file.message_type:
            lines += _message(message, file.package)
        for enum in file.enum_type:
            lines += _enum(enum, file.package)
        for service in file.service:
            for method in service.method:
                ways = f"{_stream(method.client_streaming)}{method.input_type} {_stream(method.server_streaming)}"
                lines.append(f"{file.package}.{service.name} rpc {method.name} {ways}{method.output_type}")
    return sorted(lines)


def _message(message: DescriptorProto, scope: str) -> Iterator[str]:
    name = f"{scope}.{message.name}"
    for field in message.field:
        kind = _Field.Type.Name(field.type).removeprefix("TYPE_").lower()
        label = _Field.Label.Name(field.label).removeprefix("LABEL_").lower()
        if label == "optional" and field.HasField("oneof_index"):
            label = "present" if field.proto3_optional else f"oneof {message.oneof_decl[field.oneof_index].name}"
        yield f"{name} {field.number} {field.name} {kind}{field.type_name} {label}"
    for inner in message.nested_type:
        yield from _message(inner, name)
    for enum in message.enum_type:
        yield from _enum(enum, name)


def _enum(enum: EnumDescriptorProto, scope: str) -> Iterator[str]:
    for value in enum.value:
        yield f"{scope}.{enum.name} {value.number} {value.name} value"


def _stream(is_stream: bool) -> str:
    return "stream " if is_stream else ""


def broken(known: list[str], now: list[str]) -> list[str]:
    """Lines that were there and are gone or different."""
    return sorted(set(known) - set(now))


def known_fields() -> list[str]:
    """The snapshot that is checked in."""
    return FIELDS.read_text().splitlines() if FIELDS.exists() else []


def differences(made: Path) -> list[str]:
    """How the generated code that is checked in differs from what was made."""
    mine = {path.name: path.read_text().splitlines() for path in made.iterdir() if path.is_file()}
    theirs = {path.name: path.read_text().splitlines() for path in GENERATED.glob("*.py*") if path.is_file()}
    lines: list[str] = []
    for name in sorted(mine.keys() | theirs.keys()):
        lines += difflib.unified_diff(
            theirs.get(name, []), mine.get(name, []), f"checked in/{name}", f"made now/{name}", lineterm="", n=1
        )
    return lines


def check(described: FileDescriptorSet, made: Path) -> None:
    """Fail if what is checked in is not what the protos give."""
    fields = fields_of(described)
    if gone := broken(known_fields(), fields):
        raise Failed("\n".join(["the protocol lost or changed what others rely on:", *gone, "put it back"]))
    lines = differences(made)
    lines += difflib.unified_diff(known_fields(), fields, "checked in/fields.txt", "made now/fields.txt", lineterm="")
    if lines:
        raise Failed("\n".join([*lines[:200], "run: python protos/generate.py"]))


def write(described: FileDescriptorSet, made: Path) -> None:
    """Put what was made in its place."""
    fields = fields_of(described)
    if gone := broken(known_fields(), fields):
        raise Failed("\n".join(["the protocol lost or changed what others rely on:", *gone, "put it back"]))
    GENERATED.mkdir(parents=True, exist_ok=True)
    for old in GENERATED.glob("*.py*"):
        if old.is_file() and not (made / old.name).exists():
            old.unlink()
    for path in made.iterdir():
        target, text = GENERATED / path.name, path.read_text()
        if not target.exists() or target.read_text() != text:
            target.write_text(text)
    FIELDS.write_text("".join(f"{line}\n" for line in fields))


def main(arguments: list[str]) -> int:
    """Generate, or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something would change")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        try:
            described = compile_into(Path(folder))
            (check if options.check else write)(described, Path(folder) / "joinery" / "v1")
        except Failed as failed:
            sys.stderr.write(f"{failed}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
