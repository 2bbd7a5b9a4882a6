"""`python -m tests.browser.screenshots`: pictures of the dashboard for the docs, of a real run of the quickstart.

Groups on their way; the load step in light, dark and on a phone; then a worker is killed, and another one comes.
Let nothing else run on the machine: what is overloaded by others shows delays of many seconds.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from joinery.cli.local import LocalRun
from joinery.cli.query_file import read_query
from tests.browser.chromium import Browser, find

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
QUERY = ROOT / "examples" / "quickstart" / "query.yaml"
MOST_S = 100.0
SCREEN = 860
"""Points of height that a picture in a text may take."""


def until(run: LocalRun, is_so: Callable[[], object]) -> None:
    """Look after the run until it is so."""
    end = time.monotonic() + MOST_S
    while not is_so():
        run.attend(lambda _: None)
        if time.monotonic() > end:
            raise SystemExit("found a run that did not come so far, wanted a machine with some room; try again")
        time.sleep(0.1)


def for_a_while(run: LocalRun, seconds: float) -> None:
    """Look after the run for so long."""
    end = time.monotonic() + seconds
    until(run, lambda: time.monotonic() > end)


def moving(run: LocalRun, page: Browser, into: Path) -> None:
    """The map and the moves while groups are on their way."""
    until(run, lambda: page.see("document.querySelectorAll('#groups .moving').length > 0"))
    top = page.see("document.querySelector('.columns').getBoundingClientRect().top + scrollY")
    page.picture(into / "dashboard-move.png", SCREEN, from_y=float(top) - 6)


def pictures(run: LocalRun, page: Browser, into: Path) -> None:
    """All of them, as files of that folder."""
    page.looks(width=1280, height=900)
    page.open(run.dashboard)
    view = run.progress
    until(run, lambda: view.last is not None and view.last.degree >= 2 and view.last.moves_done > 0)
    moving(run, page, into)
    until(run, lambda: view.last is not None and view.last.degree >= 3 and view.last.moves_done > 8)
    for_a_while(run, 3)
    page.picture(into / "dashboard-light.png", SCREEN)
    page.looks(width=1280, height=900, dark=True)
    page.picture(into / "dashboard-dark.png")
    page.looks(width=390, height=844, phone=True)
    page.picture(into / "dashboard-phone.png", 1500)
    page.looks(width=1280, height=900)
    os.kill(run.pids["worker-1"], signal.SIGKILL)
    until(run, lambda: page.see("document.getElementById('events').innerText.includes('worker-1 was killed')"))
    for_a_while(run, 3)
    page.picture(into / "dashboard-worker-killed.png")
    if page.complaints:
        raise SystemExit(f"the page complained: {page.complaints}")


def main(into: Path = IMAGES) -> int:
    """Into docs/images/, or elsewhere."""
    program = find()
    if program is None:
        sys.stderr.write("found no Chromium, wanted one; apt install chromium, or JOINERY_CHROMIUM=/path/to/it\n")
        return 1
    into.mkdir(parents=True, exist_ok=True)
    spec = read_query(QUERY)
    with LocalRun(QUERY, spec, name="quickstart", dashboard="127.0.0.1:0") as run, Browser(program) as page:
        pictures(run, page, into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
