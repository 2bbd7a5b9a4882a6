"""The dashboard in a real headless Chromium: it loads, it lives, a move and a killed worker are seen, no complaint."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from joinery.cli.local import LocalRun
from tests.browser import chromium
from tests.support.running import running

PROGRAM = chromium.find()
pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="no Chromium on this machine: apt install chromium, or JOINERY_CHROMIUM=/path/to/it"
)


PALE = """(() => {
  const parts = (text) => text.match(/[0-9.]+/g).map(Number);
  const light = (text) => parts(text).slice(0, 3).map((one) => one / 255)
    .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, place) => sum + one * [0.2126, 0.7152, 0.0722][place], 0);
  const ground = (one) => {
    const own = getComputedStyle(one).backgroundColor;
    return parts(own)[3] === 0 && one.parentElement ? ground(one.parentElement) : own;
  };
  const told = [...document.body.querySelectorAll("*")].filter((one) => one.checkVisibility() &&
    !one.matches(".skip") && [...one.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()));
  return told.map((one) => {
    const style = getComputedStyle(one), colour = one.closest("svg") ? style.fill : style.color;
    const [a, b] = [light(colour), light(ground(one))];
    return [one.textContent.trim().slice(0, 30), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
  }).filter(([, ratio]) => ratio < 4.5);
})()"""
"""Texts whose contrast to their ground is less than WCAG AA asks for."""


def write_query(folder: Path) -> Path:
    """Two generated streams for a minute, two workers, no scaling by load."""
    streams = [
        {
            "name": name, "schema": {"k": "int64", "ts": "timestamp(us)"}, "window": "5s", "time": {"column": "ts"},
            "source": {
                "generator": {
                    "profile": {"burst": {"base": 500, "burst": 900, "start": "8s", "length": "20s"}},
                    "keys": {"distribution": "uniform", "range": 500}, "rows": 40_000, "seed": seed,
                },
                "pace": "time",
            },
        }
        for name, seed in (("clicks", 1), ("views", 2))
    ]  # fmt: skip
    spec: dict[str, Any] = {
        "streams": streams, "join": {"on": ["k"]}, "sinks": [{"count": {}}], "replicas": 2,
        "epochs": {"reorganization": "500ms"}, "scaling": {"mode": "Manual", "max": 3},
        "checkpoint": {"interval": "500ms"},
    }  # fmt: skip
    query = {"apiVersion": "joinery.dev/v1alpha1", "kind": "JoinQuery", "metadata": {"name": "browser"}, "spec": spec}
    path = folder / "query.yaml"
    path.write_text(yaml.safe_dump(query))
    return path


@pytest.fixture(name="run")
def a_run(tmp_path: Path) -> Iterator[LocalRun]:
    with running(write_query(tmp_path), dashboard="127.0.0.1:0", name="<i>browser</i>") as run:
        yield run


@pytest.fixture(name="page")
def a_page() -> Iterator[chromium.Browser]:
    assert PROGRAM is not None
    with chromium.Browser(PROGRAM) as browser:
        yield browser


def tile(name: str) -> str:
    found = f"[...document.querySelectorAll('#tiles div')].find((one) => one.firstChild.textContent === '{name}')"
    return f"{found}?.lastChild.textContent"


@pytest.mark.timeout(280)
def test_the_page_lives_and_shows_a_move_a_killed_worker_and_the_past(run: LocalRun, page: chromium.Browser) -> None:
    def attend() -> None:
        run.attend(lambda _: None)

    page.looks(width=1280, height=900)
    page.open(run.dashboard)
    # it loads, and says whose it is; what is no markup does not become any
    page.until("document.getElementById('state').textContent === 'running'", attend)
    assert "<i>browser</i>" == page.see("document.querySelector('h1').textContent")
    assert 0 == page.see("document.querySelectorAll('h1 i').length")
    page.until("document.querySelectorAll('#workers tbody tr').length === 2", attend)
    # it lives
    page.until(f"parseInt({tile('Results committed')}) > 0", attend)
    before = page.see(tile("Results committed"))
    page.until(f"{tile('Results committed')} !== '{before}'", attend)
    page.until("document.querySelector('#chart-rate path.one').getAttribute('d').length > 20", attend)
    page.until("document.querySelectorAll('#groups div.w0, #groups div.w1').length === 60", attend)
    # a move
    group, source = 0, int(page.see("document.querySelector('#groups div').className.includes('w0') ? 0 : 1"))
    run.move(group, f"worker-{1 - source}")  # who came first may have all groups
    page.until(f"document.querySelector('#moves tr[data-group=\"{group}\"]')?.innerText.includes('planned')", attend)
    page.until(f"document.querySelectorAll('#groups div')[{group}].className.includes('w{1 - source}')", attend)
    assert f"worker-{source} → worker-{1 - source}" in page.see(
        f"document.querySelector('#moves tr[data-group=\"{group}\"]').innerText"
    )
    # a worker is killed, and another one takes its place
    os.kill(run.pids["worker-1"], signal.SIGKILL)
    page.until("document.getElementById('events').innerText.includes('worker-1 was killed (SIGKILL)')", attend)
    page.until("document.getElementById('events').innerText.includes('worker-1 is here')", attend)
    # the gateway is killed: the page says so, and goes on with the next one
    os.kill(run.pids["gateway"], signal.SIGKILL)
    page.until("document.getElementById('events').innerText.includes('gateway was killed (SIGKILL)')", attend)
    before = page.see(tile("Results committed"))
    page.until(f"{tile('Results committed')} !== '{before}'", attend)
    times = page.see("[...document.querySelectorAll('#events time')].map((one) => one.dateTime)")
    assert len(times) >= 4
    assert sorted(times, reverse=True) == times, "the newest first, whoever told it"
    # the past is there after a reload
    points = "(document.querySelector('#chart-rate path.one')?.getAttribute('d').match(/[ML]/g) ?? []).length"
    page.until(f"{points} >= 8", attend)
    before = page.see(points)
    page.reload()
    page.until(f"{points} > 0", attend)
    assert page.see(points) >= before - 3  # a chart without the past would begin with one
    assert [] == page.complaints


@pytest.mark.timeout(280)
def test_it_can_be_used_with_keys_on_a_phone_and_by_who_hears_it(run: LocalRun, page: chromium.Browser) -> None:
    def attend() -> None:
        run.attend(lambda _: None)

    page.looks(width=375, height=740, phone=True, dark=True)
    page.open(run.dashboard)
    page.until("document.querySelectorAll('#workers tbody tr[data-worker]').length === 2", attend)
    page.until("document.querySelector('#chart-rate path.one').getAttribute('d').length > 20", attend)
    assert page.see("document.documentElement.scrollWidth <= window.innerWidth"), "the page is wider than the phone"
    assert "rgb(16, 21, 27)" == page.see("getComputedStyle(document.body).backgroundColor")
    # landmarks, names of regions and pictures, heads of tables
    assert 1 == page.see("document.querySelectorAll('main').length")
    tags = "[...document.body.children].map((one) => one.tagName)"
    assert ["HEADER", "MAIN", "FOOTER"] == [one for one in page.see(tags) if one in ("HEADER", "MAIN", "FOOTER")]
    shown = "[...document.querySelectorAll('section, svg, [role=region], [role=img]')]"
    named = "one.getAttribute('aria-label') || document.getElementById(one.getAttribute('aria-labelledby'))"
    nameless = f"{shown}.filter((one) => !({named})).length"
    assert 0 == page.see(nameless)
    assert 0 == page.see("[...document.querySelectorAll('th')].filter((one) => one.scope !== 'col').length")
    # can be read, dark and light
    assert page.see("document.body.querySelectorAll('td').length") > 10
    assert [] == page.see(PALE)
    page.looks(width=375, height=740, phone=True)
    assert [] == page.see(PALE)
    # a chart by keys, and its table
    page.see("document.querySelector('#chart-rate svg').focus()")
    page.press("ArrowLeft")
    page.until("document.querySelector('#chart-rate .key-time').textContent.startsWith('at ')", attend)
    page.press("Escape")
    page.until("!document.querySelector('#chart-rate .key-time').textContent.startsWith('at ')", attend)
    page.see("document.querySelector('#chart-rate details').open = true")
    page.until("document.querySelectorAll('#chart-rate details tbody tr').length >= 2", attend)
    # the run ends: the page says so, and keeps the last figures
    run.close()
    page.until("document.getElementById('state').textContent === 'not connected'")
    assert page.see("!document.getElementById('alert').hidden")
    assert 2 == page.see("document.querySelectorAll('#workers tbody tr').length")
    assert [] == [one for one in page.complaints if "ERR_CONNECTION_REFUSED" not in one and "ERR_INCOMPLETE" not in one]
