"""Documents point at things that exist."""

import re
import runpy
from pathlib import Path

import pytest

from docs._site import plots
from docs._site.sequences import SEQUENCES, drawn

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


def test_every_station_of_the_concepts_names_modules_of_that_station() -> None:
    rows = re.findall(r"^\| (\d) [^|]*\| (`core[^|]*)\|", (ROOT / "docs/concepts.md").read_text(), re.MULTILINE)
    assert ["1", "2", "3", "4", "5", "6", "7"] == [number for number, _ in rows]
    for number, cell in rows:
        first = re.findall(r"`([^`]+)`", cell)[0]
        assert f'"""Station {number} of 8' in (ROOT / first).read_text(), first


def test_the_drawings_are_those_of_their_script() -> None:
    drawings = runpy.run_path(str(ROOT / "docs/_site/drawings.py"))["DRAWINGS"]
    page = (ROOT / "docs/concepts.md").read_text()
    for name, made in drawings.items():
        assert str(made()) == (ROOT / f"docs/images/{name}.svg").read_text(), "run: python docs/_site/drawings.py"
        assert f"(images/{name}.svg)" in page


@pytest.mark.parametrize("name", SEQUENCES)
def test_the_drawings_of_the_protocol_are_those_of_their_script(name: str) -> None:
    made = str(drawn(*SEQUENCES[name]))
    assert made == (ROOT / f"docs/images/{name}.svg").read_text(), "run: python -m docs._site.sequences"
    assert f"(images/{name}.svg)" in (ROOT / "docs/protocol.md").read_text()


def test_the_plots_of_the_performance_are_those_of_their_figures() -> None:
    page = (ROOT / "docs/performance.md").read_text()
    for name in plots.PLOTS:
        made = str(plots.drawn(name))
        assert made == (ROOT / f"docs/images/performance-{name}.svg").read_text(), "run: python -m docs._site.plots"
        assert f"(images/performance-{name}.svg)" in page
    assert set(plots.PLOTS) == {line.partition(",")[0] for line in plots.FIGURES.read_text().splitlines()[1:]}


@pytest.mark.parametrize("greatest", [0.004, 0.35, 1.0, 2.37, 99.0, 100.0, 12_345.0])
def test_an_axis_has_a_few_round_numbers_and_room(greatest: float) -> None:
    ticks = plots._ticks(greatest)
    assert ticks[0] == 0
    assert 3 <= len(ticks) <= 9, ticks
    assert greatest < ticks[-1] <= 2 * greatest


def test_no_page_has_a_diagram_that_the_site_would_show_as_text() -> None:
    """The site takes nothing from elsewhere, and has no program that draws."""
    assert [] == [str(path) for path in DOCUMENTS if "```mermaid" in path.read_text()]


def test_every_alert_of_the_chart_has_its_page_in_the_runbook() -> None:
    alerts = re.findall(r"^- alert: (\w+)", (ROOT / "charts/joinery/files/alerts.yaml").read_text(), re.MULTILINE)
    told = re.findall(r"^### (\w+)", (ROOT / "docs/operations.md").read_text(), re.MULTILINE)
    assert alerts
    assert sorted(alerts) == sorted(told)


def test_the_reference_says_of_every_field_what_it_is_and_how_it_changes() -> None:
    hooks = runpy.run_path(str(ROOT / "docs/_site/hooks.py"))
    fields = hooks["fields"]()
    assert {"streams[].window", "scaling.beta", "pods.gateway.resources.limits", "engine"} <= {one[0] for one in fields}
    assert [] == [name for name, _, _, about in fields if not about.endswith((".", "db", "`"))], "each has its sentence"
    assert [] == [name for name, *_ in fields if not hooks["change_of"](name)]
    assert "live, exact" == hooks["change_of"]("streams[].window")
    assert "refused" == hooks["change_of"]("streams[].source.generator.rate")
    assert "live or restart" == hooks["change_of"]("worker")
