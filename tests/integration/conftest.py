"""What the tests with real processes share."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(name="folder")
def a_short_folder() -> Iterator[Path]:
    """Short, because of the sockets in it; its name tells the run's processes from all others."""
    made = Path(tempfile.mkdtemp(prefix="jf-"))
    yield made
    shutil.rmtree(made)
