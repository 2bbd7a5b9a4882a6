"""The folder of a stored table's versions: numbers that nobody else has written under."""

from pathlib import Path

import numpy as np

from joinery.hybrid.grouped import together
from joinery.hybrid.segments import HashCut, Relation
from joinery.spark.segment_files import SegmentFiles, write_whole


def relation(version: int) -> Relation:
    cut = together("hash", [HashCut(1)])
    return Relation(version, cut, np.array([8]), np.array([version]))


def test_a_version_that_somebody_died_over_is_cut_under_another_number(tmp_path: Path) -> None:
    dead = SegmentFiles(tmp_path)
    assert 1 == dead.reserve()
    restarted = SegmentFiles(tmp_path)
    assert 2 == restarted.reserve()
    late = dead.path(1, 0)
    write_whole(late, b"of a task that outlived its driver")
    write_whole(restarted.path(2, 0), b"rows")
    restarted.publish(relation(2), "seen")
    assert ([2], b"rows") == (restarted.versions(), restarted.path(2, 0).read_bytes())


def test_a_number_that_was_not_needed_is_given_back(tmp_path: Path) -> None:
    files = SegmentFiles(tmp_path)
    files.release(files.reserve())
    assert 1 == files.reserve()


def test_what_was_left_behind_is_taken_away_when_a_version_is(tmp_path: Path) -> None:
    files = SegmentFiles(tmp_path)
    for _ in range(3):
        version = files.reserve()
        write_whole(files.path(version, 0), b"rows")
    files.publish(relation(2), "")
    files.publish(relation(3), "")
    files.forget(3)
    assert ["3"] == sorted(path.name for path in (tmp_path / "segments").iterdir())
