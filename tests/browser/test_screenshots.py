"""The pictures of docs/dashboard.md can be made: a load step, groups on their way, a recovery, of a real run."""

import re
from pathlib import Path

import pytest
from PIL import Image

from tests.browser import chromium, screenshots

SIZES = {
    "dashboard-light.png": (1280, screenshots.SCREEN),
    "dashboard-dark.png": (1280, None),
    "dashboard-phone.png": (390, 1500),
    "dashboard-move.png": (1280, None),
    "dashboard-worker-killed.png": (1280, None),
}
"""Width, and height where it is given."""


@pytest.mark.skipif(
    chromium.find() is None, reason="no Chromium on this machine: apt install chromium, or JOINERY_CHROMIUM=/path/to/it"
)
@pytest.mark.timeout(420)
def test_every_picture_is_made_of_a_run_of_the_quickstart(tmp_path: Path) -> None:
    assert 0 == screenshots.main(tmp_path)
    assert set(SIZES) == {path.name for path in tmp_path.iterdir()}
    for name in SIZES:
        check(tmp_path / name)


def test_the_pictures_of_the_page_are_those_of_the_script() -> None:
    page = (screenshots.ROOT / "docs/dashboard.md").read_text()
    assert set(SIZES) == set(re.findall(r"images/(dashboard-[a-z-]+\.png)", page))
    for name in SIZES:
        check(screenshots.IMAGES / name)


def check(path: Path) -> None:
    """As large as it shall be, and not empty: many colours, none of them nearly everywhere."""
    width, height = SIZES[path.name]
    with Image.open(path) as picture:
        assert width == picture.width
        assert picture.height > 400 if height is None else height == picture.height
        colours = picture.convert("RGB").getcolors(1 << 24) or []
    assert len(colours) > 50
    assert max(count for count, _ in colours) < 0.98 * sum(count for count, _ in colours)
