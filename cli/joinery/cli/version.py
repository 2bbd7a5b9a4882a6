"""`joinery version`."""

from importlib.metadata import version as installed_version

import typer

VERSION_HELP = """Print the version.

\b
  joinery version

Exit codes: 0 it is printed.
"""


def version() -> None:
    """Print the version."""
    typer.echo(f"joinery {installed_version('joinery')}")
