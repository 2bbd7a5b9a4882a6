"""What people see of a run while it runs, on standard error: a live table on a terminal, else plain lines."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from joinery.cli.progress import Progress
from joinery.cli.words import duration

LINE_EVERY_S: Final = 5.0
"""Between two plain lines, if nothing happens."""


@contextmanager
def working(text: str) -> Iterator[None]:
    """Something that takes a while and cannot tell how far it is: a sign of life on a terminal, nothing in a pipe."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    parts = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*parts, console=console, transient=True) as bar:
        bar.add_task(text, total=None)
        yield


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
