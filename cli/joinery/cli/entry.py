"""Where the command `joinery` begins: Ctrl-C while the rest is loaded ends as it does later."""

import os
import sys


def main() -> None:
    """Load what the command line asks for, and run it."""
    try:
        from joinery.cli.commands import SENTENCES, started  # noqa: PLC0415 - somebody may change their mind meanwhile
        from joinery.cli.completion import VARIABLE  # noqa: PLC0415

        started(SENTENCES if VARIABLE in os.environ else sys.argv[1:2])  # a shell that asks may mean any of them
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(1)
