"""A stored table as it lies on disk: versions, and the segments that they are made of.

    versions/7.relation       how version 7 is cut, and which version wrote each segment (lookup.proto)
    versions/7.seen           what the table's files were when it was read
    segments/5/1048577.arrows a segment that version 5 wrote, by its number

Rule 1: a version is there when its `.relation` is; it is renamed into place last, so a crash leaves the older one.
Rule 2: a segment that a version has in common with an older one is not written again.
Rule 3: what no version that is still needed names is taken away, after a version was published.
Rule 4: a version is cut under a number of its own, and its folder says that the number is taken. Tasks of an
        application that died over a version may write for a moment more: nobody else writes under their number.
"""

import shutil
import uuid
from pathlib import Path

from joinery.adapters.lookups import relation_message, relation_of
from joinery.hybrid.segments import Relation
from joinery.v1 import lookup_pb2 as wire


class SegmentFiles:
    """The folder of one query's table."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "versions").mkdir(parents=True, exist_ok=True)
        (folder / "segments").mkdir(exist_ok=True)

    def versions(self) -> list[int]:
        """All that are there, the oldest first."""
        return sorted(int(path.stem) for path in (self.folder / "versions").glob("*.relation"))

    def relation_bytes(self, version: int) -> bytes:
        """How a version is cut, as it travels."""
        return (self.folder / "versions" / f"{version}.relation").read_bytes()

    def relation(self, version: int) -> Relation:
        """How a version is cut."""
        return relation_of(wire.Relation.FromString(self.relation_bytes(version)))

    def seen(self, version: int) -> str:
        """What the table's files were when this version was read."""
        return (self.folder / "versions" / f"{version}.seen").read_text()

    def reserve(self) -> int:
        """The number of the next version (rule 4)."""
        taken = [int(folder.name) for folder in (self.folder / "segments").iterdir()]
        version = max((*self.versions(), *taken), default=0) + 1
        (self.folder / "segments" / str(version)).mkdir()
        return version

    def release(self, version: int) -> None:
        """It was not needed after all; whoever wrote under it is through."""
        shutil.rmtree(self.folder / "segments" / str(version), ignore_errors=True)

    def publish(self, relation: Relation, seen: str) -> None:
        """A version whose segments are all written is there from now on."""
        named = self.folder / "versions" / f"{relation.version}"
        named.with_suffix(".seen").write_text(seen)
        write_whole(named.with_suffix(".relation"), relation_message(relation).SerializeToString())

    def see_again(self, version: int, seen: str) -> None:
        """The table's files are others, its rows are the same."""
        (self.folder / "versions" / f"{version}.seen").write_text(seen)

    def path(self, stamp: int, number: int) -> Path:
        """Where a segment lies."""
        return self.folder / "segments" / str(stamp) / f"{number}.arrows"

    def read(self, stamp: int, number: int) -> bytes:
        """A segment as it lies there."""
        return self.path(stamp, number).read_bytes()

    def forget(self, oldest: int) -> None:
        """Versions before this one are not needed any more, but for the newest."""
        there = self.versions()
        for version in there[:-1]:
            if version < oldest:
                for suffix in (".relation", ".seen"):
                    (self.folder / "versions" / f"{version}{suffix}").unlink(missing_ok=True)
        kept = self.versions()
        if kept == there:
            return
        named = {
            (int(stamp), int(number))
            for relation in map(self.relation, kept)
            for stamp, number in zip(relation.stamps, relation.cut.numbers, strict=True)
        }
        for folder in (self.folder / "segments").iterdir():
            stamp = int(folder.name)
            if stamp > kept[-1]:
                continue  # being written
            for path in folder.glob("*.arrows"):
                if (stamp, int(path.stem)) not in named:
                    path.unlink(missing_ok=True)
            if not any(folder.iterdir()):
                shutil.rmtree(folder, ignore_errors=True)


def write_whole(path: Path, data: bytes) -> None:
    """A file that is there wholly or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{uuid.uuid4().hex}")  # pods have the same process ids
    half.write_bytes(data)
    half.replace(path)
