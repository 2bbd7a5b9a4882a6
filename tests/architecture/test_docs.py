"""Documents point at things that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (".", "docs", "docs/adr", "examples/*", "*")
DOCUMENTS = sorted({path for folder in FOLDERS for path in ROOT.glob(f"{folder}/*.md")})


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text())
    assert [] == [link for link in links if not (document.parent / link).exists()]


def test_the_modules_and_tests_that_papers_md_names_exist() -> None:
    text = (ROOT / "docs/papers.md").read_text()
    named = re.findall(
        r"`((?:elastic|flow|generate|join|model|partition|window)/[a-z_*/]+\.py|(?:unit|property|fuzz)/[a-z_/]+(?:\.py)?)`",
        text,
    )
    assert named
    missing = [
        name for name in named if not list((ROOT / "core/joinery").glob(name)) and not (ROOT / "tests" / name).exists()
    ]
    assert [] == missing


def test_every_station_of_the_readme_names_modules_of_that_station() -> None:
    rows = re.findall(r"^\| (\d) [^|]*\| (`core[^|]*)\|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert ["1", "2", "3", "4", "5", "6", "7"] == [number for number, _ in rows]
    for number, cell in rows:
        first = re.findall(r"`([^`]+)`", cell)[0]
        assert f'"""Station {number} of 8' in (ROOT / first).read_text(), first
