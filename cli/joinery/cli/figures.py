"""`joinery figures`: the papers' figures, as `make figures` draws them."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from joinery.cli.complaining import complaining
from joinery.model.errors import UserMustAct

FIGURES_HELP = """Draw the papers' figures, simulated and with real processes, as PNG and CSV.

\b
  joinery figures                        all, into build/figures/ (10 minutes)
  joinery figures --only 'real-*'        those with real processes
  joinery figures --into /tmp/figures

They are drawn by bench/, which is in the repository and not in the package:
this command works in a clone of it. It says which figure it is at.

Exit codes: 0 they are drawn, 1 one could not be drawn, 2 there is no bench/
here, or no such figure.
"""
ROOT: Final = Path(__file__).parents[3]


@complaining
def figures(
    only: Annotated[str, typer.Option("--only", help="Names of figures, as a pattern.")] = "*",
    into: Annotated[Path | None, typer.Option("--into", help="Folder; build/figures/ if left out.")] = None,
) -> None:
    """Find bench/, and let it draw."""
    found = next((one for one in (Path.cwd(), ROOT) if (one / "bench" / "figures" / "__main__.py").is_file()), None)
    if found is None:
        raise UserMustAct(
            f"found no bench/figures in {Path.cwd()}, wanted a clone of the repository; change into it, or run make "
            "figures there"
        )
    target = [] if into is None else ["--into", str(into.resolve())]
    command = [sys.executable, "-m", "bench.figures", "--only", only, *target]
    raise typer.Exit(subprocess.run(command, cwd=found, check=False).returncode)  # noqa: S603 - our own module
