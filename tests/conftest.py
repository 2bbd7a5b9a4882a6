"""What holds in every test process: the standard library's `operator`, property tests that repeat, an order."""

import operator
from pathlib import Path

import pytest
from hypothesis import settings

# The repository has a folder `operator`. If it ever became a package it would hide the standard library's.
assert operator.add(1, 1) == 2
assert "joinery" not in str(operator.__file__)
assert "operator/operator" not in str(operator.__file__)

settings.register_profile("joinery", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("joinery")

LONG = ("spark", "chaos", "browser", "integration", "simulation")
"""Folders of long tests, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first: nobody waits for one at the end, and those of Spark stay with the process that started it."""

    def place(item: pytest.Item) -> int:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        return LONG.index(folder) if folder in LONG else len(LONG)

    items.sort(key=place)
