"""`python -m tests.cluster up | build | down`: what `make cluster`, `make cluster-build` and `make cluster-down` do.

It ends with 3 if this machine cannot have a cluster, and says what is missing.
"""

import argparse
from collections.abc import Sequence

from tests.cluster.cache import say
from tests.cluster.clusters import Cluster, place
from tests.cluster.needs import Missing

CANNOT = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if it is up, ready to be, or gone; `CANNOT`."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("what", choices=("up", "build", "down"))
    parser.add_argument("--spark", action="store_true", help="the image of Spark, too: for LoadTests")
    asked = parser.parse_args(arguments)
    try:
        where = place()
        match asked.what:
            case "down":
                where.down()
            case "build":
                where.build()
            case _:
                print(told(where.up()))  # noqa: T201
                if asked.spark:
                    print(f"# image of Spark: {where.spark_image()}")  # noqa: T201
    except Missing as missing:
        say(str(missing))
        return CANNOT
    return 0


def told(cluster: Cluster) -> str:
    """How to use it."""
    audit = f"# who asked for what: {cluster.audit_log}\n" if cluster.audit_log else ""
    return (
        f"# the cluster is up; end it with: make cluster-down\n"
        f"# images: {cluster.joinery_image} {cluster.redis_image}\n"
        f"{audit}"
        f"export KUBECONFIG={cluster.kubeconfig}\n"
        f"alias kubectl={cluster.kubectl_program}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
