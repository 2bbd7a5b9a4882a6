"""What people see of a run while it runs, on standard error: a live table on a terminal, else plain lines."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from joinery.cli.progress import Progress
from joinery.cli.words import duration

LINE_EVERY_S: Final = 5.0
"""Between two plain lines, if nothing happens."""
ALIVE_EVERY_S: Final = 10.0
"""Between two lines of something that cannot tell how far it is."""


@contextmanager
def working(text: str, *, in_pipes: bool = False) -> Iterator[None]:
    """Something that takes a while and cannot tell how far it is: a sign of life on a terminal, in a pipe if asked for.

    Nothing may be printed meanwhile.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        with _lines(text, console) if in_pipes else nullcontext():
            yield
        return
    parts = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*parts, console=console, transient=True) as bar:
        bar.add_task(text, total=None)
        yield


@contextmanager
def _lines(text: str, console: Console) -> Iterator[None]:
    """Now and then a line, beside the work."""
    begun, done = time.monotonic(), threading.Event()

    def tell() -> None:
        while not done.wait(ALIVE_EVERY_S):
            console.print(f"{duration(time.monotonic() - begun):>8}  {text}", markup=False, highlight=False)

    teller = threading.Thread(target=tell, name="sign of life", daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


class Screen:
    """Use it with `with`; `show` is called now and then."""

    def __init__(self, *, quiet: bool) -> None:
        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._quiet = quiet
        self._live = None if quiet or not self.console.is_terminal else Live(
            console=self.console, refresh_per_second=4, transient=True
        )  # fmt: skip
        self._begun = self._told = time.monotonic()

    def __enter__(self) -> "Screen":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return time.monotonic() - self._begun

    def say(self, text: str) -> None:
        """A line that stays."""
        if not self._quiet:
            self.console.print(text, markup=False)

    def complain(self, text: str) -> None:
        """A line that stays, also for who wants it quiet."""
        self.console.print(text, markup=False, style="bold red")

    def show(self, progress: Progress) -> None:
        """How it is now."""
        for text in progress.news():
            self.say(f"{duration(self.seconds):>8}  {text}")
        if self._live is not None:
            self._live.update(progress.table(self.seconds))
        elif time.monotonic() - self._told >= LINE_EVERY_S:
            self._told = time.monotonic()
            self.say(f"{duration(self.seconds):>8}  {progress.headline()}")
