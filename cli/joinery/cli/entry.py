"""Where the command `joinery` begins: Ctrl-C while the rest is loaded ends as it does later."""

import sys


def main() -> None:
    """Load and run it."""
    try:
        from joinery.cli.main import app  # noqa: PLC0415 - takes a second, in which somebody may change their mind

        app()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(1)
