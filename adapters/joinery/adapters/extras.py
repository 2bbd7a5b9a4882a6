"""How to get what is not installed: in a checkout by make, else by pip."""

from pathlib import Path
from typing import Final

_CHECKOUT: Final = Path(__file__).parents[3]
"""The folder of the sources, if this file is where they are; a wheel has no Makefile."""


def how_to_get(extra: str) -> str:
    """What to do for an extra of this package."""
    pip = f"pip install 'joinery[{extra}]'"
    is_checkout = (_CHECKOUT / "Makefile").is_file() and (_CHECKOUT / "pyproject.toml").is_file()
    return f"make venv in this checkout, elsewhere {pip}" if is_checkout else pip
