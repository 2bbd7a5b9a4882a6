"""`python -m tests.cluster up | down`: what `make cluster` and `make cluster-down` do."""

import argparse
from collections.abc import Sequence

from tests.cluster.clusters import Cluster, place
from tests.cluster.needs import Missing


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if it is up, or gone."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("what", choices=("up", "down"))
    parser.add_argument("--spark", action="store_true", help="the image of Spark, too: for LoadTests")
    asked = parser.parse_args(arguments)
    try:
        where = place()
        if asked.what == "down":
            where.down()
        else:
            print(told(where.up()))  # noqa: T201
            if asked.spark:
                print(f"# image of Spark: {where.spark_image()}")  # noqa: T201
    except Missing as missing:
        parser.exit(2, f"{missing}\n")
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
