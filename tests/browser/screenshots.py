"""`python -m tests.browser.screenshots`: pictures of the dashboard for the docs, of a real run of the quickstart.

The load step with its moves, in light, dark and on a phone; then a worker is killed: its groups go to the others.
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


def until(run: LocalRun, is_so: Callable[[], object]) -> None:
    """Look after the run until it is so."""
    end = time.monotonic() + MOST_S
    while not is_so():
        run.attend(lambda _: None)
        if time.monotonic() > end:
            raise SystemExit("found a run that did not come so far, wanted a machine with some room; try again")
        time.sleep(0.1)


def pictures(run: LocalRun, page: Browser) -> None:
    """All of them."""
    page.open(run.dashboard)
    page.looks(width=1280, height=900)
    view = run.progress
    until(run, lambda: view.last is not None and view.last.degree >= 3 and view.last.moves_done > 8)
    begun = time.monotonic()
    until(run, lambda: time.monotonic() - begun > 4)
    page.picture(IMAGES / "dashboard-light.png")
    page.looks(width=1280, height=900, dark=True)
    page.picture(IMAGES / "dashboard-dark.png")
    page.looks(width=390, height=844, phone=True)
    page.picture(IMAGES / "dashboard-phone.png", 1500)
    page.looks(width=1280, height=900)
    os.kill(run.pids["worker-1"], signal.SIGKILL)
    begun = time.monotonic()
    until(run, lambda: time.monotonic() - begun > 4)
    page.picture(IMAGES / "dashboard-worker-killed.png")
    if page.complaints:
        raise SystemExit(f"the page complained: {page.complaints}")


def main() -> int:
    """Into docs/images/."""
    program = find()
    if program is None:
        sys.stderr.write("found no Chromium, wanted one; apt install chromium, or JOINERY_CHROMIUM=/path/to/it\n")
        return 1
    IMAGES.mkdir(parents=True, exist_ok=True)
    spec = read_query(QUERY)
    with LocalRun(QUERY, spec, name="quickstart", dashboard="127.0.0.1:0") as run, Browser(program) as page:
        pictures(run, page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
