"""`python -m joinery.operator.cleanup`: before `helm uninstall`; refuses while there are JoinQueries, or removes them.

Without the operator nobody would end them: they would wait for their finalizer for ever.
"""

import os
import sys
import time

from joinery.operator.kube import Kube
from joinery.operator.settings import OperatorSettings

WAIT_S = 120.0


def main(environment: dict[str, str]) -> int:
    """0 when none is left."""
    kube, settings = Kube(), OperatorSettings.read(environment)
    removes = environment.get("JOINERY_REMOVE_QUERIES") == "true"
    until_s = time.monotonic() + WAIT_S
    asked: set[tuple[str, str]] = set()
    while True:
        spaces = settings.namespaces or ("",)
        left = [one["metadata"] for space in spaces for one in kube.list("joinery.dev/v1alpha1", "JoinQuery", space)]
        names = ", ".join(f"{one['namespace']}/{one['name']}" for one in left)
        if not left:
            return 0
        if not removes:
            sys.stderr.write(
                f"found {len(left)} JoinQueries ({names}), wanted none; delete them and uninstall "
                "again; or let the chart do it: uninstall.removeQueries=true, set before\n"
            )
            return 1
        if time.monotonic() > until_s:
            sys.stderr.write(f"found {names} after {WAIT_S:g} s, wanted them gone; see the operator's log\n")
            return 1
        for one in left:
            if (key := (one["namespace"], one["name"])) not in asked:
                kube.delete("joinery.dev/v1alpha1", "JoinQuery", *key)
                asked.add(key)
        time.sleep(1)


if __name__ == "__main__":
    sys.exit(main(dict(os.environ)))
